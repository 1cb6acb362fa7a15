package sim

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/flow"
)

// An oldServer is the one that was the gate's before a replica took its place. It goes on with all that it had, for the nodes that still
// reach it and not the new one, until it becomes a replica itself.
type oldServer struct {
	gate  *Gate
	names []string // of the nodes
	read  int      // how many happenings of its log
	until time.Time
	back  bool // the address of all nodes led back to it
}

// parted returns the old server if a node reaches that and not the new one, else nil.
func (t *town) parted(n *node) *Gate {
	old := t.old.Load()
	if old == nil || !slices.Contains(old.names, n.name) {
		return nil
	}
	return old.gate
}

// wasParted tells whether what a node says may be what the old server said: it reaches that, or did a lease ago.
func (t *town) wasParted(n *node) bool {
	return t.parted(n) != nil || slices.Contains(t.healed.names, n.name) && !time.Now().After(t.healed.until.Add(lease))
}

// mayPart tells whether a replica may take over while nodes still reach its primary. An old server with people in line, or one that is
// rebuilt, is not modelled.
func (t *town) mayPart() bool {
	return t.old.Load() == nil && len(t.names) > 1 && t.stands() == nil && t.ledger.campaigns[campaign].rebuildingAt.IsZero()
}

// part has a replica that lagged take over, while some nodes still reach the old server.
func (t *town) part() {
	names := slices.Clone(t.names)
	t.Shuffle(len(names), func(i, j int) { names[i], names[j] = names[j], names[i] })
	names = names[:1+t.IntN(len(names)-1)]
	slices.Sort(names)
	t.say("a replica takes the place of the gate's server, which goes on for", strings.Join(names, " and "))
	old := NewGate(t.gate.Clock)
	old.memory, old.wentBack = t.gate.copied(), true // it goes on in an epoch that may end elsewhere
	old.logs[campaign] = &[]happening{}
	old.campaigns[campaign].log = old.logs[campaign]
	t.old.Store(&oldServer{gate: old, names: names, until: time.Now().Add(time.Duration(t.IntN(6000)) * time.Millisecond)})
	t.follows, t.broken, t.outages = false, true, t.outages+1
	t.gate.goesBack(t.copy.copied(), t.another())
	t.partAsked()
}

// partAsked notes who may hear now what the old server says.
func (t *town) partAsked() {
	for _, a := range t.asked {
		a.parted = a.parted || !a.over && t.parted(a.node) != nil
	}
}

// mayLeadBack tells whether the address of the gate may lead back to an old server: once, and when the next epoch has begun elsewhere.
func (t *town) mayLeadBack() bool {
	old := t.old.Load()
	return old != nil && !old.back && old.gate.outlived(campaign, t.ledger.campaigns[campaign].epoch) != nil
}

// leadBack has all nodes reach the old server, which does not know of the epoch after its own.
func (t *town) leadBack() {
	t.say("the address of the gate leads back to the old server")
	old := *t.old.Load()
	old.names, old.back, old.until = slices.Clone(t.names), true, time.Now().Add(time.Duration(t.IntN(6000))*time.Millisecond)
	t.old.Store(&old)
	t.partAsked()
}

// stands returns nil if the gate decides, in the epoch of the ledger.
func (t *town) stands() error {
	r := flow.Revision{Campaign: campaign, Epoch: t.ledger.campaigns[campaign].epoch}
	return t.gate.Standing(context.Background(), r)
}

// heal has the old server follow the new one: what it alone had is gone.
func (t *town) heal() {
	t.healed = *t.old.Swap(nil)
	t.healed.until = time.Now()
}

// watchOld holds what the old server gave against the promises. It gives numbers that nobody else is given, for as long as anybody reaches it,
// and what the ledger did not have when its epoch ended is lost.
func (h *history) watchOld() {
	old := h.town.old.Load()
	if old == nil {
		return
	}
	log := *old.gate.logs[campaign]
	for ; old.read < len(log); old.read++ {
		now := log[old.read]
		if i := h.issueOf(now.voided.Number); i != nil && i.voided == 0 {
			i.voided = len(h.looks)
		}
		if now.issued.Number == 0 {
			continue
		}
		h.given(now.issued)
		one := issue{Coupon: now.issued}
		if a := h.town.ledger.campaigns[campaign]; a.epoch > old.gate.campaigns[campaign].epoch {
			one.outlived = true
			if one.lost = len(h.looks); !a.isLost(one.Number, 0) {
				h.breach("P4", "number %d of %s is of an epoch that has ended, and was not lost with it", one.Number, one.User)
			}
		}
		h.issues = append(h.issues, one)
	}
}

// given notes that a number is given, by whichever server.
func (h *history) given(c firstcome.Coupon) {
	if before := h.issueOf(c.Number); before != nil {
		h.breach("P4", "number %d was given to %s and to %s", c.Number, before.User, c.User)
	}
}

// errParted says that no node rebuilds an old server here.
var errParted = fmt.Errorf("%w: the old server is not rebuilt", flow.ErrMoved)
