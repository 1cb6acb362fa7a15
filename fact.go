package firstcome

import "time"

// A Fact is one thing that happened to a coupon in the ledger. The facts of a campaign have the positions 1, 2, 3 and so on, without a gap, in the
// order in which the ledger recorded them.
type Fact struct {
	Position int64
	Kind     FactKind
	Coupon   Coupon // its current state in the ledger: an issued coupon may have been voided since
}

// A FactKind is what happened.
type FactKind string

// The kinds of facts.
const (
	CouponIssued FactKind = "coupon.issued"
	CouponVoided FactKind = "coupon.voided"
)

// At returns when the fact happened, or the zero time if the ledger has lost the coupon.
func (f *Fact) At() time.Time {
	if f.Kind == CouponVoided {
		return f.Coupon.VoidedAt
	}
	return f.Coupon.IssuedAt
}
