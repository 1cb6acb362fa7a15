package sim

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/record"
	"github.com/firstcome/firstcome/internal/recovery"
	"github.com/firstcome/firstcome/test/stage"
)

// settled returns a ledger of everything that the oracle reads: numbers 1 and 2 to tickets, 3 voided, 4 a dead letter, 5 and 6 lost by a
// rebuild and skipped, and 7 for the user of 3.
func settled(t *testing.T) (*Ledger, *account) {
	t.Helper()
	ctx, now, secret := context.Background(), time.Date(2026, 11, 1, 9, 0, 0, 0, time.UTC), stage.Secret()
	l := NewLedger(func() time.Time { now = now.Add(time.Second); return now })
	coupon := func(number, ticket int64, user firstcome.UserID) firstcome.Coupon {
		c := firstcome.Coupon{Campaign: campaign, Number: number, User: user, Code: secret.Code(campaign, number), IssuedAt: l.Clock(), TermsVersion: 1, Ticket: ticket}
		if ticket > 0 {
			c.Generation = 1
		}
		return c
	}
	do := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	done := func(version int64) { do(l.Applied(ctx, firstcome.Change{Campaign: campaign, Version: version}, false)) }
	do(l.Create(ctx, "", campaign, firstcome.Terms{Quantity: 4, OpensAt: now, ClosesAt: now.Add(time.Hour), Pace: &firstcome.Pace{PerSecond: 1}}))
	done(1)
	do(stage.Err(l.Record(ctx, record.Batch{Campaign: campaign, Epoch: 1, Coupons: []firstcome.Coupon{coupon(1, 1, "a"), coupon(2, 2, "b"), coupon(3, 0, "c")}})))
	do(stage.Err(l.Void(ctx, "", campaign, 3, "")))
	done(2)
	do(stage.Err(l.Bury(ctx, record.Batch{Campaign: campaign, Epoch: 1, Coupons: []firstcome.Coupon{coupon(4, 0, "d")}}, "")))
	a := l.campaigns[campaign]
	a.ceiling = 6
	r, err := l.BeginRebuild(ctx, "", campaign, 1)
	do(err)
	do(stage.Err(l.FinishRebuild(ctx, r, recovery.Loaded{Mark: l.mark(a)}, recovery.Frozen{})))
	do(stage.Err(l.Record(ctx, record.Batch{Campaign: campaign, Epoch: 2, Coupons: []firstcome.Coupon{coupon(7, 0, "c")}})))
	return l, a
}

