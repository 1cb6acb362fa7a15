//go:build !check

package main

import (
	"errors"
	"testing"
	"time"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/follow"
	"github.com/firstcome/firstcome/internal/record"
	"github.com/firstcome/firstcome/test/services"
	"github.com/firstcome/firstcome/test/stage"
)

// TestF54WhoFollowsTheFactsStopsAtAReconcile has ten facts of a campaign in the backup, eight of which are noted as published. After the backup come another
// coupon, its void and six more coupons. The publisher outlives the restored backup, and notes that it has published all facts. The reconcile restores the
// coupons with another order of facts.
func TestF54WhoFollowsTheFactsStopsAtAReconcile(t *testing.T) {
	ledgers(t, func(t *testing.T, name string) {
		d := newDesk(t, services.Redis.Database(t), name, nil, "c", "d")
		d.kept(people("user-", 10)...)
		f, err := d.ledger.Followers.Follow(t.Context(), "kafka/one", "a node", time.Minute)
		stage.Must(t, err)
		f.Target = "id"
		notes := func(d *desk, end, position int64) error {
			f.Ends = []int64{end}
			return d.ledger.Followers.Followed(t.Context(), f, time.Minute, []follow.Cursor{{Campaign: "c", Position: position}})
		}
		stage.Must(t, notes(d, 8, 8))
		b := d.backup()
		d.kept("more")
		d.reaches("c", stage.Err(d.ledger.Campaigns.Void(t.Context(), "op", "c", 11, "a trial")))
		d.kept(people("late-", 6)...)
		stage.Must(t, notes(d, 18, 18))
		d = b.restore()
		stage.Must(t, notes(d, 18, 18)) // it never lost its lease
		stage.Must(t, stage.Err(d.ledger.Followers.Follow(t.Context(), "kafka/two", "another node", time.Minute)))

		done, err := d.rebuilder().Reconcile(t.Context(), "op", "c")
		stage.Must(t, err)
		stage.Same(t, "where who follows begins again", int64(1), done.FactsFrom) // kafka/two has nothing
		stage.Same(t, "who follows", []string{"kafka/one", "kafka/two"}, done.Followers)
		if err := notes(d, 19, 19); !errors.Is(err, follow.ErrFollowed) {
			t.Errorf("a publisher that outlived the backup notes facts again: %v", err)
		}
		top := d.status().Position
		at, err := d.ledger.Followers.CursorOf(t.Context(), "kafka/one", "c")
		stage.Must(t, err)
		stage.Same(t, "the cursor", follow.Cursor{Campaign: "c", Position: 10, Top: top, State: follow.Ahead}, at)
		behind, err := d.ledger.Followers.Behind(t.Context(), "kafka/one", 9)
		stage.Must(t, err)
		stage.Same(t, "how many campaigns have facts to be published", 0, len(behind))

		stage.Must(t, d.ledger.Followers.ReplayFacts(t.Context(), "op", "kafka/one", "c", 11))
		behind, err = d.ledger.Followers.Behind(t.Context(), "kafka/one", 9)
		stage.Must(t, err)
		stage.Same(t, "what is to be published again", []follow.Cursor{{Campaign: "c", Position: 10, Top: top, State: follow.Again}}, behind)
	})
}

// TestF54AReconcileWithoutNewFactsIsReplayedBehindTheLast lets the ledger forget only a pause, so a replay begins after the last fact.
func TestF54AReconcileWithoutNewFactsIsReplayedBehindTheLast(t *testing.T) {
	d := newDesk(t, services.Redis.Database(t), services.Ledgers[services.SQLite](t), nil, "c")
	d.kept(people("user-", 3)...)
	f, err := d.ledger.Followers.Follow(t.Context(), "kafka/one", "a node", time.Minute)
	stage.Must(t, err)
	stage.Must(t, d.ledger.Followers.Followed(t.Context(), f, time.Minute, []follow.Cursor{{Campaign: "c", Position: 3}}))
	b := d.backup()
	d.turn(firstcome.ChangePause)
	d = b.restore()
	done, err := d.rebuilder().Reconcile(t.Context(), "op", "c")
	stage.Must(t, err)
	stage.Same(t, "where who follows begins again", int64(4), done.FactsFrom)
	stage.Must(t, d.ledger.Followers.ReplayFacts(t.Context(), "op", "kafka/one", "c", done.FactsFrom))
	d.turn(firstcome.ChangeResume)
	late, err := d.remote.gate.Claim(t.Context(), "c", []firstcome.UserID{"late"})
	stage.Must(t, err)
	stage.Must(t, stage.Err(d.ledger.Recorder.Record(t.Context(), record.Batch{Campaign: "c", Epoch: d.status().Epoch, Coupons: []firstcome.Coupon{late[0].Coupon}})))
	behind, err := d.ledger.Followers.Behind(t.Context(), "kafka/one", 9)
	stage.Must(t, err)
	stage.Same(t, "what is to be published", []follow.Cursor{{Campaign: "c", Position: 3, Top: 4, State: follow.Again}}, behind)
}
