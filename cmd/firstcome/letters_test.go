package main

import (
	"context"
	"database/sql"
	"path/filepath"
	"strings"
	"testing"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/flow"
	"github.com/firstcome/firstcome/internal/ledger"
	"github.com/firstcome/firstcome/internal/redis"
	"github.com/firstcome/firstcome/test/services"
	"github.com/firstcome/firstcome/test/stage"
)

// A desk is a ledger and a gate, and what recorders and operators do there by hand.
type desk struct {
	*node
	t    *testing.T
	path string // of the ledger, if it is a file
}

// newDesk returns a desk with a ledger in a file and the campaign c.
func newDesk(t *testing.T) *desk {
	t.Helper()
	path := filepath.Join(t.TempDir(), "firstcome.db")
	d := newDeskOn(t, path, "c")
	d.path = path
	return d
}

// newDeskOn returns a desk with a ledger and campaigns.
func newDeskOn(t *testing.T, name string, campaigns ...firstcome.CampaignID) *desk {
	t.Helper()
	return newDeskAt(t, services.Redis.Database(t), name, campaigns...)
}

// newDeskAt returns a desk of a node at a Redis, and makes campaigns.
func newDeskAt(t *testing.T, url, name string, campaigns ...firstcome.CampaignID) *desk {
	t.Helper()
	secret, err := firstcome.NewSecret([]byte(strings.Repeat("s", firstcome.MinSecret)))
	stage.Must(t, err)
	d := &desk{node: &node{}, t: t}
	gate, err := redis.Open(t.Context(), redis.Options{
		URL: url, Secret: secret,
		Ledger: d.identity, Marker: d.marker, Missing: d.missing, SettledSince: d.settledSince,
	})
	stage.Must(t, err)
	t.Cleanup(gate.Close)
	d.remote = &remoteGate{gate: gate}
	d.ledger, err = ledger.Open(t.Context(), name, ledger.Options{Secret: secret, Gate: gate.Name()})
	stage.Must(t, err)
	ctx, stop := context.WithCancel(context.Background())
	ran := make(chan error, 1)
	go func() { ran <- d.ledger.Run(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := <-ran; err != nil {
			t.Error(err)
		}
		if err := d.ledger.Close(); err != nil {
			t.Error(err)
		}
	})
	terms := firstcome.Terms{Name: "Test", Quantity: 100, Answer: firstcome.Recorded, Benefit: []byte(`{}`)}
	for _, id := range campaigns {
		if _, err := d.ledger.Create(t.Context(), "test", id, terms); err != nil {
			t.Fatal(err)
		}
		stage.Must(t, flow.NewChanger(d.ledger, gate, nil).Finish(t.Context(), id, 1))
	}
	return d
}

// issue returns the coupons of a campaign's new users.
func (d *desk) issue(id firstcome.CampaignID, users ...firstcome.UserID) (coupons []firstcome.Coupon) {
	d.t.Helper()
	decisions, err := d.remote.gate.Claim(d.t.Context(), id, users)
	stage.Must(d.t, err)
	for _, one := range decisions {
		coupons = append(coupons, one.Coupon)
	}
	return coupons
}

func (d *desk) record(coupons ...firstcome.Coupon) flow.Settled {
	d.t.Helper()
	return d.must(d.ledger.Record(d.t.Context(), "c", coupons))
}

func (d *desk) bury(c firstcome.Coupon) flow.Settled {
	d.t.Helper()
	return d.must(d.ledger.Bury(d.t.Context(), "c", []flow.DeadLetter{{Coupon: c, Cause: "a trial"}}))
}

// replay replays the first open dead letter.
func (d *desk) replay() flow.Settled {
	d.t.Helper()
	open, err := d.ledger.DeadLetters(d.t.Context(), ledger.Letters{Limit: 1})
	if err != nil || len(open) == 0 {
		d.t.Fatal("no dead letter", err)
	}
	return d.must(d.ledger.Replay(d.t.Context(), "op", open[0].ID))
}

func (d *desk) must(settled flow.Settled, err error) flow.Settled {
	d.t.Helper()
	stage.Must(d.t, err)
	return settled
}

// settle tells the gate.
func (d *desk) settle(settled flow.Settled) {
	d.t.Helper()
	stage.Must(d.t, d.remote.gate.Settle(d.t.Context(), "c", settled))
}

// unrecorded expects which of a campaign's numbers are unrecorded at the gate, settled through a number.
func (d *desk) unrecorded(what string, through int64, want ...int64) {
	d.t.Helper()
	var numbers []int64
	for n := range through {
		numbers = append(numbers, n+1)
	}
	s, err := d.remote.gate.SettledThrough(d.t.Context(), "c", numbers)
	stage.Must(d.t, err)
	if s.Through != through || len(s.Unrecorded) != len(want) {
		d.t.Fatalf("%s: settled through %d, %v are unrecorded, want %d and %v", what, s.Through, s.Unrecorded, through, want)
	}
	for n := range want {
		if s.Unrecorded[n] != want[n] {
			d.t.Errorf("%s: %v are unrecorded, want %v", what, s.Unrecorded, want)
		}
	}
}

// TestF23ASettlingThatComesAfterAnOperatorsReplayPutsNothingBack has a recorder that is
// frozen between the ledger and the gate.
func TestF23ASettlingThatComesAfterAnOperatorsReplayPutsNothingBack(t *testing.T) {
	d := newDesk(t)
	c := d.issue("c", "user-1", "user-2", "user-3", "user-4")
	d.settle(d.record(c[0], c[1]))
	frozen := []flow.Settled{d.bury(c[2]), d.record(c[3])}
	d.unrecorded("while it is frozen", 2)
	d.settle(d.replay())
	d.unrecorded("after the replay", 4)
	for _, late := range frozen {
		d.settle(late)
		d.unrecorded("when it goes on", 4)
	}
	gate := flow.Over{RemoteGate: d.remote.gate, Book: d.ledger}
	if has, err := gate.Has(t.Context(), "c", c[2:3]); err != nil || !has[0] {
		t.Errorf("the coupon is recorded: %v, %v", has, err)
	}
}

func TestSettlingsMayReachTheGateInAnyOrder(t *testing.T) {
	d := newDesk(t)
	c := d.issue("c", "user-1", "user-2", "user-3")
	early, dead := d.record(c[0]), d.bury(c[1])
	d.settle(d.record(c[2]))
	for _, late := range []flow.Settled{dead, early, dead} {
		d.unrecorded("before and after what is late", 3, 2)
		d.settle(late)
	}
	d.settle(d.replay())
	d.settle(dead)
	d.unrecorded("after the replay", 3)
}

// TestALostNumberThatTurnsOutToBeADeadLetterIsKnownAtTheGate buries a number that was settled before.
func TestALostNumberThatTurnsOutToBeADeadLetterIsKnownAtTheGate(t *testing.T) {
	d := newDesk(t)
	c := d.issue("c", "user-1", "user-2", "user-3")
	d.record(c[0])
	db, err := sql.Open("sqlite", d.path)
	stage.Must(t, err)
	defer db.Close()
	for _, s := range []string{`INSERT INTO lost VALUES ('c', 2, 1, 2)`, `UPDATE campaigns SET epoch = 2`} {
		if _, err := db.Exec(s); err != nil {
			t.Fatal(err)
		}
	}
	c[2].Epoch = 2
	d.settle(d.record(c[2]))
	d.unrecorded("as it is lost", 3)
	d.settle(d.bury(c[1]))
	d.unrecorded("when it was found", 3, 2)
}
