package audit

import (
	"cmp"
	"slices"

	"github.com/firstcome/firstcome"
)

// A Ranked is the rank of a coupon, and the id of its prize, which is empty if its campaign has no prizes.
type Ranked struct {
	Rank  int64
	Prize string
}

// A Prize is a prize of a campaign, for the ranks From to To.
type Prize struct {
	ID       string
	From, To int64
}

// ranks checks P10: among the server's coupons, and in each answer.
func (a *answers) ranks() {
	if a.Ranks == nil {
		return
	}
	lost := slices.SortedFunc(slices.Values(a.Lost), func(x, y firstcome.Range) int { return cmp.Compare(x.First, y.First) })
	last, below := int64(0), int64(0) // below counts lost numbers
	for n := range a.Coupons {
		number, is := a.Coupons[n].Number, a.Ranks[n]
		for ; len(lost) > 0 && lost[0].First < number; lost = lost[1:] {
			below += lost[0].Count
		}
		switch {
		case is.Rank <= last:
			a.add("P10", "number %d has rank %d on the server, and a lower number has rank %d", number, is.Rank, last)
		case is.Rank > number || is.Rank < number-below:
			a.add("P10", "number %d has rank %d on the server, and %d lower numbers were lost", number, is.Rank, below)
		}
		a.prize(number, is)
		last = max(last, is.Rank)
	}
	for n := range a.Claims {
		c := &a.Claims[n]
		if !c.Outcome.HasCoupon() {
			continue
		}
		a.prize(c.Number, c.Ranked)
		if at, found := a.find(c.Number); found && a.Ranks[at] != c.Ranked {
			a.add("P10", "number %d was answered to the user %q with rank %d and the prize %q, on the server it has rank %d and the prize %q",
				c.Number, c.User, c.Rank, c.Prize, a.Ranks[at].Rank, a.Ranks[at].Prize)
		}
	}
}

// prize checks that a number's prize is the one that the campaign has for its rank.
func (a *answers) prize(number int64, is Ranked) {
	want := ""
	for _, p := range a.Prizes {
		if p.From <= is.Rank && is.Rank <= p.To {
			want = p.ID
		}
	}
	if is.Prize != want {
		a.add("P10", "number %d of rank %d has the prize %q, but by the campaign's prizes %q", number, is.Rank, is.Prize, want)
	}
}
