package console_test

import (
	"context"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/audit"
	"github.com/firstcome/firstcome/internal/console"
	"github.com/firstcome/firstcome/internal/figures"
	"github.com/firstcome/firstcome/internal/ledger"
	"github.com/firstcome/firstcome/test/stage"
)

// await requests a page until it has a text.
func (b *visitor) await(path, want string) shown {
	b.h.t.Helper()
	for end := time.Now().Add(time.Minute); time.Now().Before(end); {
		if got := b.get(path); strings.Contains(got.text(), want) {
			return got
		}
	}
	b.h.t.Fatalf("%s never said %q: %s", path, want, b.get(path).text())
	return shown{}
}

// endsWhileRead is a ledger in which a verification ends just after the results were read.
type endsWhileRead struct {
	console.Deployment
	end func()
}

func (l *endsWhileRead) Proofs(ctx context.Context, ids []firstcome.CampaignID) ([]ledger.Proof, error) {
	found, err := l.Deployment.Proofs(ctx, ids)
	if end := l.end; end != nil {
		l.end = nil
		end()
	}
	return found, err
}

// TestAProofThatEndsWhileItsPageIsReadIsNotDenied: a page without a result yet must say that the verification is under way, so that it is loaded
// again.
func TestAProofThatEndsWhileItsPageIsReadIsNotDenied(t *testing.T) {
	may := make(chan struct{})
	var book endsWhileRead
	h := openHouse(t, func(h *house) {
		prove := h.config.Prove
		h.config.Prove = func(ctx context.Context, id firstcome.CampaignID, read *atomic.Int64) (console.Proof, error) {
			<-may
			return prove(ctx, id, read)
		}
		book.Deployment = h.config.Deployment
		h.config.Deployment = &book
	})
	h.campaign("spring", 3)
	b := h.browser()
	b.post("/console/campaigns/spring/proof", url.Values{})
	book.end = func() {
		close(may)
		stage.Await(t, "that the proof has ended", true, func() bool {
			got := b.get("/console/campaigns/spring/proof").text()
			return strings.Contains(got, "was kept") && !strings.Contains(got, "Running")
		})
	}
	if got := b.get("/console/campaigns/spring/proof").text(); !strings.Contains(got, "Running") {
		t.Errorf("the page says %s", got)
	}
}

func TestACampaignIsProvedAndReported(t *testing.T) {
	h := openHouse(t)
	id := h.campaign("spring", 3)
	h.claim(id, "a", "b", "c", "d")
	b := h.browser()
	if got := b.get("/console/campaigns/spring/proof").text(); !strings.Contains(got, "not been verified yet") {
		t.Errorf("before: %s", got)
	}
	if got := b.post("/console/campaigns/spring/proof", url.Values{}); got.status != http.StatusOK {
		t.Fatalf("started: %d %s", got.status, got.text())
	}
	proved := b.await("/console/campaigns/spring/proof", "Every promise that was checked was kept")
	for _, want := range []string{
		"P1 " + "Never more" + " At every number: were more coupons in force than the quantity at that time?" + " 3 kept", "P2 " + "Never fewer" + " This needs the answers that clients got: firstcome load checks it. – " + "not checked here",
		"P9 " + "A place is kept" + " This campaign had no line. – " + "does not apply", "3 coupons",
	} {
		if !strings.Contains(proved.text(), want) {
			t.Errorf("no %q in %s", want, proved.text())
		}
	}
	before := &figures.Board{Node: figures.Node{Host: "gone"}, Counter: figures.NewCounter(nil), Rows: h.ledger.Deployment}
	for _, c := range []*figures.Counter{before.Counter, h.counter} {
		c.Claimed(id, firstcome.Paused, time.Millisecond)
	}
	ended, end := context.WithCancel(t.Context())
	end()
	before.Warn = func(string, ...any) {}
	stage.Must(t, before.Run(ended))
	report := b.get("/console/campaigns/spring/report")
	for _, want := range []string{"Event report", "Claims: paused 2", "3 / 3", "sold out", "Every promise that was checked was kept"} {
		if !strings.Contains(report.text(), want) {
			t.Errorf("the report has no %q: %s", want, report.text())
		}
	}
	if !strings.Contains(report.body, "<polyline") {
		t.Error("the report draws no order")
	}
}

