// Package wire has the facts as everybody gets them: from the API, and from a topic.
package wire

import (
	"time"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/client"
)

// A Fact is a client.Fact with null for what is unknown.
type Fact struct {
	client.Fact
	UserID       *string      `json:"user_id"`
	Code         *string      `json:"code"`
	TermsVersion *int64       `json:"terms_version"`
	At           *client.Time `json:"at"`
}

// FactOf returns a fact as the wire has it. Of a coupon that the ledger has lost only the number is known.
func FactOf(f *firstcome.Fact) Fact {
	c := f.Coupon
	wire := Fact{Fact: client.Fact{Position: f.Position, Kind: string(f.Kind), CampaignID: string(c.Campaign), Number: c.Number}}
	if c.User == "" {
		return wire
	}
	user := string(c.User)
	wire.UserID, wire.Code, wire.TermsVersion, wire.At = &user, &c.Code, &c.TermsVersion, Time(f.At())
	wire.Generation, wire.Ticket, wire.Direct = Place(c.Generation), Place(c.Ticket), c.Direct
	return wire
}

// Place returns part of a coupon's ticket, nil of one that was issued without a line.
func Place(n int64) *int64 {
	if n == 0 {
		return nil
	}
	return &n
}

// Time returns an instant as the wire has it; the zero time is absent.
func Time(t time.Time) *client.Time {
	if t.IsZero() {
		return nil
	}
	return &client.Time{Time: t}
}
