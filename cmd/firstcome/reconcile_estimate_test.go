//go:build !check

package main

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/recovery"
	"github.com/firstcome/firstcome/test/services"
	"github.com/firstcome/firstcome/test/stage"
)

// TestF54AnEstimateIsWhatTheReconcileComesTo asks for an estimate before a reconcile, and expects that this changes nothing.
func TestF54AnEstimateIsWhatTheReconcileComesTo(t *testing.T) {
	ledgers(t, func(t *testing.T, name string) {
		d := behind(t, name)
		before, was := d.do("HGETALL", d.key("campaign")), d.status()
		estimate, err := d.rebuilder().Estimate(t.Context(), "c")
		stage.Must(t, err)
		want := recovery.Estimate{Recovered: 10, Voided: 1, Behind: 1, Version: 5, Ledger: 1, Gate: 1}
		stage.Same(t, "the estimate", want, estimate)
		after, is := d.do("HGETALL", d.key("campaign")), d.status()
		is.Now, is.Clock = was.Now, was.Clock
		stage.Same(t, "the campaign in the ledger", was, is)
		stage.Same(t, "the campaign at the gate", before.String(), after.String())

		done, err := d.rebuilder().Reconcile(t.Context(), "op", "c")
		stage.Must(t, err)
		got := recovery.Estimate{Recovered: done.Recovered, Voided: done.Voided, Unexplained: done.Unexplained, Behind: done.Behind, Version: done.Adopted.Version, Ledger: 1, Gate: 1}
		stage.Same(t, "what the reconcile came to", estimate, got)
		if again, err := d.rebuilder().Estimate(t.Context(), "c"); !errors.Is(err, recovery.ErrNothingToReconcile) {
			t.Errorf("after the reconcile: %+v, %v", again, err)
		}
		if none, err := d.rebuilder().Estimate(t.Context(), "none"); !errors.Is(err, recovery.ErrNothingToReconcile) {
			t.Errorf("of no campaign: %+v, %v", none, err)
		}
	})
}

// TestF54VoidsThatTheLedgerForgotAreSeenAlsoAtARedisThatRestarted voids three coupons after the backup. They count as voided if Redis cannot have lost data,
// and otherwise as unexplained.
func TestF54VoidsThatTheLedgerForgotAreSeenAlsoAtARedisThatRestarted(t *testing.T) {
	for fsync, want := range map[string]recovery.Adopted{"always": {Voided: 3}, "everysec": {Unexplained: 3}} {
		t.Run(fsync, func(t *testing.T) {
			server := services.Redis.Server(t, "--appendfsync", fsync)
			d := newDesk(t, server.URL(), services.Ledgers[services.SQLite](t), nil, "c")
			d.watch()
			d.kept(people("user-", 10)...)
			b := d.backup()
			for number := range int64(3) {
				d.reaches("c", stage.Err(d.ledger.Campaigns.Void(t.Context(), "op", "c", number+1, "a trial")))
			}
			stage.Must(t, server.Restart(t.Context()))
			d = b.restore()
			estimate, err := d.rebuilder().Estimate(t.Context(), "c")
			stage.Must(t, err)
			stage.Same(t, "the estimate", recovery.Estimate{Voided: want.Voided, Unexplained: want.Unexplained, Behind: 1, Version: 4, Ledger: 1, Gate: 1}, estimate)
			done, err := d.rebuilder().Reconcile(t.Context(), "op", "c")
			stage.Must(t, err)
			stage.Same(t, "voided, and unexplained", [2]int64{want.Voided, want.Unexplained}, [2]int64{done.Voided, done.Unexplained})
		})
	}
}

// TestF54CouponsThatNoForgottenChangeVoidedAreEstimatedApart deletes two users' coupons at the gate.
func TestF54CouponsThatNoForgottenChangeVoidedAreEstimatedApart(t *testing.T) {
	d := newDesk(t, services.Redis.Database(t), services.Ledgers[services.SQLite](t), nil, "c")
	d.kept(people("user-", 10)...)
	b := d.backup()
	d.terms(func(t *firstcome.Terms) { t.Quantity = 120 })
	d.do("HDEL", d.key("holders"), "user-1", "user-2")
	d.has("in_force", "8")
	d = b.restore()
	estimate, err := d.rebuilder().Estimate(t.Context(), "c")
	stage.Must(t, err)
	if diff := cmp.Diff(recovery.Estimate{Unexplained: 2, Behind: 1, Version: 2, Ledger: 1, Gate: 1}, estimate); diff != "" {
		t.Errorf("the estimate (-want +got):\n%s", diff)
	}
}
