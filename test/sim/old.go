package sim

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/test/stage"
)

// An oldServer is the one that was the gate's before a replica took its place. It goes on with all that it had, for the nodes that still
// reach it and not the new one, until it becomes a replica itself. They may even rebuild it: then the new one is in an epoch that has ended.
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

// strays notes which nodes reach a server whose epoch has ended, and who may hear what that says. Each of two servers may be behind the other.
func (t *town) strays() {
	old := t.old.Load()
	for _, name := range t.names {
		at := t.gate
		if old != nil && slices.Contains(old.names, name) {
			at = old.gate
		}
		if at.outlived(campaign, t.ledger.campaigns[campaign].epoch) != nil {
			t.strayed[name] = time.Now()
		}
	}
	for _, a := range t.asked {
		a.stray = a.stray || !a.over && t.astray(a.node)
	}
}

// astray reports whether what a node says may be what a server said whose epoch had ended: it reaches one, or did a lease ago.
func (t *town) astray(n *node) bool {
	at, is := t.strayed[n.name]
	return is && !time.Now().After(at.Add(lease))
}

// decider returns the server that is in the ledger's epoch, and where neither is, the new one: only what that does holds.
func (t *town) decider() *Gate {
	if old := t.old.Load(); old != nil && t.stands() != nil && t.standsAt(old.gate) == nil {
		return old.gate
	}
	return t.gate
}

// mayPart reports whether a replica may take over while nodes still reach its primary.
func (t *town) mayPart() bool { return len(t.names) > 1 }

// part has a replica that lagged take over, while some nodes still reach the old server.
func (t *town) part() {
	names := slices.Clone(t.names)
	t.Shuffle(len(names), func(i, j int) { names[i], names[j] = names[j], names[i] })
	names = names[:1+t.IntN(len(names)-1)]
	slices.Sort(names)
	t.say("a replica takes the place of the gate's server, which goes on for", strings.Join(names, " and "))
	old := NewGate(t.gate.Clock)
	old.memory, old.wentBack = t.gate.copied(), true // it goes on in an epoch that may end elsewhere
	old.leased, old.logs[campaign] = t.gate.leased, &[]stage.Happening{}
	if c := old.campaigns[campaign]; c != nil {
		c.Happened = old.logs[campaign]
	}
	t.old.Store(&oldServer{gate: old, names: names, until: time.Now().Add(time.Duration(t.IntN(6000)) * time.Millisecond)})
	t.follows, t.broken, t.outages = false, true, t.outages+1
	t.gate.goesBack(t.copy.copied(), t.another())
	t.watch()
}

// mayLeadBack reports whether the address of the gate may lead back to an old server: once, and when the next epoch has begun elsewhere.
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
	t.watch()
}

// stands returns nil if the gate decides, in the epoch of the ledger.
func (t *town) stands() error { return t.standsAt(t.gate) }

// standsAt is stands of one of the two servers.
func (t *town) standsAt(g *Gate) error {
	return cmp.Or(g.outlived(campaign, t.ledger.campaigns[campaign].epoch), g.inspect(campaign))
}

// heal has the old server follow the new one: what it alone had is gone.
func (t *town) heal() { t.old.Store(nil) }

// outlives takes over what a server did whose epoch has ended: it gives numbers that nobody else is given, and all of them are lost.
func (h *history) outlives(now stage.Happening, epoch int64) {
	if i := h.issueOf(now.Voided.Number); i != nil && i.voided == 0 {
		i.voided = len(h.looks)
	}
	if now.Issued.Number == 0 {
		return
	}
	h.given(now.Issued)
	if !h.town.ledger.campaigns[campaign].isLost(now.Issued.Number, 0) {
		h.breach("P4", "number %d of %s is of an epoch that has ended, and was not lost with it", now.Issued.Number, now.Issued.User)
	}
	h.issues = append(h.issues, given{Coupon: now.Issued, epoch: epoch, outlived: true, lost: len(h.looks)})
}

// given notes that a number is given, by whichever server.
func (h *history) given(c firstcome.Coupon) {
	if before := h.issueOf(c.Number); before != nil {
		h.breach("P4", "number %d was given to %s and to %s", c.Number, before.User, c.User)
	}
}
