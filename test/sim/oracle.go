package sim

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/test/stage"
)

// An oracle checks the promises in what a ledger has of a campaign, after everything has come to rest. The audit of
// the product reads databases, and has no part in it.
type oracle struct {
	*account
	terms    firstcome.Terms // that the changes make
	letters  []letter
	breaches []breach
}

// broken returns the promises that the ledger's campaign breaks.
func (l *Ledger) broken(id firstcome.CampaignID) []breach {
	o := oracle{account: l.campaigns[id]}
	for _, of := range slices.Sorted(maps.Keys(l.letters)) {
		o.letters = append(o.letters, l.letters[of])
	}
	for _, check := range []func(){o.checkChanges, o.checkCoupons, o.checkOrder, o.checkNumbers, o.checkFacts} {
		check()
	}
	return o.breaches
}

func (o *oracle) breach(promise, format string, args ...any) {
	o.breaches = append(o.breaches, breach{promise, fmt.Sprintf(format, args...)})
}

// sorted returns the coupons in number order.
func (a *account) sorted() []stored {
	all := slices.Clone(a.coupons)
	slices.SortStableFunc(all, func(x, y stored) int { return cmp.Compare(x.Number, y.Number) })
	return all
}

// termsOf returns the terms of a version, or nil if the version has none, or was refused.
func (o *oracle) termsOf(version int64) *firstcome.Terms {
	if version < 1 || version > int64(len(o.changes)) {
		return nil
	}
	if d := &o.changes[version-1]; hasTerms(*d) && !d.refused {
		return &d.Terms
	}
	return nil
}

// forgot reports whether a version is forgotten, because the ledger was restored.
func (o *oracle) forgot(version int64) bool {
	return 1 <= version && version <= int64(len(o.changes)) && o.changes[version-1].Kind == forgotten
}

// checkChanges follows the changes. The campaign is what they make of it, and each void is one of them.
func (o *oracle) checkChanges() {
	paused, closed, version := false, false, int64(0)
	voids := map[int64]int{}
	for n, d := range o.changes {
		if want := int64(n) + 1; d.Version != want || n > 0 && d.At.Before(o.changes[n-1].At) {
			o.breach("changes", "change %d of %v follows change %d", d.Version, d.At, n)
		}
		switch {
		case o.termsOf(d.Version) != nil:
			o.terms, version = d.Terms, d.Version
			if d.Kind == firstcome.ChangeReconcile {
				paused, closed = d.Paused, d.Closed
			}
		case d.Kind == firstcome.ChangePause, d.Kind == firstcome.ChangeResume:
			paused = d.Kind == firstcome.ChangePause
		case d.Kind == firstcome.ChangeClose:
			closed = true
		case d.Kind == firstcome.ChangeVoid:
			voids[d.Number]++
			if c := o.coupon(d.Number); c == nil || c.User != d.User || !c.VoidedAt.Equal(d.At) {
				o.breach("changes", "change %d voids number %d of %s, and the coupon does not say so", d.Version, d.Number, d.User)
			}
		}
	}
	last, is, want := int64(len(o.changes)), o.Terms, o.terms
	if o.Version != last || o.applied != last || o.termsVersion != version || o.Paused != paused || o.Closed != closed ||
		is.Quantity != want.Quantity || !is.OpensAt.Equal(want.OpensAt) || !is.ClosesAt.Equal(want.ClosesAt) ||
		!samePace(is.Pace, want.Pace) || is.Waitlist != want.Waitlist {
		o.breach("changes", "the campaign has change %d of %d and the terms of version %d, a quantity of %d; its changes make it version %d, %d",
			o.applied, o.Version, o.termsVersion, is.Quantity, version, want.Quantity)
	}
	for _, c := range o.coupons {
		if !c.VoidedAt.IsZero() && voids[c.Number] != 1 {
			o.breach("changes", "number %d is voided, and %d changes say so", c.Number, voids[c.Number])
		}
	}
}

// checkCoupons checks each coupon on its own: P3's code and user, and P7.
func (o *oracle) checkCoupons() {
	secret := stage.Secret()
	for _, c := range o.coupons {
		if malformed(o.account, c.Coupon) || c.Code != secret.Code(o.ID, c.Number) {
			o.breach("P3", "number %d is no coupon of the campaign, or its code is not the secret's: %+v", c.Number, c.Coupon)
		}
		terms := o.termsOf(c.TermsVersion)
		switch {
		case o.forgot(c.TermsVersion):
		case terms == nil:
			o.breach("P7", "number %d has the terms of version %d, which has none", c.Number, c.TermsVersion)
		case !c.Direct && c.IssuedAt.Before(terms.OpensAt):
			o.breach("P7", "number %d was issued at %v, before the opening at %v", c.Number, c.IssuedAt, terms.OpensAt)
		case !terms.ClosesAt.IsZero() && !c.IssuedAt.Before(terms.ClosesAt):
			o.breach("P7", "number %d was issued at %v, not before the closing at %v", c.Number, c.IssuedAt, terms.ClosesAt)
		}
	}
}

