package redis

import (
	"cmp"
	"slices"
	"sync"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/gate"
)

// Actives are the active campaigns, as the ledger last listed them, and the streams of those that were drained. A message
// about an unknown campaign makes the sweep ask the ledger, at most once between two ticks: the campaign is new, or
// belongs to nodes with another secret.
type actives struct {
	unknown chan struct{} // has room for one: the ledger is to be asked

	mu        sync.Mutex      // guards what follows
	revisions []gate.Revision // in the order of their ids
	streams   map[firstcome.CampaignID]*stream
	asked     bool // since the last tick
}

// set replaces the campaigns, and forgets the streams of all others.
func (a *actives) set(revisions []gate.Revision) {
	revisions = slices.SortedFunc(slices.Values(revisions), func(a, b gate.Revision) int { return cmp.Compare(a.Campaign, b.Campaign) })
	a.mu.Lock()
	defer a.mu.Unlock()
	streams := map[firstcome.CampaignID]*stream{}
	for _, r := range revisions {
		if s, ok := a.streams[r.Campaign]; ok {
			streams[r.Campaign] = s
		}
	}
	a.revisions, a.streams = revisions, streams
}

func (a *actives) list() []gate.Revision {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.revisions
}

// revision returns a campaign's, if it is active.
func (a *actives) revision(id firstcome.CampaignID) (r gate.Revision, is bool) {
	list := a.list()
	n, is := slices.BinarySearchFunc(list, id, byCampaign)
	if is {
		r = list[n]
	}
	return r, is
}

func byCampaign(r gate.Revision, id firstcome.CampaignID) int { return cmp.Compare(r.Campaign, id) }

// ask has the ledger asked, if it was not since the last tick.
func (a *actives) ask() {
	a.mu.Lock()
	asked := a.asked
	a.asked = true
	a.mu.Unlock()
	if !asked {
		select {
		case a.unknown <- struct{}{}:
		default:
		}
	}
}

// tick has the ledger asked again.
func (a *actives) tick() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.asked = false
}

// stream returns a campaign's, and a new one if it was not active before.
func (a *actives) stream(id firstcome.CampaignID, made func() *stream) *stream {
	a.mu.Lock()
	defer a.mu.Unlock()
	s, ok := a.streams[id]
	if !ok {
		s = made()
		a.streams[id] = s
	}
	return s
}
