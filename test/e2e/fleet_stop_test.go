//go:build linux && !check

package e2e_test

import (
	"sync"
	"testing"

	"github.com/firstcome/firstcome"
)

// TestF22AFleetIsRestartedInTurnAtPeakAndNobodyNotices stops each node with SIGTERM
// and starts another, then those who record, and then all nodes at once, while clients
// claim who do not care whether a node is ready.
func TestF22AFleetIsRestartedInTurnAtPeakAndNobodyNotices(t *testing.T) {
	on(t, aRestartInTurn, mariaDB, redisOfPostgreSQL)
}

func aRestartInTurn(t *testing.T, s setup) {
	const callers = 6
	f := s.fleet(t, append(patient, "--shutdown-grace", "60s")...)
	f.create("spring", 10_000_000, firstcome.Recorded)
	crowd := newCrowd("spring")
	var all sync.WaitGroup
	for n := range f.nodes {
		f.call(crowd, n, callers, &all)
	}
	for n := range f.nodes {
		crowd.awaitAnswers(t, 50)
		f.restart(f.nodes, n, f.role...)
		f.call(crowd, n, callers, &all)
	}
	for n := range f.recorders {
		crowd.awaitAnswers(t, 50)
		f.restart(f.recorders, n, "--role", "recorder")
	}
	crowd.awaitAnswers(t, 50)
	var stops sync.WaitGroup
	for n := range f.nodes {
		stops.Go(f.nodes[n].stop)
	}
	stops.Wait()
	all.Wait()
	for _, err := range crowd.errs {
		t.Error(err)
	}
	f.nodes = []*process{f.start(f.role...)}
	f.drained("spring")
	f.verdict(crowd)
}

// call has callers claim at a node until it takes no connections any more.
func (f *fleet) call(c *crowd, n, callers int, all *sync.WaitGroup) {
	address := f.node(n).address()
	for k := range callers {
		who := &caller{crowd: c, address: address, keep: k%2 == 0}
		all.Go(func() { who.claimAll(f.t) })
	}
}

// restart stops one with SIGTERM, which has to end with the exit status 0 within its
// grace, and starts another in its place.
func (f *fleet) restart(all []*process, n int, args ...string) {
	f.t.Helper()
	all[n].stop()
	all[n] = f.start(args...)
}
