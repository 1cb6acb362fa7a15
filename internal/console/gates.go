package console

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/gate"
	"github.com/firstcome/firstcome/internal/ledger"
	"github.com/firstcome/firstcome/internal/record"
	"github.com/firstcome/firstcome/internal/recovery"
)

// A stoppedGate is a campaign whose gate decides nothing.
type stoppedGate struct {
	ID      firstcome.CampaignID
	Name    string // empty if unknown
	Version int64  // 0 if unknown: then no rebuild can be requested
	Most    string // the most coupons that a rebuild may lose
	// Told says whether claims may have been answered before their coupons were recorded: yes, no, or empty if unknown.
	Told string
}

// A stopCause has the campaigns whose gate decides nothing for one cause.
type stopCause struct {
	State  string // lost, behind (the gate), older (the ledger), unverified or rebuilding
	Gates  []stoppedGate
	Hidden int // campaigns that are not shown
}

// Only returns the campaign if there is one alone.
func (s stopCause) Only() *stoppedGate {
	if len(s.Gates) != 1 || s.Hidden > 0 {
		return nil
	}
	return &s.Gates[0]
}

// Rebuildable returns the campaigns for which a rebuild can be requested.
func (s stopCause) Rebuildable() (all []stoppedGate) {
	for _, g := range s.Gates {
		if g.Version > 0 && s.State != "ledger_rolled_back" {
			all = append(all, g)
		}
	}
	return all
}

// stopStates are the causes, in the order in which a page shows them.
var stopStates = []string{"lost", "stale_epoch", "ledger_rolled_back", "unverified", "rebuilding"}

// mostStopped is the most stopped gates of a cause that a page shows, and that one form rebuilds.
const mostStopped = 50

// stopped returns the campaigns whose gate decides nothing, by cause and as far as this node knows. If of is not empty, only that campaign is considered.
func (c *core) stopped(v *view, of firstcome.CampaignID) (all []stopCause) {
	if c.Journal == nil || c.Journal.Troubles == nil {
		return nil
	}
	by := map[string][]firstcome.CampaignID{}
	for id, why := range c.Journal.Troubles() {
		if of == "" || of == id {
			by[stateOf(why)] = append(by[stateOf(why)], id)
		}
	}
	for _, state := range stopStates {
		if ids := by[state]; len(ids) > 0 {
			slices.Sort(ids)
			shown := ids[:min(len(ids), mostStopped)]
			all = append(all, stopCause{State: state, Gates: c.gatesOf(v, shown), Hidden: len(ids) - len(shown)})
		}
	}
	return all
}

// gatesOf reads what the ledger knows of campaigns.
func (c *core) gatesOf(v *view, ids []firstcome.CampaignID) (all []stoppedGate) {
	ctx, done := context.WithTimeout(v.r.Context(), ledgerWait)
	defer done()
	for _, id := range ids {
		g := stoppedGate{ID: id, Name: string(id)}
		if s, err := c.Ledger.Campaign(ctx, id); err == nil {
			g = c.gateOf(ctx, v, &s)
		}
		all = append(all, g)
	}
	return all
}

func (c *core) gateOf(ctx context.Context, v *view, s *ledger.Status) stoppedGate {
	g := stoppedGate{ID: s.ID, Name: s.Name, Version: s.Version, Most: v.lang.mostLost(s)}
	switch told, err := c.toldEarly(ctx, s.ID); {
	case told:
		g.Told = "yes"
	case err == nil:
		g.Told = "no"
	}
	return g
}

// toldEarly reports whether claims may have been answered before their coupons were recorded.
func (c *core) toldEarly(ctx context.Context, id firstcome.CampaignID) (told bool, err error) {
	const page = 1000
	for after, read := int64(0), page; read == page && !told && err == nil; {
		read = 0
		err = c.Ledger.Changes(ctx, id, after, page, func(change firstcome.Change, refused bool) error {
			after, read = change.Version, read+1
			told = told || change.Kind == firstcome.ChangeReconcile || change.Terms.Answer == firstcome.Decided && !refused
			return nil
		})
	}
	return told, err
}

// stateOf returns the word for why a gate decides nothing.
func stateOf(why error) string {
	switch {
	case errors.Is(why, gate.ErrLedgerRolledBack):
		return "ledger_rolled_back"
	case errors.Is(why, gate.ErrStaleEpoch):
		return "stale_epoch"
	case errors.Is(why, record.ErrRebuilding):
		return "rebuilding"
	case errors.Is(why, gate.ErrUnverified):
		return "unverified"
	}
	return "lost"
}

