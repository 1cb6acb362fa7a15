package flow

import (
	"errors"
	"fmt"
	"maps"

	"github.com/firstcome/firstcome"
)

// ErrStaleEpoch says that a campaign's gate is older than the ledger: see StaleEpochError.
var ErrStaleEpoch = errors.New("the gate is older than the ledger")

// A StaleEpochError is the ErrStaleEpoch of a campaign: the gate decides in an epoch that has ended. The ledger ends an epoch only while the gate
// that it rebuilds is frozen. So this is another gate, such as a primary in whose place a replica was promoted and rebuilt, and an address
// leads back to it. All numbers that it gives are lost. Nothing of the campaign is decided, served or changed at it, and nobody rebuilds it
// without being asked while a node reaches another server: two halves of a partition would end each other's epochs repeatedly. An operator says
// which gate decides; with Rebuilder.Auto, nodes that all reach this one need no operator.
type StaleEpochError struct {
	Campaign     firstcome.CampaignID
	Gate, Ledger int64 // epochs
}

func (e *StaleEpochError) Error() string {
	return fmt.Sprintf("%v of %s (it is in epoch %d, the ledger in %d), as where an address leads back to a Redis in whose place another one came, so nothing of it is decided or changed here. See that all nodes reach the same Redis; if it is to be this one, type: firstcome gate rebuild %s",
		ErrStaleEpoch, e.Campaign, e.Gate, e.Ledger, e.Campaign)
}

// Is reports that it is ErrStaleEpoch, and firstcome.ErrGateUnavailable, because nothing was done that counts.
func (e *StaleEpochError) Is(target error) bool {
	return target == ErrStaleEpoch || target == firstcome.ErrGateUnavailable || target == firstcome.ErrBusy
}

// outlived returns a StaleEpochError if a gate is in an epoch that has ended by a revision which was read before it. A frozen gate is one that is
// rebuilt: its epoch ends in the ledger first.
func outlived(a Revision, s Stopped) error {
	if s.Frozen || s.Epoch >= a.Epoch {
		return nil
	}
	return &StaleEpochError{a.Campaign, s.Epoch, a.Epoch}
}

// begun takes over the epochs of the active campaigns. A campaign whose epoch is another one than at the last look is to be asked about.
func (r *Rebuilder) begun(active []Revision) {
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
	maps.DeleteFunc(r.refused, func(id firstcome.CampaignID, why error) bool { return isOver(id) && errors.Is(why, ErrStaleEpoch) })
}

// Epoch returns the epoch of a campaign by the ledger, as this node knows; 0: it does not. A node knows within a second that one has ended.
func (r *Rebuilder) Epoch(id firstcome.CampaignID) int64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.epochs[id]
}
