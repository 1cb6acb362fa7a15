package audit

import (
	"cmp"
	"slices"
	"time"

	"github.com/firstcome/firstcome"
)

// A decided coupon is one whose decision fell between two instants.
type decided struct {
	number         int64
	sent, received time.Duration
}

// decided returns for each coupon made during the history when its decision can
// have fallen: within the claim that was answered issued; else, after a lost
// answer, from the first unknown claim of its user to the first answer that
// names it, if any.
func (a *answers) decided() []decided {
	all := make([]decided, 0, len(a.Coupons))
	for n := range a.Claims {
		if c := &a.Claims[n]; c.Outcome == firstcome.Issued && c.Number > a.Before {
			all = append(all, decided{c.Number, c.Sent, c.Received})
		}
	}
	if a.Returned {
		return all // which of a user's coupons a lost answer named is not known
	}
	for _, c := range a.Coupons {
		user := a.users[c.User]
		if c.Number > a.Before && user != nil && user.issued == nil && user.unknown != never {
			all = append(all, decided{c.Number, user.unknown, user.told})
		}
	}
	return all
}

// inOrder checks P4, or the same of tickets: if one decision's claim was answered before another's was
// sent, its number is the smaller. breach gets two of which it is not so. By ascending numbers, a coupon breaks that
// exactly if the latest sending among the numbers not above is after its receipt.
func inOrder(all []decided, breach func(answered, asked decided)) {
	slices.SortFunc(all, func(x, y decided) int {
		// Of two with one number, which is a breach too, the later sent stands first
		// so that the other sees it.
		return cmp.Or(cmp.Compare(x.number, y.number), cmp.Compare(y.sent, x.sent))
	})
	var latest decided
	for n, d := range all {
		if n > 0 && latest.sent > d.received {
			breach(d, latest)
		}
		if n == 0 || d.sent > latest.sent {
			latest = d
		}
	}
}
