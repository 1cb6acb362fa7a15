package main

import (
	"time"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/client"
	"github.com/firstcome/firstcome/internal/audit"
	"github.com/firstcome/firstcome/internal/ledger"
)

// letterOf returns a dead letter on the wire as an audit has it.
func letterOf(d client.DeadLetter) audit.Letter {
	return audit.Letter{
		ID: d.ID, Number: given(d.Number), User: firstcome.UserID(given(d.UserID)),
		Open: d.ResolvedAt == nil, ResolvedAt: given(d.ResolvedAt).Time, Voided: given(d.ResolvedBy) == string(ledger.Voided),
	}
}

// changeOf returns a change on the wire as an audit has it.
func changeOf(id firstcome.CampaignID, c client.Change) audit.Change {
	change := audit.Change{Refused: c.Refused, Change: firstcome.Change{
		Campaign: id, Version: c.Version, Kind: firstcome.ChangeKind(c.Kind), At: c.At.Time,
		Number: given(c.Number), User: firstcome.UserID(given(c.UserID)),
		Paused: c.Paused, Closed: c.Closed,
	}}
	if c.Terms != nil {
		change.Terms = termsOf(*c.Terms)
	}
	return change
}

// termsOf returns terms on the wire as the rule has them.
func termsOf(t client.Terms) firstcome.Terms {
	terms := firstcome.Terms{
		Name: t.Name, Quantity: firstcome.Unlimited, Answer: firstcome.AnswerWhen(t.Answer), Benefit: t.Coupon.Benefit,
		OpensAt: given(t.OpensAt).Time, ClosesAt: given(t.ClosesAt).Time,
		ValidUntil: given(t.Coupon.ValidUntil).Time, ValidFor: time.Duration(given(t.Coupon.ValidFor)),
	}
	if terms.Waitlist = t.Waitlist; t.Pace != nil {
		terms.Pace = &firstcome.Pace{PerSecond: given(t.Pace.PerSecond)}
	}
	if t.Quantity != nil {
		terms.Quantity = *t.Quantity
	}
	return terms
}

// given returns what a pointer leads to, the zero value if it is nil.
func given[V any](at *V) (v V) {
	if at != nil {
		v = *at
	}
	return v
}