// mostLost returns the most coupons that a rebuild may lose: the quantity that may be in force, less the coupons in the ledger. The rebuild may
// skip more numbers, which no user got.
func (l language) mostLost(s *ledger.Status) string {
	if s.Quantity == firstcome.Unlimited {
		return "–"
	}
	return l.number(max(0, s.Quantity-s.InForce))
}

// rebuild rebuilds a campaign's gate if the campaign's name or ID was typed. A gate that decides again by then is left as it is.
func (c *steerHandlers) rebuild(v *view) error {
	s, version, err := v.shownStatus()
	if err != nil {
		return err
	}
	if version != s.Version {
		return firstcome.ErrStale
	}
	if !v.typed(&s) {
		g := c.gateOf(v.r.Context(), v, &s)
		return c.render(v, http.StatusUnprocessableEntity, &asked{Do: "rebuild", To: g.Most, Told: g.Told}, "typed", v.notTyped())
	}
	if _, err := c.Operator.Rebuild(v.r.Context(), v.who.Actor, s.ID, recovery.Order{IfLost: true}); err != nil {
		return err
	}
	return v.redirectDone(Root+"/recording", url.Values{"campaign": {string(s.ID)}}, "rebuilt")
}

// A bulkRebuild is a preview of rebuilding the gates of several campaigns.
type bulkRebuild struct {
	Gates []stoppedGate
	Wrong string // why the confirmation is none
}

// rebuild previews the rebuild of the gates that a form names, and does it once their number was typed. Gates that decide again by then are left as
// they are. After a failure it goes on with the next gate.
func (c *recordingHandlers) rebuild(v *view) error {
	ask, err := c.chosenGates(v)
	if err != nil {
		return err
	}
	if typed := strings.TrimSpace(v.form.Get("typed")); typed != strconv.Itoa(len(ask.Gates)) {
		if typed != "" {
			ask.Wrong = v.say("캠페인 수가 일치하지 않습니다. 아무것도 변경되지 않았습니다.", "That is not the number of campaigns. Nothing was changed.")
		}
		return c.render(v, http.StatusUnprocessableEntity, recordingPage{Rebuild: ask})
	}
	var failed []string
	var why error
	for _, g := range ask.Gates {
		if _, err := c.Operator.Rebuild(v.r.Context(), v.who.Actor, g.ID, recovery.Order{IfLost: true}); err != nil {
			v.Log.Warn("a rebuild that was ordered with others failed", "campaign", g.ID, "err", err)
			failed, why = append(failed, g.Name), err
		}
	}
	if failed == nil {
		return v.redirectSaid(Root+"/recording", nil, inBoth("캠페인 %d개의 발급을 다시 시작했습니다.", "Campaigns that are decided again: %d.", len(ask.Gates)))
	}
	wrong := v.say("캠페인 %d개는 발급을 다시 시작했고, %d개는 재구성하지 못했습니다: %s.", "Campaigns that are decided again: %d. Gates that could not be rebuilt: %d (%s).",
		len(ask.Gates)-len(failed), len(failed), strings.Join(failed, ", "))
	return c.render(v, http.StatusServiceUnavailable, recordingPage{Wrong: wrong + " " + v.refusalOf(why).Head + "."})
}

// chosenGates returns the campaigns that a form names, without those that are decided again. If a campaign has changed since the form was shown, it
// returns firstcome.ErrStale.
func (c *recordingHandlers) chosenGates(v *view) (*bulkRebuild, error) {
	ask := &bulkRebuild{}
	var troubles map[firstcome.CampaignID]error
	if c.Journal != nil && c.Journal.Troubles != nil {
		troubles = c.Journal.Troubles()
	}
	for _, one := range v.form["of"] {
		text, version, _ := strings.Cut(one, " ")
		id, err := firstcome.ParseCampaignID(text)
		if err != nil {
			return nil, errLost
		}
		if troubles[id] == nil {
			continue
		}
		s, err := c.Ledger.Campaign(v.r.Context(), id)
		if err != nil {
			return nil, err
		}
		if version != strconv.FormatInt(s.Version, 10) {
			return nil, firstcome.ErrStale
		}
		ask.Gates = append(ask.Gates, c.gateOf(v.r.Context(), v, &s))
	}
	switch n := len(v.form["of"]); {
	case n == 0 || n > mostStopped:
		return nil, errLost
	case len(ask.Gates) == 0:
		return nil, firstcome.ErrStale
	}
	return ask, nil
}