func TestTheOracleFindsEachKindOfBreach(t *testing.T) {
	if l, _ := settled(t); len(l.broken(campaign)) > 0 {
		t.Fatalf("it finds in a ledger without any: %v", l.broken(campaign))
	}
	for _, plant := range []struct {
		promise, name string
		plant         func(l *Ledger, a *account)
	}{
		{"P1", "the quantity became lower than what is in force", func(_ *Ledger, a *account) {
			a.Quantity = 2
			a.changes[3].Terms = a.Terms
		}},
		{"P1", "more were in force than the quantity, once", func(_ *Ledger, a *account) {
			a.changes[0].Terms.Quantity = 2
		}},
		{"P3", "a user has two coupons in force", func(_ *Ledger, a *account) { a.coupons[1].User = "a" }},
		{"P3", "a user got another coupon before the first was voided", func(_ *Ledger, a *account) {
			a.facts[3].number, a.facts[3].kind, a.facts[4].number, a.facts[4].kind = 7, firstcome.CouponIssued, 3, firstcome.CouponVoided
			a.coupons[3].position = 4
		}},
		{"P3", "a code is another number's", func(_ *Ledger, a *account) { a.coupons[0].Code = a.coupons[1].Code }},
		{"P3", "a user is none", func(_ *Ledger, a *account) { a.coupons[0].User = "" }},
		{"P4", "a number names two coupons", func(_ *Ledger, a *account) { a.coupons[1].Number = 1 }},
		{"P4", "a number is nothing", func(_ *Ledger, a *account) { a.lost = a.lost[1:] }},
		{"P4", "the dead letter is gone", func(l *Ledger, _ *account) { clear(l.letters) }},
		{"P4", "a coupon is lost too", func(_ *Ledger, a *account) { a.lost[0].first = 3 }},
		{"P4", "a coupon is a dead letter too", func(l *Ledger, _ *account) { l.bury("x", letter{1, "x"}) }},
		{"P4", "a higher number was issued earlier", func(_ *Ledger, a *account) { a.coupons[1].IssuedAt = a.coupons[0].IssuedAt.Add(-1) }},
		{"P4", "a higher number has older terms", func(_ *Ledger, a *account) { a.coupons[0].TermsVersion = 2 }},
		{"P5", "a coupon is gone", func(_ *Ledger, a *account) { a.coupons = a.coupons[1:] }},
		{"P5", "a fact is gone", func(_ *Ledger, a *account) { a.facts = slices.Delete(a.facts, 1, 2) }},
		{"P5", "the last fact is gone", func(_ *Ledger, a *account) { a.facts = a.facts[:4] }},
		{"P5", "a fact has another position", func(_ *Ledger, a *account) { a.facts[3].position = 9 }},
		{"P5", "a fact is there twice", func(_ *Ledger, a *account) { a.fact(firstcome.CouponIssued, 7) }},
		{"P5", "a fact voids what is in force", func(_ *Ledger, a *account) { a.fact(firstcome.CouponVoided, 7) }},
		{"P5", "a fact voids what is voided", func(_ *Ledger, a *account) { a.fact(firstcome.CouponVoided, 3) }},
		{"P5", "no fact voids what is voided", func(_ *Ledger, a *account) { a.coupons[0].VoidedAt = a.decidedAt }},
		{"P5", "a coupon names another fact", func(_ *Ledger, a *account) { a.coupons[0].position = 2 }},
		{"P4", "the campaign is drained too far", func(_ *Ledger, a *account) { a.drained++ }},
		{"P5", "the campaign is not drained", func(_ *Ledger, a *account) { a.drained-- }},
		{"P7", "a coupon is from before the opening", func(_ *Ledger, a *account) { a.coupons[0].IssuedAt = a.OpensAt.Add(-1) }},
		{"P7", "a coupon is from the closing", func(_ *Ledger, a *account) { a.coupons[3].IssuedAt = a.ClosesAt }},
		{"P7", "a coupon has the terms of a void", func(_ *Ledger, a *account) { a.coupons[3].TermsVersion = 2 }},
		{"P9", "the second in line got the first number", func(_ *Ledger, a *account) { a.coupons[0].Ticket, a.coupons[1].Ticket = 2, 1 }},
		{"P9", "a ticket was served twice", func(_ *Ledger, a *account) { a.coupons[1].Ticket = 1 }},
		{"P9", "a later generation got the first number", func(_ *Ledger, a *account) { a.coupons[0].Generation = 2 }},
		{"changes", "a change is gone", func(_ *Ledger, a *account) { a.changes = slices.Delete(a.changes, 1, 2) }},
		{"changes", "a change is from before the one before it", func(_ *Ledger, a *account) { a.changes[2].At = a.changes[1].At.Add(-1) }},
		{"changes", "no change voids what is voided", func(_ *Ledger, a *account) { a.changes[1].Kind = firstcome.ChangeRebuild }},
		{"changes", "the gate lacks a change", func(_ *Ledger, a *account) { a.applied-- }},
		{"changes", "the quantity is no change's", func(_ *Ledger, a *account) { a.Quantity++ }},
		{"changes", "a pause is no change", func(_ *Ledger, a *account) { a.Paused = true }},
		{"changes", "a void is of another user", func(_ *Ledger, a *account) { a.changes[1].User = "x" }},
	} {
		l, a := settled(t)
		plant.plant(l, a)
		if found := l.broken(campaign); !slices.ContainsFunc(found, func(b breach) bool { return b.promise == plant.promise }) {
			t.Errorf("%s: it does not find that %s: %v", plant.promise, plant.name, found)
		}
	}
}
