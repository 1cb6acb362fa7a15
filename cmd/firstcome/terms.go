package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"

	"github.com/firstcome/firstcome/client"
)

// What the flags of a campaign's terms say besides a value.
const (
	unlimited = "unlimited"
	none      = "none"
)

// A quantity is a whole number or unlimited.
type quantity string

// UnmarshalText checks the number; the server knows its bounds.
func (q *quantity) UnmarshalText(text []byte) error {
	if n, err := strconv.ParseInt(string(text), 10, 64); (err != nil || n < 0) && string(text) != unlimited {
		return fmt.Errorf("%q is neither a whole number from 0 on nor unlimited", text)
	}
	*q = quantity(text)
	return nil
}

func (q quantity) wire() json.RawMessage {
	if q == unlimited {
		return json.RawMessage("null")
	}
	return json.RawMessage(q)
}

// A timeOrNone is an instant with a zone, or none.
type timeOrNone string

// UnmarshalText checks the instant.
func (v *timeOrNone) UnmarshalText(text []byte) error {
	if string(text) != none {
		if err := new(client.Time).UnmarshalJSON(quoted(string(text))); err != nil {
			return fmt.Errorf("%q: write an instant with its zone, like 2026-12-24T10:00:00+09:00, or none", text)
		}
	}
	*v = timeOrNone(text)
	return nil
}

func (v timeOrNone) wire() json.RawMessage { return nullOr(string(v)) }

// A durationOrNone is a Go duration, or none.
type durationOrNone string

// UnmarshalText checks the duration.
func (v *durationOrNone) UnmarshalText(text []byte) error {
	if string(text) != none {
		if err := new(client.Duration).UnmarshalJSON(quoted(string(text))); err != nil {
			return fmt.Errorf("%q: write a duration like 720h, or none", text)
		}
	}
	*v = durationOrNone(text)
	return nil
}

func (v durationOrNone) wire() json.RawMessage { return nullOr(string(v)) }

// A jsonText is JSON.
type jsonText string

// UnmarshalText checks the JSON.
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

func nullOr(text string) json.RawMessage {
	if text == none {
		return json.RawMessage("null")
	}
	return quoted(text)
}
