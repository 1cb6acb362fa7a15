package recovery

import (
	"context"
	"errors"
	"maps"
	"sync"
	"time"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/flow"
	"github.com/firstcome/firstcome/internal/gate"
)

// A Watch knows what the gate of each campaign is worth, as far as its node found or was told. It asks nobody.
type Watch struct {
	tells   func(error) // see Events.Refused
	noticed chan firstcome.CampaignID

	mu      sync.Mutex // guards what follows
	broken  map[firstcome.CampaignID]error
	refused map[firstcome.CampaignID]error // see Refuse
	epochs  map[firstcome.CampaignID]int64 // see Epoch
	doubted map[firstcome.CampaignID]bool  // whose gate is to be asked, because their epoch has ended
}

func newWatch(tells func(error)) *Watch {
	return &Watch{
		tells: tells, noticed: make(chan firstcome.CampaignID, 1024),
		broken: map[firstcome.CampaignID]error{}, refused: map[firstcome.CampaignID]error{}, doubted: map[firstcome.CampaignID]bool{},
	}
}

// Suspect hears why a gate did nothing for a campaign. One in a stale epoch is refused at once; any other is looked at next. It never waits.
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

// await waits for the next look, or until a campaign is suspect.
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

// Troubles returns why nothing is decided of campaigns at the gate, as far as this node knows: gate.ErrLost, gate.ErrUnverified, flow.ErrRebuilding, gate.ErrLedgerRolledBack or
// gate.ErrStaleEpoch.
func (w *Watch) Troubles() map[firstcome.CampaignID]error {
	w.mu.Lock()
	defer w.mu.Unlock()
	all := maps.Clone(w.broken)
	maps.Copy(all, w.refused)
	return all
}

// Refuse notes why nothing of a campaign is decided or changed, and reports it once: an gate.LedgerRolledBackError or a gate.StaleEpochError. Any other error,
// and nil, says that nothing refuses it.
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
	if is && !same && w.tells != nil {
		w.tells(why)
	}
}

// Refusal returns why nothing of a campaign is decided or changed, as this node knows: an gate.LedgerRolledBackError, a gate.StaleEpochError, or nil.
func (w *Watch) Refusal(id firstcome.CampaignID) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.refused[id]
}

// Epoch returns the epoch of a campaign by the ledger, as this node knows; 0: it does not. A node knows within a second that one has ended.
func (w *Watch) Epoch(id firstcome.CampaignID) int64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.epochs[id]
}

// note notes why a campaign needs a rebuild; nil: it does not.
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

// begun takes over the epochs of the active campaigns. A campaign whose epoch is another one than at the last look is to be asked about.
func (w *Watch) begun(active []gate.Revision) {
	now := make(map[firstcome.CampaignID]int64, len(active))
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, a := range active {
		now[a.Campaign] = a.Epoch
		if was, known := w.epochs[a.Campaign]; known && was != a.Epoch {
			w.doubted[a.Campaign] = true
		}
	}
	w.epochs = now
	isOver := func(id firstcome.CampaignID) bool { _, is := now[id]; return !is } // here at least: another gate may decide it
	maps.DeleteFunc(w.doubted, func(id firstcome.CampaignID, _ bool) bool { return isOver(id) })
	maps.DeleteFunc(w.refused, func(id firstcome.CampaignID, why error) bool { return isOver(id) && errors.Is(why, gate.ErrStaleEpoch) })
}

// known returns the campaigns that need a rebuild, that are refused, or whose gate is doubted, as far as somebody noticed.
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

// counts returns of how many campaigns the gate needs a rebuild, how many of them are being rebuilt, of how many the ledger was rolled back, and
// how many gates are in a stale epoch.
func (w *Watch) counts() (broken, rebuilding, rolledBack, staleEpoch int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, why := range w.broken {
		if errors.Is(why, flow.ErrRebuilding) {
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

// refuses tells whether an error says that ledger and gate are not of one age, so that nothing of the campaign is decided or changed.
func refuses(err error) bool {
	return errors.Is(err, gate.ErrLedgerRolledBack) || errors.Is(err, gate.ErrStaleEpoch)
}
