//go:build !check

package main

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/flow"
	"github.com/firstcome/firstcome/test/services"
	"github.com/firstcome/firstcome/test/stage"
)

// TestF54AnEstimateIsWhatTheReconcileComesTo asks before, and has nothing changed by that.
func TestF54AnEstimateIsWhatTheReconcileComesTo(t *testing.T) {
	ledgers(t, func(t *testing.T, name string) {
		d := behind(t, name)
		before, was := d.do("HGETALL", d.key("campaign")), d.status()
		estimate, err := d.reconciler().Estimate(t.Context(), "c")
		stage.Must(t, err)
		want := flow.Estimate{Recovered: 10, Voided: 1, Behind: 1, Version: 5, Ledger: 1, Gate: 1}
		stage.Same(t, "the estimate", want, estimate)
		after, is := d.do("HGETALL", d.key("campaign")), d.status()
		is.Now = was.Now
		stage.Same(t, "the campaign in the ledger", was, is)
		stage.Same(t, "the campaign at the gate", before.String(), after.String())

		done, err := d.reconciler().Reconcile(t.Context(), "op", "c")
		stage.Must(t, err)
		got := flow.Estimate{Recovered: done.Recovered, Voided: done.Voided, Unexplained: done.Unexplained, Behind: done.Behind, Version: done.Adopted.Version, Ledger: 1, Gate: 1}
		stage.Same(t, "what the reconcile came to", estimate, got)
		if again, err := d.reconciler().Estimate(t.Context(), "c"); !errors.Is(err, flow.ErrNothingToReconcile) {
			t.Errorf("after the reconcile: %+v, %v", again, err)
		}
		if none, err := d.reconciler().Estimate(t.Context(), "none"); !errors.Is(err, flow.ErrNothingToReconcile) {
			t.Errorf("of no campaign: %+v, %v", none, err)
		}
	})
}

// TestF54CouponsThatNoForgottenChangeVoidedAreEstimatedApart has two users' coupons taken from the gate by somebody.
func TestF54CouponsThatNoForgottenChangeVoidedAreEstimatedApart(t *testing.T) {
	d := newDesk(t, services.Redis.Database(t), services.Ledgers[services.SQLite](t), nil, "c")
	d.kept(people("user-", 10)...)
	b := d.backup()
	d.terms(func(t *firstcome.Terms) { t.Quantity = 120 })
	d.do("HDEL", d.key("holders"), "user-1", "user-2")
	d.has("in_force", "8")
	d = b.restore()
	estimate, err := d.reconciler().Estimate(t.Context(), "c")
	stage.Must(t, err)
	if diff := cmp.Diff(flow.Estimate{Unexplained: 2, Behind: 1, Version: 2, Ledger: 1, Gate: 1}, estimate); diff != "" {
		t.Errorf("the estimate (-want +got):\n%s", diff)
	}
}
