package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/firstcome/firstcome/client"
	"github.com/firstcome/firstcome/internal/zone"
)

// Words that the flags of a campaign's terms accept in place of a value.
const (
	unlimited = "unlimited"
	none      = "none"
)

// A quantity is a whole number as JSON, or null for unlimited.
type quantity string

// UnmarshalText checks the form of the number. The server checks its range.
func (q *quantity) UnmarshalText(text []byte) error {
	n, err := strconv.ParseInt(string(text), 10, 64)
	switch {
	case string(text) == unlimited:
		*q = "null"
	case err != nil || n < 0:
		return fmt.Errorf("%q is neither a whole number from 0 on nor unlimited", text)
	default:
		*q = quantity(strconv.FormatInt(n, 10))
	}
	return nil
}

// A paceOrNone is a pace as JSON: a number of coupons a second, {} for unlimited, or null for none.
type paceOrNone string

// UnmarshalText checks the form of the number. The server checks its range.
func (p *paceOrNone) UnmarshalText(text []byte) error {
	n, err := strconv.ParseInt(string(text), 10, 64)
	switch {
	case string(text) == none:
		*p = "null"
	case string(text) == unlimited:
		*p = "{}"
	case err != nil || n < 1:
		return fmt.Errorf("%q is neither a whole number of coupons a second, nor unlimited, nor none", text)
	default:
		*p = paceOrNone(fmt.Sprintf(`{"per_second":%d}`, n))
	}
	return nil
}

// A yesOrNo is true or false as JSON.
type yesOrNo string

func (v *yesOrNo) UnmarshalText(text []byte) error {
	switch string(text) {
	case "yes":
		*v = "true"
	case "no":
		*v = "false"
	default:
		return fmt.Errorf("%q is neither yes nor no", text)
	}
	return nil
}

// A timeOrNone is a time, or none. A time without a zone is in the zone of --tz: see in.
type timeOrNone string

// UnmarshalText checks the form of the time. Its zone is known only after all flags are read.
func (v *timeOrNone) UnmarshalText(text []byte) error {
	if _, local := zone.WallClock(string(text)); string(text) != none && !local {
		if err := new(client.Time).UnmarshalJSON(quoted(string(text))); err != nil {
			return fmt.Errorf("%q: write a time with its zone, like 2026-12-24T10:00:00+09:00, or like \"2026-12-24 10:00\" with --tz Asia/Seoul, or none", text)
		}
	}
	*v = timeOrNone(text)
	return nil
}

// in gives a time without a zone the zone of --tz. The error says what to write instead.
func (v *timeOrNone) in(tz zoneName) error {
	at, local := zone.WallClock(string(*v))
	if !local {
		return nil
	}
	if tz == "" {
		return fmt.Errorf("%q has no zone: write it like %s+09:00, or name the zone with --tz, like --tz Asia/Seoul", string(*v), at.Format("2006-01-02T15:04:05"))
	}
	there, err := zone.Instant(at, tz.location())
	switch {
	case errors.Is(err, zone.ErrSkipped):
		return fmt.Errorf("%q: %w: choose another time, or write it with its offset from UTC", string(*v), err)
	case err != nil:
		return fmt.Errorf("%q: %w: write it with its offset from UTC", string(*v), err)
	}
	*v = timeOrNone(there.Format(time.RFC3339Nano))
	return nil
}

// wire returns the time as JSON, or an empty string if the flag is absent.
func (v timeOrNone) wire() string {
	switch v {
	case "":
		return ""
	case none:
		return "null"
	}
	return string(quoted(string(v)))
}

// A durationOrNone is a Go duration as JSON, or null for none.
type durationOrNone string

// UnmarshalText reads a duration as durationOf does, or none.
func (v *durationOrNone) UnmarshalText(text []byte) error {
	if string(text) == none {
		*v = "null"
		return nil
	}
	d, err := durationOf(string(text))
	if err != nil {
		return fmt.Errorf("%q: write a duration like 30d, 36h or 1d12h, or none", text)
	}
	*v = durationOrNone(quoted(d.String()))
	return nil
}

