package recovery

import (
	"context"
	"time"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/flow"
)

// witnessTime is how long a gate whose server restarted is not verified, for nodes that know better: each looks once a second, and needs
// a moment to begin a rebuild, which ends a verification.
const witnessTime = 2 * runsEvery

// A witnessed gate is not verified before every node has had the time to say that it was told more: see Stopped.
type witnessed struct {
	VerifiedGate
	*Rebuilder
}

// Verified waits for what other nodes were told. Where nobody is told a number before it is recorded, the ledger knows as much as they do.
func (w witnessed) Verified(ctx context.Context, a flow.Revision, s Stopped) error {
	want, err := w.book.Standard(ctx, a.Campaign, s.Version)
	if err == nil && want.Answer == firstcome.Decided {
		w.mu.Lock()
		since := w.since
		w.mu.Unlock()
		err = sleep(ctx, time.Until(since.Add(witnessTime)))
	}
	if err != nil {
		return err
	}
	return w.VerifiedGate.Verified(ctx, a, s)
}
