package main

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/redis"
	"github.com/firstcome/firstcome/test/stage"
)

// TestAReplayOfWhichNobodyToldTheGateIsBroughtThere has an operator's node die between the ledger
// and the gate, and nobody claim afterwards.
func TestAReplayOfWhichNobodyToldTheGateIsBroughtThere(t *testing.T) {
	r := newRewind(t)
	c := r.issue("c", "user-1", "user-2")
	r.record(c[0])
	r.settleByHand(r.bury(c[1]))
	r.replay()
	r.unrecorded("before anybody looks", 2, 2)
	r.drain()
	r.comes("the replayed coupon", func() bool { return r.issue("c", "user-2")[0].Recorded })
	r.unrecorded("when somebody looked", 2)
	if len(r.alarms) > 0 {
		t.Errorf("there was an alarm: %v", <-r.alarms)
	}
}

// comes waits until something is so.
func (r *rewind) comes(what string, is func() bool) {
	r.t.Helper()
	for end := time.Now().Add(30 * time.Second); !is(); {
		if time.Now().After(end) {
			r.t.Fatalf("%s never came", what)
		}
	}
}

// older returns a desk at the same gate on a copy of the ledger as it is now.
func (r *rewind) older() func() *rewind {
	r.t.Helper()
	path := filepath.Join(r.t.TempDir(), "older.db")
	stage.Must(r.t, r.ledger.Backup(r.t.Context(), path))
	return func() *rewind {
		other := *r
		other.desk = newDeskAt(r.t, r.url, path)
		return &other
	}
}

// expectOlder expects that an operator is told that the ledger is older than the gate knows.
func (r *rewind) expectOlder() {
	r.t.Helper()
	select {
	case err := <-r.alarms:
		if !strings.Contains(err.Error(), "the ledger is older than it was") {
			r.t.Errorf("the alarm is %v", err)
		}
	case <-time.After(30 * time.Second):
		r.t.Error("nobody is told that the ledger is older")
	}
}

// TestALedgerThatIsOlderThanItsGateKnowsOrdersItsDeadLettersBehindIt replaces the ledger by a copy
// from before two replays, and has it bury one more coupon.
func TestALedgerThatIsOlderThanItsGateKnowsOrdersItsDeadLettersBehindIt(t *testing.T) {
	r := newRewind(t)
	c := r.issue("c", "user-1", "user-2", "user-3")
	r.record(c[0])
	r.bury(c[1])
	r.settleByHand(r.bury(c[2]))
	restore := r.older()
	r.replay()
	r.settleByHand(r.replay())
	r.unrecorded("before the loss", 3)

	o := restore()
	o.settleByHand(o.bury(o.issue("c", "user-4")[0]))
	o.unrecorded("while nobody noticed", 4)
	o.drain()
	o.expectOlder()
	o.comes("the dead letter", func() bool { return !o.issue("c", "user-4")[0].Recorded })
	o.unrecorded("when it was noticed", 4, 2, 3, 4)
	o.settle(o.replay())
	o.unrecorded("after a replay", 4, 3, 4)
}

// TestALedgerThatHasForgottenCouponsIsNoticed replaces the ledger by a copy from before two coupons.
func TestALedgerThatHasForgottenCouponsIsNoticed(t *testing.T) {
	r := newRewind(t)
	r.settleByHand(r.record(r.issue("c", "user-1")...))
	restore := r.older()
	r.settleByHand(r.record(r.issue("c", "user-2", "user-3")...))
	o := restore()
	doctored := func(d *desk) string {
		all, err := unretired(t.Context(), d.ledger)
		stage.Must(t, err)
		found := redis.ExamineCampaigns(t.Context(), redis.Options{URL: r.url}, d.ledger.Identity(), placed(d.ledger, all))
		if len(found) != 1 {
			t.Fatalf("found %+v", found)
		}
		return string(found[0].Grade)
	}
	if before, after := doctored(r.desk), doctored(o.desk); before != "OK" || after != "FAIL" {
		t.Errorf("doctor says %s of the ledger and %s of its older copy", before, after)
	}
	o.drain()
	o.expectOlder()
	if _, err := o.ledger.CouponOf(t.Context(), "c", firstcome.UserID("user-2")); err == nil {
		t.Error("the copy is not older")
	}
}
