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
	"github.com/firstcome/firstcome/test/stage"
)

// A mender stands for the recovery of gates. A rebuild ends the trouble of a campaign's gate.
type mender struct {
	mu     sync.Mutex // guards the fields below
	wrong  map[firstcome.CampaignID]error
	orders []string

	failing firstcome.CampaignID // whose rebuild fails; set while nobody rebuilds
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
	if id == m.failing {
		return recovery.Rebuilt{}, firstcome.ErrGateUnavailable
	}
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
	h.mender.breaks("lost", gate.ErrGone)
	h.mender.breaks("restarted", gate.ErrUnverified)
	h.mender.breaks("mending", fmt.Errorf("%w: %w", gate.ErrUnverified, record.ErrRebuilding))
	h.mender.breaks("restored", &gate.LedgerRolledBackError{Campaign: "restored"})
	h.mender.breaks("left", &gate.StaleEpochError{Campaign: "left"})
	plain, key := h.key(firstcome.Operator)
	b := h.login(plain)
	for _, path := range []string{"/console/recording", "/console/health"} {
		page := b.get(path)
		for _, want := range []string{
			"firstcome gate reconcile restored", "추석 lost lost 8 none: claims are answered once recorded", "More numbers may be skipped.",
			"lost Redis was emptied or replaced, or lost keys.", "unverified Redis restarted or went back to an older state, or another server took over.",
			"being rebuilt A node is rebuilding the gate from the ledger.", "the ledger is older The ledger is older than the gate, as after a restored backup.",
			"the gate is older The epoch of the Redis that this node reaches has ended", "추석 left left 10 none",
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
	if health := h.login(viewer).get("/console/health"); !strings.Contains(health.text(), "추석 lost") || strings.Contains(health.body, `/rebuild"`) || strings.Contains(health.text(), "answered once recorded") {
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
		if got := send("1", typed); got.status != http.StatusUnprocessableEntity || !strings.Contains(got.body, `name="typed"`) ||
			!strings.Contains(got.text(), "are lost. At most:"+" 8. More numbers may be skipped, and none of them is assigned again. No customer was told of a lost coupon: ") {
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

// TestAllGatesOfACauseHaveOneCardAndOneButton: an emptied Redis loses them all. The card says of each campaign whether a customer may have been told of a
// coupon that is lost, also if it answers once recorded now, and answered once decided before.
func TestAllGatesOfACauseHaveOneCardAndOneButton(t *testing.T) {
	h := openFar(t)
	for id, answer := range map[firstcome.CampaignID]firstcome.AnswerWhen{"a": firstcome.Recorded, "b": firstcome.Decided, "c": firstcome.Decided, "d": firstcome.Recorded} {
		terms := firstcome.Terms{Name: "추석 " + string(id), Quantity: 10, Answer: answer}
		stage.Must(t, stage.Err(h.config.Operator.Create(t.Context(), "a test", id, terms)))
	}
	stage.Must(t, stage.Err(h.config.Operator.SetTerms(t.Context(), "a test", "c", 0, func(t *firstcome.Terms) { t.Answer = firstcome.Recorded })))
	for _, id := range []firstcome.CampaignID{"a", "b", "c"} {
		h.mender.breaks(id, gate.ErrGone)
	}
	h.mender.breaks("d", gate.ErrUnverified)
	b := h.browser()
	page := b.get("/console/recording")
	const early, sentence = "maybe: claims may have been answered before they were recorded", "Redis was emptied or replaced, or lost keys."
	for what, times := range map[string]int{
		sentence: 1, "추석 a a 10 none: claims are answered once recorded": 1, "추석 b b 10 " + early: 1, "추석 c c 10 " + early: 1, "Rebuild these 3 gates…": 1, "Rebuild the gate…": 1,
	} {
		if got := strings.Count(page.text(), what); got != times {
			t.Errorf("%q is there %d times, and should be %d: %s", what, got, times, page.text())
		}
	}
	for id, says := range map[string]string{
		"a": "No customer was told of a lost coupon: this campaign answers claims once they are recorded.", "b": "Customers may have been told of lost coupons: this campaign may have answered claims before they were recorded.",
	} {
		if got := b.post("/console/campaigns/"+id+"/rebuild", url.Values{"version": {"1"}}); !strings.Contains(got.text(), says) {
			t.Errorf("%s is confirmed without %q: %s", id, says, got.text())
		}
	}
	b.lang = "ko"
	if got := b.get("/console/recording").text(); !strings.Contains(got, "추석 b b 10 있을 수 있음 (기록하기 전에 응답했을 수 있음)") || !strings.Contains(got, "추석 a a 10 없음 (원장에 기록한 뒤 응답)") {
		t.Errorf("in Korean: %s", got)
	}
	b.lang = "en"
	send := func(typed string, of ...string) shown {
		return b.post("/console/recording/rebuild", url.Values{"typed": {typed}, "of": of})
	}
	for typed, wrong := range map[string]bool{"": false, "2": true, "추석 a": true} {
		got := send(typed, "a 1", "b 1", "c 2")
		if got.status != http.StatusUnprocessableEntity || !strings.Contains(got.text(), "Rebuild these gates? (3)") || strings.Contains(got.text(), "That is not the number of campaigns. Nothing was changed.") != wrong || wrong && focused(got) != "typed" {
			t.Errorf("ordered with %q: %d %s", typed, got.status, got.text())
		}
	}
	for what, c := range map[string]struct {
		of     []string
		status int
	}{"a stale form": {[]string{"a 1", "c 1"}, 412}, "no campaign": {nil, 404}, "a campaign that nobody has": {[]string{"NO 1"}, 404}} {
		if got := send(fmt.Sprint(len(c.of)), c.of...); got.status != c.status {
			t.Errorf("%s: %d %s", what, got.status, got.text())
		}
	}
	for _, says := range []string{"Every coupon in the ledger stays. Coupons that are in neither the ledger nor the journal of Redis are lost.", "People in line keep their places if Kafka or Redis still has them", "type the number of campaigns:" + " 3"} {
		if got := send("", "a 1", "b 1", "c 2").text(); !strings.Contains(got, says) {
			t.Errorf("an order is confirmed without %q: %s", says, got)
		}
	}
	h.mender.breaks("b", nil) // meanwhile a node has rebuilt it
	if got := send("3", "a 1", "b 1", "c 2"); got.status != http.StatusUnprocessableEntity || !strings.Contains(got.text(), "Rebuild these gates? (2)") {
		t.Errorf("one decides again, and three are ordered: %d %s", got.status, got.text())
	}
	stage.Same(t, "what is ordered", "", h.mender.ordered())
	h.mender.failing = "a"
	if got := send("2", "a 1", "c 2"); got.status != http.StatusServiceUnavailable || !strings.Contains(got.text(), "Campaigns that are decided again: 1. Gates that could not be rebuilt: 1 (추석 a).") {
		t.Errorf("one fails: %d %s", got.status, got.text())
	}
	h.mender.failing = ""
	h.mender.breaks("c", gate.ErrGone)
	if got := send("2", "a 1", "c 2"); got.path != "/console/recording" || !strings.Contains(got.text(), "Campaigns that are decided again: 2.") || strings.Contains(got.text(), sentence) {
		t.Errorf("all are ordered: %d %s", got.status, got.text())
	}
	stage.Same(t, "what was ordered", "c by local, if lost: true; a by local, if lost: true; c by local, if lost: true", h.mender.ordered())
}

// TestMoreStoppedGatesThanAPageShowsAreCounted.
func TestMoreStoppedGatesThanAPageShowsAreCounted(t *testing.T) {
	h := openFar(t)
	for n := range 53 {
		h.mender.breaks(firstcome.CampaignID(fmt.Sprint("c-", n)), gate.ErrGone)
	}
	if got := h.browser().get("/console/recording").text(); !strings.Contains(got, "And 3 more.") || !strings.Contains(got, "not known now") {
		t.Errorf("of 53 gates it says %s", got)
	}
}
