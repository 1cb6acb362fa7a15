//go:build !check

package main

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/gate"
	"github.com/firstcome/firstcome/internal/issue"
	"github.com/firstcome/firstcome/test/stage"
)

// older returns a desk at the same gate with a copy of the ledger from now.
func (r *rewind) older() func() *rewind {
	r.t.Helper()
	path := filepath.Join(r.t.TempDir(), "older.db")
	stage.Must(r.t, r.ledger.Backup(r.t.Context(), path))
	return func() *rewind {
		other := *r
		other.desk = newDesk(r.t, r.url, path, nil)
		other.waiter = issue.NewWaiter(&gate.Router{Gate: other.remote.gate, Retired: other.ledger.Gate, Ledger: other.ledger.Recorder})
		stage.Run(r.t, other.waiter.Run)
		return &other
	}
}

// TestWhatALedgerForgetsOfADeadLetterIsToldAsItKnows replaces the ledger with a copy from before a replay.
func TestWhatALedgerForgetsOfADeadLetterIsToldAsItKnows(t *testing.T) {
	r := newRewind(t)
	c := r.issue("c", "user-1", "user-2")
	r.record(c[0])
	r.settleByHand(r.bury(c[1]))
	restore := r.older()
	r.replay()
	r.truth(true, c...)
	o := restore()
	o.truth(true, c[0])
	o.truth(false, c[1])
}

// TestALedgerThatHasForgottenCouponsIsNoticed replaces the ledger with a copy from before two coupons.
func TestALedgerThatHasForgottenCouponsIsNoticed(t *testing.T) {
	r := newRewind(t)
	r.settleByHand(r.record(r.issue("c", "user-1")...))
	restore := r.older()
	r.settleByHand(r.record(r.issue("c", "user-2", "user-3")...))
	o := restore()
	doctored := func(d *desk) string {
		all, err := d.ledger.Reads.Campaigns(t.Context(), "", 10)
		stage.Must(t, err)
		found := gateCampaigns(t.Context(), gateName(r.url), d.ledger, all)
		if len(found) != 1 {
			t.Fatalf("found %+v", found)
		}
		return string(found[0].Grade)
	}
	if before, after := doctored(r.desk), doctored(o.desk); before != "OK" || after != "FAIL" {
		t.Errorf("doctor says %s of the ledger and %s of its older copy", before, after)
	}
	o.drain()
	if err := stage.Next(t, "an alarm", o.alarms); !strings.Contains(err.Error(), "the ledger is older than it was") {
		t.Errorf("the alarm is %v", err)
	}
	if _, err := o.ledger.Gate.CouponOf(t.Context(), "c", firstcome.UserID("user-2")); err == nil {
		t.Error("the copy is not older")
	}
}
