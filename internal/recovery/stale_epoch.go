package recovery

import (
	"errors"
	"maps"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/flow"
)

// outlived returns a flow.StaleEpochError if a gate is in an epoch that has ended by a revision which was read before it. A frozen gate is one that is
// rebuilt: its epoch ends in the ledger first.
func outlived(a flow.Revision, s Stopped) error {
	if s.Frozen || s.Epoch >= a.Epoch {
		return nil
	}
	return &flow.StaleEpochError{Campaign: a.Campaign, Gate: s.Epoch, Ledger: a.Epoch}
}

// begun takes over the epochs of the active campaigns. A campaign whose epoch is another one than at the last look is to be asked about.
func (r *Machine) begun(active []flow.Revision) {
	now := make(map[firstcome.CampaignID]int64, len(active))
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, a := range active {
		now[a.Campaign] = a.Epoch
		if was, known := r.epochs[a.Campaign]; known && was != a.Epoch {
			r.doubted[a.Campaign] = true
		}
	}
	r.epochs = now
	isOver := func(id firstcome.CampaignID) bool { _, is := now[id]; return !is } // here at least: another gate may decide it
	maps.DeleteFunc(r.doubted, func(id firstcome.CampaignID, _ bool) bool { return isOver(id) })
	maps.DeleteFunc(r.refused, func(id firstcome.CampaignID, why error) bool { return isOver(id) && errors.Is(why, flow.ErrStaleEpoch) })
}

// Epoch returns the epoch of a campaign by the ledger, as this node knows; 0: it does not. A node knows within a second that one has ended.
func (r *Machine) Epoch(id firstcome.CampaignID) int64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.epochs[id]
}
