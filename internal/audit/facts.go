package audit

import (
	"errors"

	"github.com/firstcome/firstcome"
)

// factAudit reads the facts in position order, behind the coupons. What came
// into the ledger since the campaign was read is at positions behind the
// campaign's, and may concern coupons as they were not yet when they were read.
type factAudit struct {
	*Breaches
	campaign Campaign // as read before the coupons
	terms    versions
	rows     rows
	again    map[int64]int64 // see couponAudit
	newest   int64           // version of terms
	position int64
	issued   int64
	inForce  int64
	lost     int  // issued, and no coupon is left
	over     bool // in force was above the quantity at the last issue
	compared bool // the counters
}

// maxLost is how many facts without their coupons are read: a position that is out
// of all reason would have the audit read on for ever.
const maxLost = 1_000_000

// errLost says that so many facts have no coupon that the rest is not read.
var errLost = errors.New("the ledger lacks the coupons of its facts")

func (a *factAudit) fact(f firstcome.Fact) error {
	if a.position == 0 {
		a.compare()
	}
	if f.Position != a.position+1 {
		a.add("facts", "position %d follows position %d", f.Position, a.position)
	}
	a.position = f.Position
	var err error
	switch f.Kind {
	case firstcome.CouponIssued:
		a.issue(f)
		if f.Coupon.User == "" {
			err = a.lose(f)
		} else {
			err = a.stock(f)
		}
	case firstcome.CouponVoided:
		a.inForce--
		a.void(f)
	default:
		a.add("facts", "position %d has the unknown kind %q", f.Position, f.Kind)
	}
	a.compare()
	return err
}

// lose takes note of an issue whose coupon the ledger does not have any more.
func (a *factAudit) lose(f firstcome.Fact) error {
	a.add("P5", "position %d issued number %d, and the ledger does not have it", f.Position, f.Coupon.Number)
	if a.lost++; a.lost == maxLost {
		return errLost
	}
	return nil
}

// compare holds the counters against the facts up to the campaign's position.
func (a *factAudit) compare() {
	if a.compared || a.position < a.campaign.Position {
		return
	}
	a.compared = true
	if a.issued != a.campaign.Issued {
		a.add("counters", "the campaign counts %d coupons issued, the facts to position %d name %d", a.campaign.Issued, a.position, a.issued)
	}
	if a.inForce != a.campaign.InForce {
		a.add("counters", "the campaign counts %d coupons in force, the facts to position %d leave %d", a.campaign.InForce, a.position, a.inForce)
	}
}

// stock checks P1 at the instant of an issue, by the terms it was issued under, or
// later ones if a remote gate's coupons came out of order.
func (a *factAudit) stock(f firstcome.Fact) error {
	a.newest = max(a.newest, f.Coupon.TermsVersion)
	terms, err := a.terms.at(a.newest)
	if err != nil {
		return err
	}
	over := a.inForce > terms.Quantity
	if over && !a.over {
		a.add("P1", "number %d made %d coupons in force, the quantity was %d", f.Coupon.Number, a.inForce, terms.Quantity)
	}
	a.over = over
	return nil
}

func (a *factAudit) issue(f firstcome.Fact) {
	a.issued++
	a.inForce++
	if before, ok := a.again[f.Coupon.Number]; ok {
		if r := a.rows.find(before); r == nil || r.state&voidedFact == 0 {
			a.add("P3", "the user of number %d was issued it while number %d was in force", f.Coupon.Number, before)
		}
	}
	r := a.rows.find(f.Coupon.Number)
	switch {
	case r == nil && (a.since(f) || f.Coupon.User == ""):
	case r == nil:
		a.add("facts", "position %d issues number %d, which no coupon has", f.Position, f.Coupon.Number)
	case r.state&issuedFact != 0:
		a.add("facts", "position %d issues number %d again", f.Position, r.number)
	default:
		r.state |= issuedFact
	}
}

func (a *factAudit) void(f firstcome.Fact) {
	r := a.rows.find(f.Coupon.Number)
	switch {
	case r == nil && a.since(f):
	case r == nil:
		a.add("facts", "position %d voids number %d, which no coupon has", f.Position, f.Coupon.Number)
	case r.state&issuedFact == 0:
		a.add("facts", "position %d voids number %d, which was not issued by then", f.Position, r.number)
	case r.state&voidedFact != 0:
		a.add("facts", "position %d voids number %d again", f.Position, r.number)
	default:
		if r.state&voidedRow == 0 && f.Position <= a.campaign.Position {
			a.add("facts", "position %d voids number %d, which is in force", f.Position, r.number)
		}
		r.state |= voidedFact
	}
}

// since tells whether a fact concerns a coupon that was issued after the coupons
// were read.
func (a *factAudit) since(f firstcome.Fact) bool {
	highest := int64(0)
	if len(a.rows) > 0 {
		highest = a.rows[len(a.rows)-1].number
	}
	return f.Position > a.campaign.Position && (a.campaign.Remote || f.Coupon.Number > highest)
}

// end checks what all the facts together must have said.
func (a *factAudit) end() {
	if a.position < a.campaign.Position {
		a.add("counters", "the campaign's last position is %d, the facts end at %d", a.campaign.Position, a.position)
		a.campaign.Position = a.position
	}
	a.compare()
	for _, r := range a.rows {
		if r.state&issuedFact == 0 {
			a.add("facts", "no position issues number %d", r.number)
		}
		if r.state&voidedRow != 0 && r.state&voidedFact == 0 {
			a.add("facts", "no position voids number %d, which is voided", r.number)
		}
	}
}