// TestABreachNamesNoUserToWhoSeesNone: viewers and support see only how many there are.
func TestABreachNamesNoUserToWhoSeesNone(t *testing.T) {
	found := audit.Breaches{Total: 2, Count: map[string]int64{"P3": 1, "facts": 1}, Shown: []audit.Breach{{Promise: "P3", Text: "mina-private holds two"}, {Promise: "facts", Text: "mina-private is missing"}}}
	h := openHouse(t, withKeys, func(h *house) {
		h.config.Prove = func(context.Context, firstcome.CampaignID, *atomic.Int64) (console.Proof, error) {
			return console.Proof{Ledger: audit.Report{Coupons: 9, Breaches: found}}, nil
		}
	})
	h.campaign("spring", 3)
	operator, _ := h.key(firstcome.Operator)
	b := h.login(operator)
	b.post("/console/campaigns/spring/proof", url.Values{})
	b.await("/console/campaigns/spring/proof", "mina-private is missing")
	for _, role := range []firstcome.Role{firstcome.Viewer, firstcome.Support} {
		plain, _ := h.key(role)
		for _, page := range []string{"proof", "report"} {
			got := h.login(plain).get("/console/campaigns/spring/" + page)
			if strings.Contains(got.body, "mina-private") || strings.Count(got.text(), "broken 1") != 2 {
				t.Errorf("%s reads in the %s: %s", role, page, got.text())
			}
		}
	}
}

func TestABreachIsNeverShownAsKept(t *testing.T) {
	found := audit.Breaches{Total: 2, Count: map[string]int64{"P3": 1, "facts": 1}, Shown: []audit.Breach{{Promise: "P3", Text: "mina holds two"}, {Promise: "facts", Text: "position 7 is missing"}}}
	proofs := map[firstcome.CampaignID]console.Proof{
		"ledger": {Ledger: audit.Report{Coupons: 9, Breaches: found}},
		"gate":   {Ledger: audit.Report{Coupons: 9}, Gate: &audit.GateReport{Breaches: found, Moving: true}},
	}
	h := openHouse(t, func(h *house) {
		h.config.Prove = func(_ context.Context, id firstcome.CampaignID, _ *atomic.Int64) (console.Proof, error) {
			return proofs[id], nil
		}
	})
	b := h.browser()
	for id := range proofs {
		page := "/console/campaigns/" + string(h.campaign(string(id), 3)) + "/proof"
		b.post(page, url.Values{})
		got := b.await(page, "Verify again").text() // this also shows that the next verification may begin
		for _, want := range []string{"Promises are broken: 2", "mina holds two", "position 7 is missing", "broken 1"} {
			if !strings.Contains(got, want) {
				t.Errorf("a breach at the %s: no %q in %s", id, want, got)
			}
		}
		if strings.Contains(got, "Every promise that was checked was kept") {
			t.Errorf("a breach at the %s: it says kept", id)
		}
		if said := "The gate was busy, so its counters were not compared."; strings.Contains(got, said) != (id == "gate") {
			t.Errorf("a breach at the %s: it should say %q only of a gate in use: %s", id, said, got)
		}
	}
}

