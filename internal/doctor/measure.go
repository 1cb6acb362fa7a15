package doctor

import (
	"slices"
	"time"
)

const (
	// Rounds is how many rounds Median takes. It is odd, and large enough that the median is neither the
	// first round, which fills caches, nor one of a few rounds that something else delayed.
	Rounds = 11
	// tolerated is how far a server's clock may be from this machine's. NTP keeps clocks far closer, and
	// nobody notices that a campaign opens a second early.
	tolerated = time.Second
)

// Median returns the median of how long Rounds rounds take, to ten microseconds. It stops at the first error
// of a round and returns that error as it is.
func Median(round func() error) (time.Duration, error) {
	took := make([]time.Duration, Rounds)
	for n := range took {
		started := time.Now()
		if err := round(); err != nil {
			return 0, err
		}
		took[n] = time.Since(started)
	}
	slices.Sort(took)
	return took[Rounds/2].Round(10 * time.Microsecond), nil
}

// Clock adds how far a server's clock is from this machine's: OK within a second, and Warn otherwise. It assumes that the request takes as long as
// the answer. If read fails, Clock adds nothing and returns that error as it is.
func (f *Findings) Clock(what, fix string, read func() (time.Time, error)) error {
	before := time.Now()
	server, err := read()
	if err != nil {
		return err
	}
	middle := before.Add(time.Since(before) / 2)
	apart := server.Sub(middle)
	f.Hold(apart.Abs() <= tolerated, Warn, what, fix, "%v from this machine's", apart.Round(time.Millisecond))
	return nil
}