// checkOrder checks the coupons in number order: P4, and P9 among those that were issued to tickets.
func (o *oracle) checkOrder() {
	var before, ticket stored
	for _, c := range o.sorted() {
		if c.IssuedAt.Before(before.IssuedAt) {
			o.breach("P4", "number %d was issued at %v, before number %d at %v", c.Number, c.IssuedAt, before.Number, before.IssuedAt)
		}
		if c.TermsVersion < before.TermsVersion {
			o.breach("P4", "number %d has the terms of version %d, and number %d those of version %d", c.Number, c.TermsVersion, before.Number, before.TermsVersion)
		}
		before = c
		if c.Ticket == 0 {
			continue
		}
		if cmp.Or(cmp.Compare(c.Generation, ticket.Generation), cmp.Compare(c.Ticket, ticket.Ticket)) <= 0 {
			o.breach("P9", "number %d was issued to the ticket %d.%d, and number %d to the ticket %d.%d",
				c.Number, c.Generation, c.Ticket, ticket.Number, ticket.Generation, ticket.Ticket)
		}
		ticket = c
	}
}

// checkNumbers checks P4: each number is one coupon, one dead letter, or lost.
func (o *oracle) checkNumbers() {
	is, highest := map[int64][]string{}, o.drained
	note := func(number int64, what string) {
		is[number], highest = append(is[number], what), max(highest, number)
	}
	for _, c := range o.coupons {
		note(c.Number, show("the coupon of", c.User))
	}
	for _, one := range o.letters {
		if one.number > 0 {
			note(one.number, show("a dead letter of", one.user))
		}
	}
	for _, s := range o.lost {
		for n := s.first; n <= s.last; n++ {
			note(n, show("lost since epoch", s.epoch))
		}
	}
	for n := int64(1); n <= highest; n++ {
		switch len(is[n]) {
		case 1:
		case 0:
			o.breach("P4", "number %d is missing", n)
		default:
			o.breach("P4", "number %d is %s", n, strings.Join(is[n], ", and "))
		}
	}
	if o.drained != highest {
		o.breach("P5", "the numbers end at %d, and the campaign is drained up to %d", highest, o.drained)
	}
}

// checkFacts follows the facts, which are dense and say what the coupons say: P5. On the way it checks P1 and P3 at each of them.
func (o *oracle) checkFacts() {
	holds := map[firstcome.UserID]int64{}
	inForce, newest := int64(0), int64(0)
	for n, f := range o.facts {
		if want := int64(n) + 1; f.position != want {
			o.breach("P5", "the fact behind %d others has the position %d", n, f.position)
		}
		c := o.coupon(f.number)
		switch {
		case c == nil:
			o.breach("P5", "position %d is about number %d, which no coupon has", f.position, f.number)
		case f.kind == firstcome.CouponIssued:
			if c.position != f.position {
				o.breach("P5", "position %d issues number %d, whose coupon names the position %d", f.position, c.Number, c.position)
			}
			if before := holds[c.User]; before > 0 {
				o.breach("P3", "%s was issued number %d while they held number %d", c.User, c.Number, before)
			}
			holds[c.User], inForce, newest = c.Number, inForce+1, max(newest, c.TermsVersion)
			if terms := o.termsOf(newest); terms != nil && inForce > terms.Quantity {
				o.breach("P1", "number %d made %d coupons in force, and the quantity was %d", c.Number, inForce, terms.Quantity)
			}
		case holds[c.User] != c.Number:
			o.breach("P5", "position %d voids number %d, which is not in force by then", f.position, c.Number)
		default:
			delete(holds, c.User)
			inForce--
		}
	}
	for _, c := range o.coupons {
		if is, says := c.VoidedAt.IsZero(), holds[c.User] == c.Number; is != says {
			o.breach("P5", "number %d of %s is in force: %t, by the facts: %t", c.Number, c.User, is, says)
		}
	}
	if is := o.inForce(); is != inForce || is > o.terms.Quantity {
		o.breach("P1", "%d coupons are in force, by the facts %d, and the quantity is %d", is, inForce, o.terms.Quantity)
	}
}
