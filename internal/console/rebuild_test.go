package console_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/gate"
	"github.com/firstcome/firstcome/internal/record"
	"github.com/firstcome/firstcome/internal/recovery"
)

// A mender stands for the recovery of gates. A rebuild ends the trouble of a campaign's gate.
type mender struct {
	mu     sync.Mutex // guards the fields below
	wrong  map[firstcome.CampaignID]error
	orders []string
}

// breaks sets the trouble of a campaign's gate. A nil error ends it.
func (m *mender) breaks(id firstcome.CampaignID, why error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.wrong == nil {
		m.wrong = map[firstcome.CampaignID]error{}
	}
	if m.wrong[id] = why; why == nil {
		delete(m.wrong, id)
	}
}

func (m *mender) all() map[firstcome.CampaignID]error {
	m.mu.Lock()
	defer m.mu.Unlock()
	return maps.Clone(m.wrong)
}

// Suspect implements gate.Watch.
func (m *mender) Suspect(firstcome.CampaignID, error) {}

// Refusal implements gate.Watch: it returns an error if ledger and gate are not of one age.
func (m *mender) Refusal(id firstcome.CampaignID) error {
	if why := m.all()[id]; errors.Is(why, gate.ErrLedgerRolledBack) || errors.Is(why, gate.ErrStaleEpoch) {
		return why
	}
	return nil
}

// ordered returns who ordered which rebuilds, and whether each order was for lost gates only.
func (m *mender) ordered() string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return strings.Join(m.orders, "; ")
}

// Newest implements operate.Recovery.
func (m *mender) Newest(context.Context, firstcome.CampaignID) error { return nil }

func (m *mender) Estimate(context.Context, firstcome.CampaignID) (recovery.Estimate, error) {
	return recovery.Estimate{}, recovery.ErrNothingToReconcile
}

func (m *mender) Created(context.Context, firstcome.CampaignID) (bool, error) { return false, nil }

// Rebuild implements operate.Recovery.
func (m *mender) Rebuild(_ context.Context, actor string, id firstcome.CampaignID, order recovery.Order) (recovery.Rebuilt, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.wrong, id)
	m.orders = append(m.orders, fmt.Sprintf("%s by %s, if lost: %t", id, actor, order.IfLost))
	return recovery.Rebuilt{Campaign: id, Epoch: 2}, nil
}

// Reconcile implements operate.Recovery.
func (m *mender) Reconcile(context.Context, string, firstcome.CampaignID) (recovery.Reconciled, error) {
	return recovery.Reconciled{}, nil
}

func TestAGateThatDecidesNothingIsShownAndRebuiltByName(t *testing.T) {
	h := openFar(t, withKeys)
	for _, id := range []string{"lost", "restarted", "mending", "restored", "left", "sound"} {
		h.campaign(id, 10)
	}
	h.claim("lost", "mina", "jun")
	h.mender.breaks("lost", gate.ErrLost)
	h.mender.breaks("restarted", gate.ErrUnverified)
	h.mender.breaks("mending", fmt.Errorf("%w: %w", gate.ErrUnverified, record.ErrRebuilding))
	h.mender.breaks("restored", &gate.LedgerRolledBackError{Campaign: "restored"})
	h.mender.breaks("left", &gate.StaleEpochError{Campaign: "left"})
	plain, key := h.key(firstcome.Operator)
	b := h.login(plain)
	for _, path := range []string{"/console/recording", "/console/health"} {
		page := b.get(path)
		for _, want := range []string{
			"firstcome gate reconcile restored", "coupons that may be lost, at most 8", "More numbers may be skipped.",
			"추석 lost lost " + "Redis was emptied or replaced, or lost keys.", "추석 restarted unverified " + "Redis restarted or went back to an older state, or another server took over.",
			"추석 mending being rebuilt " + "A node is rebuilding the gate from the ledger.", "추석 restored the ledger is older " + "The ledger is older than the gate, as after a restored backup.",
			"추석 left the gate is older " + "The epoch of the Redis that this node reaches has ended",
		} {
			if !strings.Contains(page.text(), want) {
				t.Errorf("%s does not say %q: %s", path, want, page.text())
			}
		}
		if strings.Contains(page.text(), "sound") || strings.Contains(page.body, "restored/rebuild") || strings.Count(page.body, `/rebuild"`) != 4 {
			t.Errorf("%s shows a gate that decides, or has other buttons than of those that may be rebuilt: %s", path, page.text())
		}
	}
	viewer, _ := h.key(firstcome.Viewer)
	if health := h.login(viewer).get("/console/health"); !strings.Contains(health.text(), "추석 lost lost") || strings.Contains(health.body, `/rebuild"`) {
		t.Errorf("who may not rebuild sees %s", health.text())
	}
	if one := b.get("/console/recording?campaign=restarted"); strings.Contains(one.text(), "추석 lost") {
		t.Errorf("of one campaign others are shown: %s", one.text())
	}
	if health := b.get("/console/health"); !strings.Contains(health.text(), "Campaigns of which the gate decides nothing: 5") {
		t.Errorf("Health says: %s", health.text())
	}

	send := func(version, typed string) shown {
		return b.post("/console/campaigns/lost/rebuild", url.Values{"version": {version}, "typed": {typed}})
	}
	for _, typed := range []string{"", "spring"} {
		if got := send("1", typed); got.status != http.StatusUnprocessableEntity || !strings.Contains(got.body, `name="typed"`) || !strings.Contains(got.text(), "are lost. At most:"+" 8. "+"More numbers may be skipped, and none of them is assigned again.") {
			t.Errorf("rebuilt with %q: %d %s", typed, got.status, got.text())
		}
	}
	if got := send("7", "lost"); got.status != http.StatusPreconditionFailed {
		t.Errorf("a stale form: %d %s", got.status, got.text())
	}
	if orders := h.mender.ordered(); orders != "" {
		t.Fatalf("ordered without the name, or by a stale form: %s", orders)
	}
	if got := send("1", "추석 lost"); got.path != "/console/recording" || !strings.Contains(got.text(), "The gate is rebuilt") {
		t.Errorf("rebuilt by its name: %s %s", got.path, got.text())
	}
	if orders, want := h.mender.ordered(), "lost by "+"key:"+key.ID+", if lost: true"; orders != want {
		t.Errorf("ordered is %s, want %s", orders, want)
	}
}
