package load

import "time"

// Kept is how a line's pace was kept, by the times of the coupons. It is judged while users were in line for a second or more: an empty line cannot
// be served.
type Kept struct {
	Share   float64 `json:"share"` // the share of pace·T that was issued, where T is without stalls
	Coupons int64   `json:"coupons"`
	Seconds float64 `json:"seconds"` // T
	// Stalls is how often no coupon was issued for 100 ms longer than the time between two coupons at the pace. Time that a full bucket makes up for
	// afterwards stays in T.
	Stalls  int     `json:"stalls"`
	Stalled float64 `json:"stalled_seconds"`
	Longest float64 `json:"longest_stall_seconds"`
	// Ahead is the most coupons beyond pace·T that were issued in any time T. Bucket is how many may be.
	Ahead  float64 `json:"ahead"`
	Bucket float64 `json:"bucket"`
}

const (
	stallFrom = 100 * time.Millisecond
	// judgedFrom is the shortest time by which a pace is judged: a bucket is a tenth of it.
	judgedFrom = time.Second
)

// keptPace judges a pace, or returns why it cannot.
func keptPace(c Options, pace *int64, turns []served) (*Kept, string) {
	switch {
	case pace == nil:
		return nil, "the line has no pace"
	case c.Others:
		return nil, "others were served too"
	}
	k := &Kept{Bucket: max(1, fullBucket.Seconds()*float64(*pace))}
	turn := time.Second / time.Duration(*pace)
	k.ahead(turns, float64(*pace))
	for from := 0; from < len(turns); {
		to := from + 1
		for to < len(turns) && !turns[to].received.After(turns[to-1].at) {
			to++ // the next user was in line when the previous one was served
		}
		k.judge(turns[from:to], turn)
		from = to
	}
	if k.Seconds == 0 {
		return nil, "nobody stood in line for a second"
	}
	k.Share = float64(k.Coupons) / (k.Seconds * float64(*pace))
	return k, ""
}

// fullBucket is the size of the bucket as time, as in firstcome.Pace.Take.
const fullBucket = 100 * time.Millisecond

// judge adds a time during which users were always in line. It leaves out the coupons of the first time, which were due before it, and of the last
// one, when there may have been fewer users or coupons than turns.
func (k *Kept) judge(turns []served, turn time.Duration) {
	first, last := turns[0].at, turns[len(turns)-1].at
	for len(turns) > 0 && turns[len(turns)-1].at.Equal(last) {
		turns = turns[:len(turns)-1]
	}
	if len(turns) == 0 || turns[len(turns)-1].at.Sub(first) < judgedFrom {
		return
	}
	took := turns[len(turns)-1].at.Sub(first)
	for n := 1; n < len(turns); n++ {
		if turns[n].at.After(first) {
			k.Coupons++
		}
		if gap := turns[n].at.Sub(turns[n-1].at); gap > turn+stallFrom {
			k.Stalls++
			k.Stalled += gap.Seconds()
			k.Longest = max(k.Longest, gap.Seconds())
			took -= gap - max(fullBucket, turn)
		}
	}
	k.Seconds += took.Seconds()
}

// ahead finds the time in which the most coupons beyond the pace were issued.
func (k *Kept) ahead(turns []served, pace float64) {
	least := 0.0
	for n := range turns {
		// The coupons before this one, minus those for which the pace had time.
		before := float64(n) - pace*turns[n].at.Sub(turns[0].at).Seconds()
		if n == 0 || before < least {
			least = before
		}
		k.Ahead = max(k.Ahead, before+1-least)
	}
}
