//go:build !check

package ledger_test

import (
	"errors"
	"testing"
	"time"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/record"
	"github.com/firstcome/firstcome/internal/recovery"
	"github.com/firstcome/firstcome/test/services"
	"github.com/firstcome/firstcome/test/stage"
)

// TestF18AnOwnerOfWhomTheLedgerDoesNotKnowChangesNothing: the ledger fails over to a replica that has not heard of an attempt. The next owner
// counts the same. Then the first owner goes on.
func TestF18AnOwnerOfWhomTheLedgerDoesNotKnowChangesNothing(t *testing.T) {
	onSeasons(t, func(t *testing.T, s *season, name string) {
		begin := func() recovery.Rebuild {
			r, err := s.a.Epochs.BeginRebuild(t.Context(), "test", "c", 0)
			stage.Must(t, err)
			return r
		}
		first := begin()
		execute(t, services.Beside(t, name), `UPDATE campaigns SET attempt = 0, rebuilding_at = NULL`)
		second := begin()
		mark, err := s.a.Epochs.Refills(t.Context(), "c", func(firstcome.Coupon) error { return nil })
		stage.Must(t, err)
		finish := func(r recovery.Rebuild) error {
			return stage.Err(s.a.Epochs.FinishRebuild(t.Context(), r, recovery.Loaded{Mark: mark}, recovery.Frozen{}))
		}
		b := given(stage.Coupon("c", 4))
		b.Attempt = first.Attempt
		stage.Must(t, s.a.Epochs.GiveUpRebuild(t.Context(), first))
		for what, err := range map[string]error{
			"a heartbeat": s.a.Epochs.Heartbeat(t.Context(), first), "the end of the epoch": finish(first),
			"what is adopted": stage.Err(s.a.Epochs.Adopt(t.Context(), first, recovery.GateState{}, nil, false)),
		} {
			if !errors.Is(err, recovery.ErrSuperseded) {
				t.Errorf("%s of the first owner: %v", what, err)
			}
		}
		if _, err := s.a.Recorder.Record(t.Context(), b); !errors.Is(err, record.ErrRebuilding) {
			t.Errorf("what the first owner records: %v", err)
		}
		s.pass(time.Second)
		stage.Must(t, s.a.Epochs.Heartbeat(t.Context(), second))
		stage.Must(t, finish(second))
	})
}

func TestARunIsRecentWhileNodesReportIt(t *testing.T) {
	onSeasons(t, func(t *testing.T, s *season, _ string) {
		recent := func(what string, want ...string) {
			t.Helper()
			runs, err := s.b.Epochs.RecentRuns(t.Context(), 10*time.Second)
			stage.Must(t, err)
			stage.Same(t, "recent runs "+what, want, runs)
		}
		see := func(id string) { stage.Must(t, s.a.Epochs.SeeRun(t.Context(), recovery.Run{ID: id, Durable: true})) }
		recent("before any report")
		see("one")
		see("two")
		s.pass(9 * time.Second)
		see("two")
		recent("nine seconds later", "one", "two")
		s.pass(time.Second)
		recent("ten seconds behind the report of one", "two")
		durable, seen, err := s.b.Epochs.DurableRun(t.Context(), "one")
		stage.Must(t, err)
		stage.Same(t, "whether the other one is known as durable", []bool{true, true}, []bool{durable, seen})
	})
}
