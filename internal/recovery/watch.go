package recovery

import (
	"context"
	"errors"
	"maps"
	"sync"
	"time"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/gate"
	"github.com/firstcome/firstcome/internal/record"
)

// A Watch keeps what this node knows about the gate of each campaign: whether it needs a rebuild, is refused, or must be checked. It makes no calls.
type Watch struct {
	onRefused func(error) // see NewWatch
	noticed   chan firstcome.CampaignID

	mu      sync.Mutex // guards what follows
	broken  map[firstcome.CampaignID]error
	refused map[firstcome.CampaignID]error         // see Refuse
	noted   map[firstcome.CampaignID]gate.Revision // see Noted
	doubted map[firstcome.CampaignID]bool          // whose gate must be checked because their epoch has ended
}

// NewWatch returns a Watch. onRefused, if not nil, is called once for each campaign whose ledger was rolled back or whose gate is in a stale epoch.
func NewWatch(onRefused func(error)) *Watch {
	return &Watch{
		onRefused: onRefused, noticed: make(chan firstcome.CampaignID, 1024),
		broken: map[firstcome.CampaignID]error{}, refused: map[firstcome.CampaignID]error{}, doubted: map[firstcome.CampaignID]bool{},
	}
}

// Suspect notes why a gate did nothing for a campaign. A campaign whose gate is in a stale epoch is refused at once. The next look checks any other.
// It never blocks.
func (w *Watch) Suspect(id firstcome.CampaignID, why error) {
	if errors.Is(why, gate.ErrStaleEpoch) {
		w.Refuse(id, why)
		return
	}
	select {
	case w.noticed <- id:
	default: // the next look finds it
	}
}

// await waits until the next look is due, or a campaign is suspect.
func (w *Watch) await(ctx context.Context) error {
	wait := time.NewTimer(runsEvery)
	defer wait.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-wait.C:
	case id := <-w.noticed:
		w.note(id, gate.ErrUnverified)
	}
	for {
		select {
		case id := <-w.noticed:
			w.note(id, gate.ErrUnverified)
		default:
			return nil
		}
	}
}

// Troubles returns why the gate decides nothing for a campaign, as far as this node knows: gate.ErrGone, gate.ErrUnverified, record.ErrRebuilding,
// gate.ErrLedgerRolledBack or gate.ErrStaleEpoch.
func (w *Watch) Troubles() map[firstcome.CampaignID]error {
	w.mu.Lock()
	defer w.mu.Unlock()
	all := maps.Clone(w.broken)
	maps.Copy(all, w.refused)
	return all
}

// Refuse notes why nothing of a campaign is decided or changed, a gate.LedgerRolledBackError or a gate.StaleEpochError, and reports each such reason
// once. Any other error, and nil, ends the refusal.
func (w *Watch) Refuse(id firstcome.CampaignID, why error) {
	is := refuses(why)
	w.mu.Lock()
	before := w.refused[id]
	if is {
		w.refused[id] = why
	} else {
		delete(w.refused, id)
	}
	w.mu.Unlock()
	same := before != nil && errors.Is(before, gate.ErrLedgerRolledBack) == errors.Is(why, gate.ErrLedgerRolledBack)
	if is && !same && w.onRefused != nil {
		w.onRefused(why)
	}
}

// Refusal returns why nothing of a campaign is decided or changed, as far as this node knows: a gate.LedgerRolledBackError, a gate.StaleEpochError,
// or nil.
func (w *Watch) Refusal(id firstcome.CampaignID) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.refused[id]
}

// Noted returns the campaign as last read from the ledger, or the zero value if unknown. A node learns within a second that an epoch has ended, and
// that a change has reached the gate.
func (w *Watch) Noted(id firstcome.CampaignID) gate.Revision {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.noted[id]
}

// note notes why a campaign needs a rebuild, or with nil that it needs none.
func (w *Watch) note(id firstcome.CampaignID, why error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.doubted, id)
	if why == nil {
		delete(w.broken, id)
	} else {
		w.broken[id] = why
	}
}

// begun takes over the active campaigns as the ledger has them. The next look checks each campaign whose epoch has changed since the last call.
// begun returns the campaigns whose terms have changed since then.
func (w *Watch) begun(active []gate.Revision) (changed []gate.Revision) {
	now := make(map[firstcome.CampaignID]gate.Revision, len(active))
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, a := range active {
		now[a.Campaign] = a
		if was, known := w.noted[a.Campaign]; known && was.Epoch != a.Epoch {
			w.doubted[a.Campaign] = true
		}
		if was, known := w.noted[a.Campaign]; known && was.TermsVersion != a.TermsVersion {
			changed = append(changed, a)
		}
	}
	w.noted = now
	isOver := func(id firstcome.CampaignID) bool { _, is := now[id]; return !is } // or another gate decides it
	maps.DeleteFunc(w.doubted, func(id firstcome.CampaignID, _ bool) bool { return isOver(id) })
	maps.DeleteFunc(w.refused, func(id firstcome.CampaignID, why error) bool { return isOver(id) && errors.Is(why, gate.ErrStaleEpoch) })
	return changed
}

// known returns the campaigns that this node knows to need a rebuild, to be refused, or to have a doubted gate.
func (w *Watch) known() map[firstcome.CampaignID]bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	ids := make(map[firstcome.CampaignID]bool, len(w.broken))
	for id := range w.broken {
		ids[id] = true
	}
	for id := range w.refused {
		ids[id] = true
	}
	for id := range w.doubted {
		ids[id] = true
	}
	return ids
}

// counts returns how many campaigns need a rebuild, how many of these are being rebuilt, how many have a rolled-back ledger, and how many have a gate
// in a stale epoch.
func (w *Watch) counts() (broken, rebuilding, rolledBack, staleEpoch int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, why := range w.broken {
		if errors.Is(why, record.ErrRebuilding) {
			rebuilding++
		}
	}
	for _, why := range w.refused {
		if errors.Is(why, gate.ErrLedgerRolledBack) {
			rolledBack++
		}
	}
	return len(w.broken), rebuilding, rolledBack, len(w.refused) - rolledBack
}

// refuses reports whether an error means that ledger and gate are of different ages, so that nothing of the campaign is decided or changed.
func refuses(err error) bool {
	return errors.Is(err, gate.ErrLedgerRolledBack) || errors.Is(err, gate.ErrStaleEpoch)
}
