//go:build linux && !check

package e2e_test

import (
	"context"
	"slices"

	"github.com/firstcome/firstcome/client"
	"github.com/firstcome/firstcome/internal/point"
	"github.com/firstcome/firstcome/test/stage"
)

// ofReconciles are the points of a reconcile.
var ofReconciles = []point.Point{point.Adopted, point.Brought}

// forgetAndReconcile returns what has a campaign reconciled again and again, each time after a change that its gate has and its ledger does not, as
// after a restored backup.
func (r *pointRound) forgetAndReconcile() func(ctx context.Context, c *client.Client, id string, times int64) error {
	done := true
	return func(ctx context.Context, c *client.Client, id string, _ int64) error {
		if done {
			r.forget(id)
		}
		_, err := c.Operator().Reconcile(ctx, id)
		done = err == nil
		return err
	}
}

// forget has the gate of a campaign be at one version more than its ledger.
func (r *pointRound) forget(id string) {
	r.t.Helper()
	const one = `return redis.call('HINCRBY', redis.call('KEYS', ARGV[1])[1], 'version', 1)`
	gate := r.args[slices.Index(r.args, "--gate")+1]
	stage.Must(r.t, tellRedis(r.t, gate, "EVAL", one, "0", "firstcome:{"+id+":*}:campaign").Error())
}

// reconciled has the node that lives end a reconcile that another one began. Until then it may not have noticed that the ledger is an older one.
func (r *pointRound) reconciled(id string) {
	r.t.Helper()
	if campaign, err := r.node(0).calls.Campaign(r.t.Context(), id); err != nil || campaign.GateState == "ok" {
		r.t.Errorf("%s: after a reconcile that was cut off its gate is %q, %v", id, campaign.GateState, err)
	}
	err := r.insist(func() error { return stage.Err(r.node(0).calls.Operator().Reconcile(r.t.Context(), id)) })
	if err != nil {
		r.t.Errorf("%s: the reconcile after the fault: %v", id, err)
	}
}
