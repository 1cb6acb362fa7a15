//go:build !check && (!race || soak)

package main

import (
	"fmt"
	"testing"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/gate"
	"github.com/firstcome/firstcome/test/services"
	"github.com/firstcome/firstcome/test/stage"
)

// TestF01AServerOfAClusterThatIsDownForGoodKeepsNoOthersCampaignFromBeingVerified kills the server that has the gate's name, and does not start it
// again. Then another server restarts, which syncs before it answers.
func TestF01AServerOfAClusterThatIsDownForGoodKeepsNoOthersCampaignFromBeingVerified(t *testing.T) {
	t.Parallel()
	cluster := services.RedisCluster(t, 3, "--appendfsync", "always", "--cluster-require-full-coverage", "no")
	var ids []firstcome.CampaignID
	for n := range 12 {
		ids = append(ids, firstcome.CampaignID(fmt.Sprint("c", n)))
	}
	d := newDesk(t, cluster.URL(), services.Ledgers[services.SQLite](t), nil, ids...)
	r := d.watch()
	stage.Await(t, "a note of each server's run", 3, func() (seen int) {
		stage.Must(t, services.Beside(t, d.name).QueryRow(`SELECT count(*) FROM gate_runs WHERE durable`).Scan(&seen))
		return seen
	})
	gone, err := cluster.Master(t.Context(), "firstcome:instance")
	stage.Must(t, err)
	var there []firstcome.CampaignID // campaigns on the server that restarts
	var restarted *services.Server
	for _, id := range ids {
		d.issue(id, "somebody")
		key, err := cluster.Find(t.Context(), "firstcome:{"+string(id)+":*}:campaign")
		stage.Must(t, err)
		at, err := cluster.Master(t.Context(), key)
		stage.Must(t, err)
		if at != gone && (restarted == nil || at == restarted) {
			restarted, there = at, append(there, id)
		}
	}
	if restarted == nil {
		t.Fatal("no campaign is at another server than the gate's name")
	}
	stage.Must(t, gone.Kill())
	stage.Must(t, restarted.Kill())
	stage.Must(t, restarted.Restart(t.Context()))
	stage.Await(t, "each campaign there verified", int64(len(there)), func() int64 {
		for _, id := range there {
			r.Suspect(id, gate.ErrUnverified) // like a claim that the gate does not decide
		}
		return r.Stats().Verified
	})
	for _, id := range there {
		decisions, err := d.remote.gate.Claim(t.Context(), id, []firstcome.UserID{"somebody"})
		if err != nil || decisions[0].Outcome != firstcome.AlreadyIssued {
			t.Errorf("a user with a coupon of %s is answered %v, %v", id, decisions, err)
		}
	}
	if got := r.Stats(); got.Begun != 0 {
		t.Errorf("%+v: a rebuild has begun", got)
	}
}
