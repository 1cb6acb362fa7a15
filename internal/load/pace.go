package load

import "time"

// Kept says how a line's pace was kept, by the instants of the coupons. It is judged while people stood in line, for a
// second or more: a line without people cannot be served.
type Kept struct {
	Share   float64 `json:"share"` // of pace·T that was issued, T less the stalls
	Coupons int64   `json:"coupons"`
	Seconds float64 `json:"seconds"` // T
	// Stalls are the times in which no coupon was issued for 100 ms longer than the pace has between two. What a full bucket
	// makes up for afterwards is not taken out of T.
	Stalls  int     `json:"stalls"`
	Stalled float64 `json:"stalled_seconds"`
	Longest float64 `json:"longest_stall_seconds"`
	// Ahead is by how many coupons more than pace·T were issued in any time T, at the most; Bucket is how many may be.
	Ahead  float64 `json:"ahead"`
	Bucket float64 `json:"bucket"`
}

const (
	stallFrom = 100 * time.Millisecond
	// A pace is not judged by shorter times: a bucket is a tenth of it.
	judgedFrom = time.Second
)

// keptPace judges a pace, or says why it cannot.
func keptPace(c Config, pace *int64, turns []served) (*Kept, string) {
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
			to++ // who is served next stood in line when the one before was served
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

// fullBucket is how much of the pace a line makes up for at once: firstcome.Pace.Take has it.
const fullBucket = 100 * time.Millisecond

// judge adds a time in which people stood in line throughout. The coupons of its first instant were due before it, and at
// its last one there may have been fewer people, or coupons, than turns: both are left out.
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

// ahead finds the time in which most coupons were issued beyond the pace.
func (k *Kept) ahead(turns []served, pace float64) {
	least := 0.0
	for n := range turns {
		// The coupons before this one, less what the pace has had time for.
		before := float64(n) - pace*turns[n].at.Sub(turns[0].at).Seconds()
		if n == 0 || before < least {
			least = before
		}
		k.Ahead = max(k.Ahead, before+1-least)
	}
}
