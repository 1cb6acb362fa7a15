//go:build linux && soak && !race

package e2e_test

import (
	"slices"
	"testing"
	"time"

	"github.com/firstcome/firstcome"
)

// TestF26RetriesWithoutPauseDoNotCollapse has every client ask five times more without pause or patience, at
// one node after the other. That is six times the requests, so a sixth of the users a second would be fair; half
// of that is the bound, against one attempt in the same rounds.
func TestF26RetriesWithoutPauseDoNotCollapse(t *testing.T) {
	for _, s := range withSQLite() { // one after the other, because they would slow each other
		t.Run(s.name, func(t *testing.T) {
			f := s.fleet(t, patient...)
			f.create("calm", 10_000_000, firstcome.Recorded)
			f.create("storm", 10_000_000, firstcome.Recorded)
			calm, storm := newCrowd("calm"), newCrowd("storm")
			notCollapsing(t, f.nodes, calm, storm, rounds(100, 200))
			f.verdict(calm)
			f.verdict(storm)
		})
	}
}

// rate is rush, and returns how many users a second were answered.
func (c *crowd) rate(t *testing.T, nodes []*process, users, attempts int) float64 {
	t.Helper()
	started := time.Now()
	c.rush(t, nodes, users, attempts)
	return float64(users) / time.Since(started).Seconds()
}

// notCollapsing has users of one crowd claim once and those of another six times at once,
// in turn, with as many claims in each. So whatever else the machine does, it does to both: a
// round's ratio is of the storm to the calm before and after it, and the median of the rounds
// is the verdict.
func notCollapsing(t *testing.T, nodes []*process, calm, storm *crowd, users int) {
	t.Helper()
	const attempts, rounds = 6, 5
	storm.rush(t, nodes, users, attempts) // connections are made, and caches filled
	before := calm.rate(t, nodes, users*attempts, 1)
	ratios := make([]float64, rounds)
	for n := range ratios {
		often := storm.rate(t, nodes, users, attempts)
		after := calm.rate(t, nodes, users*attempts, 1)
		ratios[n] = 2 * often / (before + after)
		t.Logf("%.0f users a second who claim once, then %.0f who claim %d times at once, then %.0f: %.3f", before, often, attempts, after, ratios[n])
		before = after
	}
	slices.Sort(ratios)
	if median := ratios[rounds/2]; median < 1/float64(attempts)/2 {
		t.Errorf("the useful answers fell to %.3f of those without retries", median)
	}
}