// TestAPromiseWhoseCheckWasNotMadeIsNotSaidToBeChecked has a campaign with a line. The database could check only P5.
func TestAPromiseWhoseCheckWasNotMadeIsNotSaidToBeChecked(t *testing.T) {
	notMade := audit.Breaches{Total: 1, Count: map[string]int64{"unreadable": 1}, Shown: []audit.Breach{{Promise: "unreadable", Query: "over", Text: "the check was not made"}}}
	h := openHouse(t, func(h *house) {
		h.config.Prove = func(context.Context, firstcome.CampaignID, *atomic.Int64) (console.Proof, error) {
			return console.Proof{Ledger: audit.Report{Coupons: 9, Held: []string{"P5"}, Breaches: notMade}}, nil
		}
	})
	b := h.browser()
	page := "/console/campaigns/" + string(h.campaign("spring", 3)) + "/proof"
	b.post(page, url.Values{})
	got := b.await(page, "Verify again").text()
	if n := strings.Count(got, "This could not be checked: see the errors below."); n != 5 || strings.Contains(got, "This campaign had no line") {
		t.Errorf("of P1, P3, P4, P9 and P10, %d could not be checked: %s", n, got)
	}
	if !strings.Contains(got, "the check was not made") {
		t.Errorf("the page does not say which check: %s", got)
	}
}

func TestOneProofRunsAtATimeAndCanBeStopped(t *testing.T) {
	begun, stopped := make(chan struct{}, 2), make(chan struct{}, 2)
	h := openHouse(t, func(h *house) {
		h.config.Prove = func(ctx context.Context, _ firstcome.CampaignID, read *atomic.Int64) (console.Proof, error) {
			read.Store(4711)
			begun <- struct{}{}
			<-ctx.Done()
			stopped <- struct{}{}
			return console.Proof{}, ctx.Err()
		}
	})
	h.campaign("spring", 3)
	h.campaign("winter", 3)
	b := h.browser()
	b.post("/console/campaigns/spring/proof", url.Values{})
	<-begun
	if got := b.get("/console/campaigns/spring/proof").text(); !strings.Contains(got, "4,711 rows read") {
		t.Errorf("under way: %s", got)
	}
	if got := b.post("/console/campaigns/winter/proof", url.Values{}); got.status != http.StatusConflict {
		t.Errorf("a second one: %d %s", got.status, got.text())
	}
	if got := b.get("/console/campaigns/winter/proof").text(); !strings.Contains(got, "Another campaign is being verified"+": spring") {
		t.Errorf("the other campaign's page: %s", got)
	}
	b.post("/console/campaigns/winter/proof/stop", url.Values{}) // the verification under way is not winter's
	select {
	case <-stopped:
		t.Fatal("winter's page stopped spring's proof")
	default:
	}
	b.post("/console/campaigns/spring/proof/stop", url.Values{})
	<-stopped
	b.await("/console/campaigns/spring/proof", "not been verified yet")
}

// TestTheReportHasWhatTheLedgerHasNow opens the report before any verification, after a failed one, and after changes since one.
func TestTheReportHasWhatTheLedgerHasNow(t *testing.T) {
	var failed atomic.Bool
	h := openFar(t, func(h *house) {
		prove := h.config.Prove
		h.config.Prove = func(ctx context.Context, id firstcome.CampaignID, read *atomic.Int64) (console.Proof, error) {
			if failed.Load() {
				return console.Proof{}, errAway
			}
			return prove(ctx, id, read)
		}
	})
	id := h.campaign("spring", 20)
	h.claim(id, "a", "b", "c", "d")
	h.bury(id, "e", "number 5 is over the quantity of 2")
	b := h.browser()
	void := func(number int64) {
		stage.Must(t, stage.Err(h.config.Operator.Void(t.Context(), "a test", id, number, "r")))
	}
	says := func(when, want string) {
		t.Helper()
		if got := b.get("/console/campaigns/spring/report").text(); !strings.Contains(got, want) {
			t.Errorf("%s the report has no %q: %s", when, want, got)
		}
	}
	void(1)
	says("before any proof", "Voided 1 Dead letters 1 ")
	b.post("/console/campaigns/spring/proof", url.Values{})
	b.await("/console/campaigns/spring/proof", "Verify again")
	void(2)
	says("after a proof and a void", "Voided 2 Dead letters 1 ")
	failed.Store(true)
	b.post("/console/campaigns/spring/proof", url.Values{})
	b.await("/console/campaigns/spring/proof", "The verification failed")
	says("after a proof that failed", "Voided 2 Dead letters 1 ")
}
