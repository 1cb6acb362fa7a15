//go:build !check

package main

import (
	"testing"

	"github.com/firstcome/firstcome/internal/gate"
	"github.com/firstcome/firstcome/internal/recovery"
	"github.com/firstcome/firstcome/test/services"
	"github.com/firstcome/firstcome/test/stage"
)

// TestAnOrderToRebuildWhatIsLostVerifiesFirst orders a rebuild of all lost campaigns, as firstcome gate rebuild --all does, while a Redis
// that syncs before it answers has just started again. It has lost nothing, so its epoch continues.
func TestAnOrderToRebuildWhatIsLostVerifiesFirst(t *testing.T) {
	server := services.Redis.Server(t, "--appendfsync", "always")
	d := newDesk(t, server.URL(), services.Ledgers[services.SQLite](t), nil, "c")
	before, err := d.remote.gate.recovery.Runs(t.Context())
	stage.Must(t, err)
	stage.Must(t, d.ledger.Epochs.SeeRun(t.Context(), before[0]))
	d.issue("c", people("user-", 10)...)
	stage.Must(t, server.Kill())
	stage.Must(t, server.Restart(t.Context()))
	var state gate.State
	stage.Await(t, "Redis", nil, func() error {
		var err error
		state, err = d.remote.gate.State(t.Context(), "c")
		return err
	})
	if state.Gone || !state.Unverified {
		t.Errorf("behind a restart its state is %+v", state)
	}
	_, err = d.rebuilder().Rebuild(t.Context(), "op", "c", recovery.Order{IfLost: true})
	stage.Must(t, err)
	stage.Same(t, "the epoch", int64(1), d.status().Epoch)
	stage.Same(t, "the last one who had a coupon, and the next one", []string{"already_issued:10", "issued:11"}, d.claims("user-9", "new"))
}
