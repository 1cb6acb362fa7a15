package console

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/flow"
	"github.com/firstcome/firstcome/internal/gate"
	"github.com/firstcome/firstcome/internal/ledger"
	"github.com/firstcome/firstcome/internal/recovery"
)

// A stoppedGate is a campaign of which the gate decides nothing.
type stoppedGate struct {
	ID      firstcome.CampaignID
	Name    string // empty: unknown
	State   string // lost, unverified, rebuilding, older (the ledger) or behind (the gate)
	Version int64  // 0: unknown, so nothing can be ordered
	Most    string // how many coupons a rebuild may lose
}

// mostStopped is how many of them a page shows.
const mostStopped = 50

// stopped returns the campaigns of which the gate decides nothing, one or all, as far as this node knows.
func (c *core) stopped(v *view, of firstcome.CampaignID) (all []stoppedGate) {
	if c.Journal.Troubles == nil {
		return nil
	}
	for id, why := range c.Journal.Troubles() {
		if of == "" || of == id {
			all = append(all, stoppedGate{ID: id, State: stateOf(why)})
		}
	}
	slices.SortFunc(all, func(a, b stoppedGate) int { return strings.Compare(string(a.ID), string(b.ID)) })
	all = all[:min(len(all), mostStopped)]
	ctx, done := context.WithTimeout(v.r.Context(), ledgerWait)
	defer done()
	for n := range all {
		if s, err := c.Ledger.Campaign(ctx, all[n].ID); err == nil {
			all[n].Name, all[n].Version, all[n].Most = s.Name, s.Version, v.lang.mostLost(&s)
		}
	}
	return all
}

// stateOf returns the word for why a gate decides nothing.
func stateOf(why error) string {
	switch {
	case errors.Is(why, gate.ErrLedgerRolledBack):
		return "older"
	case errors.Is(why, gate.ErrStaleEpoch):
		return "behind"
	case errors.Is(why, flow.ErrRebuilding):
		return "rebuilding"
	case errors.Is(why, gate.ErrUnverified):
		return "unverified"
	}
	return "lost"
}

// mostLost returns how many coupons a rebuild may lose: as many as may be in force besides those that the ledger has. It may skip more numbers,
// which nobody was given.
func (l language) mostLost(s *ledger.Status) string {
	if s.Quantity == firstcome.Unlimited {
		return "–"
	}
	return l.number(max(0, s.Quantity-s.InForce))
}

// rebuild makes a campaign's gate anew, if its name or id was typed. A gate that decides by then stays as it is.
func (c *steerHandlers) rebuild(v *view) error {
	s, version, err := v.shownStatus()
	if err != nil {
		return err
	}
	if version != s.Version {
		return firstcome.ErrStale
	}
	if !v.typed(&s) {
		return c.render(v, http.StatusUnprocessableEntity, &asked{Do: "rebuild", To: v.lang.mostLost(&s)}, v.notTyped())
	}
	if _, err := c.Operator.Rebuild(v.r.Context(), v.who.Actor, s.ID, recovery.Order{IfLost: true}); err != nil {
		return err
	}
	return v.leadDone(Root+"/recording", url.Values{"campaign": {string(s.ID)}}, "rebuilt")
}
