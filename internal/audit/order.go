package audit

import (
	"cmp"
	"slices"
	"time"

	"github.com/firstcome/firstcome"
)

// A decided is a coupon that was decided between two times.
type decided struct {
	number         int64
	sent, received time.Duration
}

// decided returns for each coupon issued during the history when it can have been decided: within the claim that was answered issued. If that answer
// was lost, it is from the sending of the user's first unknown claim to the first answer with the coupon, if any.
func (a *answers) decided() []decided {
	all := make([]decided, 0, len(a.Coupons))
	for n := range a.Claims {
		if c := &a.Claims[n]; c.Outcome == firstcome.Issued && c.Number > a.Before {
			all = append(all, decided{c.Number, c.Sent, c.Received})
		}
	}
	if a.Returned {
		return all // it is unknown which of a user's coupons a lost answer had
	}
	for _, c := range a.Coupons {
		user := a.users[c.User]
		if c.Number > a.Before && user != nil && user.issued == nil && user.unknown != never {
			all = append(all, decided{c.Number, user.unknown, user.told})
		}
	}
	return all
}

// inOrder checks P4, or the same for tickets: if one claim was answered before another was sent, it has the smaller number. It calls breach with two
// claims that break this. By ascending numbers, a coupon breaks it exactly if some smaller or equal number was sent after the coupon's answer.
func inOrder(all []decided, breach func(answered, asked decided)) {
	slices.SortFunc(all, func(x, y decided) int {
		// If two have the same number, which is a breach too, the one sent later comes first, so that the other is compared with it.
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
