//go:build !check

package main

import (
	"context"
	"testing"

	"github.com/firstcome/firstcome/internal/recovery"
	"github.com/firstcome/firstcome/test/services"
	"github.com/firstcome/firstcome/test/stage"
)

// TestF02APromotedReplicaThatHasEverythingIsRebuiltAllTheSame promotes a replica that has all writes of its primary. In one case it also restarts the
// replica, which then has no trace of its primary. Both servers sync before they answer. The replica's data agrees with the ledger, but it would also agree
// if the replica lacked coupons that are not in the ledger yet.
func TestF02APromotedReplicaThatHasEverythingIsRebuiltAllTheSame(t *testing.T) {
	for name, then := range map[string]func(ctx context.Context, p *services.Pair) error{
		"promoted":                func(context.Context, *services.Pair) error { return nil },
		"promoted, and restarted": func(ctx context.Context, p *services.Pair) error { return p.Primary.Restart(ctx) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := services.RedisPair(t, "--appendfsync", "always")
			proxy := services.Through(t, p.Primary.Address())
			at, err := proxy.URL(p.Primary.URL())
			stage.Must(t, err)
			d := newDesk(t, at, services.Ledgers[services.SQLite](t), nil, "c")
			r := d.watch()
			issued := d.issue("c", people("user-", 10)...)
			d.settle(d.record(issued[:5]...))
			stage.Must(t, p.Follow(t.Context())) // it has all writes
			stage.Must(t, p.Promote(t.Context()))
			stage.Must(t, p.Replica.Kill())
			stage.Must(t, then(t.Context(), p))
			proxy.Cut() // before the promotion, so that no rebuild at the new server is cut off
			proxy.SetUpstream(p.Primary.Address())
			proxy.Heal()
			stage.Same(t, "a rebuild, and the lost numbers", recovery.Stats{Finished: 1, Lost: 90}, d.decides(r))
			stage.Same(t, "epoch and coupons in the ledger", []int64{2, 10}, []int64{d.status().Epoch, d.status().Issued})
			stage.Same(t, "the first and the last who had a coupon, and the next one", []string{"already_issued:1", "already_issued:10", "issued:101"},
				d.claims("user-0", "user-9", "new"))
		})
	}
}
