// Package wire has the format of facts in the API and in a topic.
package wire

import (
	"time"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/client"
)

// A Fact is a client.Fact with null for unknown values.
type Fact struct {
	client.Fact
	UserID       *string      `json:"user_id"`
	Code         *string      `json:"code"`
	TermsVersion *int64       `json:"terms_version"`
	Rank         *int64       `json:"rank"`
	At           *client.Time `json:"at"`
}

// FactOf returns a fact in the wire format. t are the terms of its coupon. If the ledger has lost the coupon, only its number is known.
func FactOf(f *firstcome.Fact, t *firstcome.Terms) Fact {
	c := f.Coupon
	wire := Fact{Fact: client.Fact{Position: f.Position, Kind: string(f.Kind), CampaignID: string(c.Campaign), Number: c.Number}}
	if c.User == "" {
		return wire
	}
	user := string(c.User)
	wire.UserID, wire.Code, wire.TermsVersion, wire.At = &user, &c.Code, &c.TermsVersion, Time(f.At())
	if _, entry := t.Entry(c.Number); entry > 0 {
		wire.Code = nil // an imported code is in no fact
	}
	rank := t.Rank(c.Number)
	wire.Rank, wire.Prize = &rank, PrizeOf(t, rank)
	wire.Generation, wire.Ticket, wire.Direct = place(c.Generation), place(c.Ticket), c.Direct
	return wire
}

// PrizeOf returns the prize of a rank in the wire format, or nil if the terms have no prizes.
func PrizeOf(t *firstcome.Terms, rank int64) *client.CouponPrize {
	n := t.PrizeOf(rank)
	if n < 0 {
		return nil
	}
	return &client.CouponPrize{ID: string(t.Prizes[n].ID), Name: t.Prizes[n].Name}
}

// place returns a part of a coupon's ticket, or nil if the coupon was issued without a line.
func place(n int64) *int64 {
	if n == 0 {
		return nil
	}
	return &n
}

// Time returns a time in the wire format, or nil for the zero time.
func Time(t time.Time) *client.Time {
	if t.IsZero() {
		return nil
	}
	return &client.Time{Time: t}
}
