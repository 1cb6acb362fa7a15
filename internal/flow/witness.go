package flow

import (
	"context"
	"fmt"
	"time"

	"github.com/firstcome/firstcome"
)

// witnessTime is how long a gate whose server restarted is not verified, for nodes that know better: each looks once a second, and needs
// a moment to begin a rebuild, which ends a verification.
const witnessTime = 2 * runsEvery

// Told notes that the gate gave a number of a campaign, as an answer of it told this node. No later epoch begins below it.
func (r *Rebuilder) Told(id firstcome.CampaignID, number int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.told[id] = max(r.told[id], number)
}

// A witnessed gate is not verified where it has forgotten a number that a node was told. A file that was cut cleanly agrees with itself, and with
// a ledger to which what is missing had not come yet.
type witnessed struct {
	VerifiedGate
	*Rebuilder
}

// Stopped is errDiffers of a gate whose last number is below one that this node was told.
func (w witnessed) Stopped(ctx context.Context, a Revision) (Stopped, error) {
	w.mu.Lock()
	told := w.told[a.Campaign] // before the gate is asked: meanwhile it may give more
	w.mu.Unlock()
	s, err := w.VerifiedGate.Stopped(ctx, a)
	if err == nil && s.Was != s.Is && s.LastNumber < told {
		err = fmt.Errorf("%w: number %d is the last, and it gave number %d", errDiffers, s.LastNumber, told)
	}
	return s, err
}

// Verified waits for what other nodes were told. Where nobody is told a number before it is recorded, the ledger knows as much as they do.
func (w witnessed) Verified(ctx context.Context, a Revision, s Stopped) error {
	want, err := w.book.Standard(ctx, a.Campaign, s.Version)
	if err == nil && want.Answer == firstcome.Decided {
		err = sleep(ctx, time.Until(w.since.Add(witnessTime)))
	}
	if err != nil {
		return err
	}
	return w.VerifiedGate.Verified(ctx, a, s)
}
