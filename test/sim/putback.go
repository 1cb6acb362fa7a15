package sim

import (
	"context"
	"slices"
	"testing/synctest"
	"time"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/gate"
	"github.com/firstcome/firstcome/internal/recovery"
)

// A backup is an earlier state of the ledger, to which it may be put back, as one does who restores a backup: all nodes stop before.
type backup struct {
	saved archive
	puts  int  // how often that happened
	older bool // the ledger was put back, and no epoch has begun since with which it and the gate know the same: meanwhile nothing else fails
}

// intact reports whether the gate has all that it ever had, and gone, whether it has nothing. A ledger is put back then only: of a gate that
// may lack something nobody knows which of the two is right.
func (t *town) intact() (intact, gone bool) {
	c := t.gate.campaigns[campaign]
	gone = c == nil || c.Version == 0
	return !gone && c.run == t.gate.run.ID && c.Last >= c.Drained, gone
}

// mayPutBack reports whether the ledger may be put back now.
func (t *town) mayPutBack() bool {
	intact, gone := t.intact()
	return t.bug.kind.putsBack && t.puts < 2 && !t.older && (intact || gone)
}

// putBack restores the ledger from its backup, and sometimes loses the campaign at the gate too. Then data that neither has is forgotten.
func (t *town) putBack() {
	t.putBackTo(t.IntN(4) == 0)
}

func (t *town) putBackTo(lose bool) {
	t.say("the ledger is put back to a backup")
	t.puts, t.outages = t.puts+1, t.outages+1
	for _, name := range t.names {
		if n := t.nodes[name]; n != nil {
			t.crashes(n)
		}
	}
	synctest.Wait() // until the crashed nodes' calls have ended
	t.pending = nil
	t.ledger.putBack(t.saved)
	t.promised.seen = min(t.promised.seen, t.ledger.campaigns[campaign].Version)
	_, gone := t.intact()
	if !gone && lose {
		t.say("the gate's server loses the campaign")
		t.broken, gone = true, true
		t.gate.loses(campaign)
	}
	t.older = gone || t.rolledBack()
	if gone {
		t.forgets()
	}
	t.watch()
}

// rolledBack reports whether the gate has more than the ledger, which only a reconcile brings back.
func (t *town) rolledBack() bool {
	a := t.ledger.campaigns[campaign]
	return a.reconciling() != nil || t.gate.ahead(gate.Revision{Campaign: campaign, Version: a.Version, Epoch: a.epoch, Drained: a.drained}) != nil
}

// forgets restarts the history with the data of a restored ledger whose gate is gone: the rest is forgotten.
func (h *history) forgets() {
	a := h.town.ledger.campaigns[campaign]
	h.issues = slices.DeleteFunc(h.issues, func(i given) bool { return a.coupon(i.Number) == nil })
	for n := range h.issues {
		if i := &h.issues[n]; a.coupon(i.Number).VoidedAt.IsZero() {
			i.voided = 0
		}
	}
	h.asked, h.stop, h.ranks.told = nil, nil, nil
	if h.lineup.owners = nil; h.town.topic == nil { // with a topic, its log still has the line
		h.lineup = lineup{}
	}
	h.backs = append(h.backs, h.looks[len(h.looks)-1].from)
}

// asking is a Machine whose ledger may be put back. A gate that does not say in time whether it was holds no change up in the product. Here
// such a change is not made: its operator hears of an error.
type asking struct{ *recovery.Machine }

// Newest is operate.Recovery's.
func (a asking) Newest(ctx context.Context, id firstcome.CampaignID) error {
	asked := time.Now()
	if err := a.Machine.Newest(ctx, id); err != nil || time.Since(asked) < newestTime {
		return err
	}
	return errLost
}

// newestTime is how long a Machine waits for the gate.
const newestTime = 3 * time.Second
