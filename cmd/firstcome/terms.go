package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/firstcome/firstcome/client"
)

// What the flags of a campaign's terms say besides a value.
const (
	unlimited = "unlimited"
	none      = "none"
)

// A quantity is JSON of a whole number, or null for unlimited.
type quantity string

// UnmarshalText checks the number; the server knows its bounds.
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

// A paceOrNone is JSON of a pace: so many coupons a second, {} for unlimited, or null for none.
type paceOrNone string

// UnmarshalText checks the number; the server knows its bounds.
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

// A yesOrNo is JSON of true or false.
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

// A timeOrNone is an instant, or none. Without a zone it is in the zone of --tz: see in.
type timeOrNone string

// UnmarshalText checks the form of the instant; what zone it is in is known when all flags are read.
func (v *timeOrNone) UnmarshalText(text []byte) error {
	if _, local := wallClock(string(text)); string(text) != none && !local {
		if err := new(client.Time).UnmarshalJSON(quoted(string(text))); err != nil {
			return fmt.Errorf("%q: write an instant with its zone, like 2026-12-24T10:00:00+09:00, or like \"2026-12-24 10:00\" beside --tz Asia/Seoul, or none", text)
		}
	}
	*v = timeOrNone(text)
	return nil
}

// in gives an instant that has no zone the one of --tz. The error says what is to be written instead.
func (v *timeOrNone) in(zone zoneName) error {
	at, local := wallClock(string(*v))
	if !local {
		return nil
	}
	if zone == "" {
		return fmt.Errorf("%q has no zone: write it like %s+09:00, or name the zone with --tz, like --tz Asia/Seoul", string(*v), at.Format("2006-01-02T15:04:05"))
	}
	there, err := inZone(at, zone.location())
	if err != nil {
		return fmt.Errorf("%q: %w", string(*v), err)
	}
	*v = timeOrNone(there.Format(time.RFC3339Nano))
	return nil
}

// wire returns JSON, and nothing where the flag is absent.
func (v timeOrNone) wire() string {
	switch v {
	case "":
		return ""
	case none:
		return "null"
	}
	return string(quoted(string(v)))
}

// A durationOrNone is JSON of a Go duration, or null for none.
type durationOrNone string

// UnmarshalText reads a Go duration, before which there may be days, or none.
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

// durationOf reads a Go duration, before which there may be days of 24 hours.
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
	whole := time.Duration(n) * 24 * time.Hour
	switch {
	case err == nil && d < 0:
		err = errors.New("a part of it is negative")
	case err == nil && d > math.MaxInt64-whole:
		err = errors.New("it is longer than 292 years")
	}
	return whole + d, err
}

// A jsonText is JSON.
type jsonText string

func (v *jsonText) UnmarshalText(text []byte) error {
	if !json.Valid(text) {
		return errors.New(`this is not JSON: write it like '{"percent_off":10}', in quotes of your shell`)
	}
	*v = jsonText(text)
	return nil
}

func quoted(text string) []byte {
	raw, _ := json.Marshal(text) // a string always has JSON
	return raw
}
