package recovery

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/firstcome/firstcome/internal/wait"
)

// A reachedRuns knows which servers of the gate this node reaches.
type reachedRuns struct {
	ledger Runs

	mu    sync.Mutex // guards what follows
	runs  []Run      // as last seen
	since time.Time  // when this node first saw them
}

// note notes the runs of the gate's servers in the ledger, and since when this process has seen them.
func (s *reachedRuns) note(ctx context.Context, runs []Run) error {
	for _, run := range runs {
		if err := s.ledger.SeeRun(ctx, run); err != nil {
			return err
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if !slices.Equal(runs, s.runs) {
		s.runs, s.since = runs, time.Now()
	}
	return nil
}

// report keeps reporting the runs that this node sees, also during a look or a rebuild.
func (s *reachedRuns) report(ctx context.Context) {
	for wait.Sleep(ctx, reportEvery) == nil {
		s.mu.Lock()
		runs := s.runs
		s.mu.Unlock()
		for _, run := range runs {
			_ = s.ledger.SeeRun(ctx, run) // the next report follows soon
		}
	}
}

// agreed reports whether every node that reported recently reaches the same server as this node.
func (s *reachedRuns) agreed(ctx context.Context) bool {
	s.mu.Lock()
	runs, since := s.runs, s.since
	s.mu.Unlock()
	if time.Since(since) < agreeTime {
		return false
	}
	recent, err := s.ledger.RecentRuns(ctx, agreeTime)
	return err == nil && !slices.ContainsFunc(recent, func(id string) bool {
		return !slices.ContainsFunc(runs, func(run Run) bool { return run.ID == id })
	})
}

// from returns since when this node has seen the current runs.
func (s *reachedRuns) from() time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.since
}
