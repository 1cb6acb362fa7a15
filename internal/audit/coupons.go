package audit

import (
	"sort"
	"time"

	"github.com/firstcome/firstcome"
)

// A row is what is kept of a coupon for the audit of the facts.
type row struct {
	number int64
	state  state
}

// A state is what is known of a coupon: of its row, and of its facts.
type state uint8

const (
	voidedRow state = 1 << iota
	issuedFact
	voidedFact
)

// held is the last coupon of a user.
type held struct {
	number   int64
	voidedAt time.Time
}

// rows are the coupons in number order.
type rows []row

// find returns the coupon of a number, or nil.
func (r rows) find(number int64) *row {
	n := int(number - 1) // where it stands if no number is missing
	if n < 0 || n >= len(r) || r[n].number != number {
		n = sort.Search(len(r), func(i int) bool { return r[i].number >= number })
	}
	if n == len(r) || r[n].number != number {
		return nil
	}
	return &r[n]
}

// couponAudit reads the coupons in number order.
type couponAudit struct {
	*Breaches
	id      firstcome.CampaignID
	secret  *firstcome.Secret
	terms   versions
	holders map[firstcome.UserID]held
	rows    rows
	inForce int64
	last    firstcome.Coupon
	remote  bool
	// again holds, where a remote gate decides, the number that a user had before, by
	// that of the user's next coupon: the clocks of gate and ledger differ, so
	// the facts say whether it was voided by then.
	again map[int64]int64
}

func (a *couponAudit) coupon(c firstcome.Coupon) error {
	terms, err := a.terms.at(c.TermsVersion)
	if err != nil {
		return err
	}
	a.identity(c)
	a.sequence(c)
	a.window(c, terms)
	a.oneAUser(c)
	r := row{number: c.Number}
	if c.VoidedAt.IsZero() {
		a.inForce++
	} else {
		r.state = voidedRow
	}
	a.rows = append(a.rows, r)
	a.last = c
	return nil
}

func (a *couponAudit) identity(c firstcome.Coupon) {
	if c.Campaign != a.id {
		a.add("identity", "number %d is of the campaign %q", c.Number, c.Campaign)
	}
	if _, err := firstcome.ParseUserID(string(c.User)); err != nil {
		a.add("identity", "number %d has the user %q: %v", c.Number, c.User, err)
	}
	switch {
	case !wellFormedCode(c.Code):
		a.add("identity", "number %d has the code %q, which is not 16 characters of Crockford's base 32", c.Number, c.Code)
	case a.secret != nil && c.Code != a.secret.Code(a.id, c.Number):
		a.add("identity", "number %d has a code that the secret does not make", c.Number)
	}
}

// wellFormedCode tells whether a code has the form of Secret.Code.
func wellFormedCode(code string) bool {
	for i := range len(code) {
		switch c := code[i]; {
		case '0' <= c && c <= '9':
		case 'A' <= c && c <= 'Z' && c != 'I' && c != 'L' && c != 'O' && c != 'U':
		default:
			return false
		}
	}
	return len(code) == 16
}

// sequence checks P4 between a coupon and the one before it.
func (a *couponAudit) sequence(c firstcome.Coupon) {
	switch before := a.last; {
	case c.Number == before.Number:
		a.add("P4", "number %d names two coupons, of the users %q and %q", c.Number, before.User, c.User)
	case c.Number < before.Number:
		a.add("P4", "number %d stands behind number %d", c.Number, before.Number)
	}
	if c.IssuedAt.Before(a.last.IssuedAt) {
		a.add("P4", "number %d was issued at %s, before number %d at %s", c.Number, text(c.IssuedAt), a.last.Number, text(a.last.IssuedAt))
	}
	if c.TermsVersion < a.last.TermsVersion {
		a.add("P4", "number %d has the terms of version %d, older than those of number %d", c.Number, c.TermsVersion, a.last.Number)
	}
}

// window checks that a coupon was issued while its terms were open.
func (a *couponAudit) window(c firstcome.Coupon, terms firstcome.Terms) {
	if !terms.OpensAt.IsZero() && c.IssuedAt.Before(terms.OpensAt) {
		a.add("P7", "number %d was issued at %s, before the opening at %s", c.Number, text(c.IssuedAt), text(terms.OpensAt))
	}
	if !terms.ClosesAt.IsZero() && !c.IssuedAt.Before(terms.ClosesAt) {
		a.add("P7", "number %d was issued at %s, not before the closing at %s", c.Number, text(c.IssuedAt), text(terms.ClosesAt))
	}
	if !c.VoidedAt.IsZero() && c.VoidedAt.Before(c.IssuedAt) {
		a.add("P4", "number %d was voided at %s, before it was issued at %s", c.Number, text(c.VoidedAt), text(c.IssuedAt))
	}
}

// oneAUser checks P3: that the user's coupon before was voided by then.
func (a *couponAudit) oneAUser(c firstcome.Coupon) {
	if before, ok := a.holders[c.User]; ok {
		if a.remote {
			a.again[c.Number] = before.number
		} else if before.voidedAt.IsZero() || before.voidedAt.After(c.IssuedAt) {
			a.add("P3", "the user %q was issued number %d while number %d was in force", c.User, c.Number, before.number)
		}
	}
	a.holders[c.User] = held{c.Number, c.VoidedAt}
}

// text returns an instant as firstcome writes it.
func text(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000000Z") }
