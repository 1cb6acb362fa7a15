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
	l := audit.Letter{ID: d.ID, Open: d.SettledAt == nil}
	if d.Number != nil {
		l.Number = *d.Number
	}
	if d.UserID != nil {
		l.User = firstcome.UserID(*d.UserID)
	}
	if d.SettledAt != nil {
		l.ResolvedAt = d.SettledAt.Time
	}
	if d.SettledBy != nil {
		l.Voided = *d.SettledBy == string(ledger.Voided)
	}
	return l
}

// changeOf returns a change on the wire as an audit has it.
func changeOf(id firstcome.CampaignID, c client.Change) audit.Change {
	change := audit.Change{Change: firstcome.Change{Campaign: id, Version: c.Version, Kind: firstcome.ChangeKind(c.Kind), At: c.At.Time}, Refused: c.Refused}
	if c.Terms != nil {
		change.Terms = termsOf(*c.Terms)
	}
	if c.Number != nil {
		change.Number = *c.Number
	}
	if c.UserID != nil {
		change.User = firstcome.UserID(*c.UserID)
	}
	return change
}

// termsOf returns terms on the wire as the rule has them.
func termsOf(t client.Terms) firstcome.Terms {
	terms := firstcome.Terms{Name: t.Name, Quantity: firstcome.Unlimited, Answer: firstcome.AnswerWhen(t.Answer), Benefit: t.Coupon.Benefit}
	if t.Quantity != nil {
		terms.Quantity = *t.Quantity
	}
	for into, at := range map[*time.Time]*client.Time{&terms.OpensAt: t.OpensAt, &terms.ClosesAt: t.ClosesAt, &terms.ValidUntil: t.Coupon.ValidUntil} {
		if at != nil {
			*into = at.Time
		}
	}
	if t.Coupon.ValidFor != nil {
		terms.ValidFor = time.Duration(*t.Coupon.ValidFor)
	}
	return terms
}
