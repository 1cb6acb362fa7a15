package doctor

import (
	"slices"
	"time"
)

const (
	// Rounds is how many rounds Median takes: odd, and enough that neither the first, which
	// warms what is cold, nor a few that something else delayed are the median.
	Rounds = 11
	// tolerated is how far a server's clock may be from this machine's: NTP keeps clocks
	// far closer, and nobody sees a campaign open a second early.
	tolerated = time.Second
)

// Median returns how long something takes: the median of all Rounds, to ten microseconds.
// The first error of a round ends it and is returned as it is.
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

// Clock adds how far the clock that a server reads is from this machine's: OK within a
// second, and else a Warn. What the reading itself takes is taken for the same both ways.
// The error is that of the reading, as it is; then nothing is added.
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