// durationOf reads a Go duration. There may be days of 24 hours before it, as in 1d12h.
func durationOf(text string) (time.Duration, error) {
	days, rest, has := strings.Cut(text, "d")
	if !has {
		return time.ParseDuration(text)
	}
	n, err := strconv.ParseUint(days, 10, 15)
	if err != nil || rest == "" {
		return time.Duration(n) * 24 * time.Hour, err
	}
	d, err := time.ParseDuration(rest)
	full := time.Duration(n) * 24 * time.Hour
	switch {
	case err == nil && d < 0:
		err = errors.New("a part of it is negative")
	case err == nil && d > math.MaxInt64-full:
		err = errors.New("it is longer than 292 years")
	}
	return full + d, err
}

// A jsonText is JSON.
type jsonText string

func (v *jsonText) UnmarshalText(text []byte) error {
	if !json.Valid(text) {
		return errors.New(`this is not JSON: write it like '{"percent_off":10}', in your shell's quotes`)
	}
	*v = jsonText(text)
	return nil
}

// A prizeOrNone is a prize as JSON, or null for none.
type prizeOrNone string

const noPrize prizeOrNone = "null"

// prizeField is where a field of a prize begins.
var prizeField = regexp.MustCompile(`,([a-z_]+)=`)

// UnmarshalText reads fields like id=drink,quantity=100,name=A free drink,benefit={"item":"drink"}. A benefit is the rest of the text.
func (p *prizeOrNone) UnmarshalText(text []byte) error {
	if string(text) == none {
		*p = noPrize
		return nil
	}
	fields := map[string]json.RawMessage{}
	for rest := "," + string(text); rest != ""; {
		at := prizeField.FindStringSubmatchIndex(rest)
		if at == nil || at[0] != 0 {
			return errors.New("write it like 'id=drink,quantity=100,name=A free drink', in your shell's quotes, or none")
		}
		name, value := rest[at[2]:at[3]], rest[at[1]:]
		rest = ""
		if next := prizeField.FindStringIndex(value); next != nil && name != "benefit" {
			value, rest = value[:next[0]], value[next[0]:]
		}
		if fields[name] != nil {
			return fmt.Errorf("%s is there twice", name)
		}
		var err error
		if fields[name], err = prizeValue(name, value); err != nil {
			return err
		}
	}
	if fields["id"] == nil {
		return errors.New("its id is missing, like id=drink")
	}
	if fields["name"] == nil {
		fields["name"] = fields["id"]
	}
	all, err := json.Marshal(fields)
	*p = prizeOrNone(all)
	return err
}

// prizeValue returns a field of a prize as JSON. The server checks lengths and ranges.
func prizeValue(name, value string) (json.RawMessage, error) {
	switch name {
	case "id", "name":
		return quoted(value), nil
	case "codes":
		if value != client.ImportedCodes {
			return nil, fmt.Errorf("codes: %q is not imported: leave codes out if firstcome makes them", value)
		}
		return quoted(value), nil
	case "quantity":
		n, err := strconv.ParseInt(value, 10, 64)
		if err != nil || n < 1 {
			return nil, fmt.Errorf("quantity: %q is not a whole number from 1 on; the last prize has no quantity", value)
		}
		return json.RawMessage(strconv.FormatInt(n, 10)), nil
	case "benefit":
		var benefit jsonText
		if err := benefit.UnmarshalText([]byte(value)); err != nil {
			return nil, fmt.Errorf("benefit: %w", err)
		}
		return json.RawMessage(benefit), nil
	}
	return nil, fmt.Errorf("there is no field %s: a prize has id, quantity, name, codes and benefit", name)
}

func quoted(text string) []byte {
	raw, _ := json.Marshal(text) // a string always has JSON
	return raw
}
