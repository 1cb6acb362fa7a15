package console_test

import (
	"context"
	"errors"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/doctor"
	"github.com/firstcome/firstcome/internal/figures"
	"github.com/firstcome/firstcome/internal/gate"
	"github.com/firstcome/firstcome/internal/record"
)

// A fleet is the nodes table, with the reports that the test puts there.
type fleet []figures.Node

func (f fleet) Nodes(context.Context) ([]figures.Node, error) {
	if f == nil {
		return nil, errors.New("no route to the database")
	}
	return f, nil
}

// TestAnIdleNodeSaysHowOftenItReports has a busy, an idle and a gone node.
func TestAnIdleNodeSaysHowOftenItReports(t *testing.T) {
	h := openFar(t)
	now := time.Now()
	report := func(host string, age, every time.Duration) figures.Node {
		return figures.Node{Host: host, Role: "all", StartedAt: now.Add(-time.Hour), SeenAt: now.Add(-age), Now: now, Every: every, Breaker: "closed"}
	}
	h.config.Watcher.Nodes = fleet{report("busy", time.Second, 2*time.Second), report("idle", 27*time.Second, 30*time.Second), report("gone", 35*time.Second, 30*time.Second)}
	for lang, want := range map[string]string{"ko": "정상 27초 전 요청이 없어 30초마다 보고합니다 ", "en": "alive 27 seconds ago idle: reports every 30 s "} {
		b := h.browser()
		b.lang = lang
		if got := b.get("/console/health").text(); !strings.Contains(got, want) || strings.Count(got, want[len(want)-12:]) != 1 {
			t.Errorf("%s: %s", lang, got)
		}
		if got := b.get("/console/recording").text(); !strings.Contains(got, want[strings.Index(want, "27"):]) {
			t.Errorf("%s, Recording: %s", lang, got)
		}
	}
}

// somethingFound is a doctor with findings.
func somethingFound(context.Context) (found doctor.Findings) {
	found.Add(doctor.Warn, "the disk", "free some", "it is 93 %% full")
	return found
}

// TestTheArrowIntoTheGateIsBadWhileItDecidesNothingOfACampaign loses one campaign of two, and gets it back.
func TestTheArrowIntoTheGateIsBadWhileItDecidesNothingOfACampaign(t *testing.T) {
	h := openFar(t)
	h.campaign("spring", 5)
	h.campaign("summer", 5)
	arrow := func(want string) {
		t.Helper()
		for _, lang := range []string{"ko", "en"} {
			b := h.browser()
			b.lang = lang
			got := b.get("/console/health")
			arrows := strings.Split(got.body, `<span class="arrow `) // the first leaves the claims, the second the nodes
			if len(arrows) < 3 || !strings.HasPrefix(arrows[2], want+`"`) {
				t.Errorf("the arrow into the gate is not %s: %s", want, got.text())
			}
			if note := map[string]string{"ko": "발급이 중단된 캠페인 1", "en": "campaigns not decided: 1"}[b.lang]; strings.Contains(got.text(), note) != (want == "bad") {
				t.Errorf("its note is another one: %s", got.text())
			}
		}
	}
	arrow("ok")
	h.mender.breaks("summer", gate.ErrGone)
	arrow("bad")
	h.mender.breaks("summer", nil)
	arrow("ok")
}

func TestHealthShowsNodesAndWhatDoctorFound(t *testing.T) {
	at := time.Now()
	node := func(host string, ago time.Duration) figures.Node {
		return figures.Node{Host: host, Listen: ":8080", Role: "all", Version: "v9", StartedAt: at, SeenAt: at.Add(-ago), Now: at}
	}
	looked := 0
	h := openHouse(t, func(h *house) {
		alpha := node("alpha", time.Second)
		alpha.Breaker = "open"
		h.config.Watcher.Nodes = fleet{alpha, node("beta", time.Minute)}
		h.config.Doctor = func(ctx context.Context) doctor.Findings {
			looked++
			return somethingFound(ctx)
		}
	})
	b := h.browser()
	if got := b.get("/console/health").text(); looked != 0 || !strings.Contains(got, "No checks have run on this node yet") {
		t.Errorf("nobody asked, and doctor looked %d times: %s", looked, got)
	}
	got := b.post("/console/health/examine", url.Values{}).text()
	for _, want := range []string{"alpha :8080", "alive 1 second ago", "gone 1 minute ago", "WARN the disk it is 93 % full free some", "Ledger = Gate", "open: the ledger takes nothing"} {
		if !strings.Contains(got, want) {
			t.Errorf("no %q in %s", want, got)
		}
	}
	b.get("/console/health?examine=yes") // viewing changes nothing
	if b.post("/console/health/examine", url.Values{}); looked != 1 {
		t.Errorf("doctor looked %d times within seconds", looked)
	}
}

// TestDoctorLooksOnceForAll lets ten people ask while doctor runs.
func TestDoctorLooksOnceForAll(t *testing.T) {
	const more = 9
	var looked atomic.Int64
	looks, let := make(chan struct{}, more+1), make(chan struct{})
	h := openHouse(t, func(h *house) {
		h.config.Doctor = func(ctx context.Context) doctor.Findings {
			looked.Add(1)
			looks <- struct{}{}
			<-let
			return somethingFound(ctx)
		}
	})
	b := h.browser()
	var asking sync.WaitGroup
	ask := func() { b.post("/console/health/examine", url.Values{}) }
	asking.Go(ask)
	<-looks
	for range more / 3 {
		ask()
	}
	close(let)
	asking.Wait()
	for range more - more/3 {
		asking.Go(ask)
	}
	asking.Wait()
	if n := looked.Load(); n != 1 || !strings.Contains(b.get("/console/health").text(), "it is 93 % full") {
		t.Errorf("doctor looked %d times", n)
	}
}

func TestHealthSaysThatTheNodesCannotBeRead(t *testing.T) {
	h := openHouse(t, func(h *house) { h.config.Watcher.Nodes = fleet(nil) })
	if got := h.browser().get("/console/health").text(); !strings.Contains(got, "The nodes cannot be read") {
		t.Error(got)
	}
}

// TestHealthShowsClaimsPerSecondBetweenTwoLooks: another person's look does not shorten the time between two looks.
func TestHealthShowsClaimsPerSecondBetweenTwoLooks(t *testing.T) {
	now := time.Date(2026, 11, 23, 0, 0, 0, 0, time.UTC)
	h := openHouse(t, func(h *house) { h.stands(now) })
	b := h.browser()
	for _, look := range []struct {
		after time.Duration
		want  string
	}{{0, "–"}, {10 * time.Second, "12/s"}, {100 * time.Millisecond, "12/s"}, {time.Minute - 100*time.Millisecond, "4/s"}, {time.Minute + time.Second, "–"}} {
		for range 120 {
			h.counter.Claimed("spring", firstcome.SoldOut, time.Millisecond)
		}
		now = now.Add(look.after)
		h.stands(now)
		if got := b.get("/console/health").text(); !strings.Contains(got, "Claims "+look.want+" Nodes") {
			t.Errorf("%v after the look before: no %q in %s", look.after, look.want, got)
		}
	}
}

// TestHealthCountsCouponsThatALineGets counts claims that got a place, and coupons that were issued to the line.
func TestHealthCountsCouponsThatALineGets(t *testing.T) {
	now := time.Date(2026, 11, 23, 0, 0, 0, 0, time.UTC)
	houses := map[string]func(testing.TB, ...func(*house)) *house{"Ledger = Gate": openHouse, "Gate": openFar}
	for part, open := range houses {
		h := open(t, func(h *house) { h.stands(now) })
		h.counter.Claimed("spring", firstcome.Waiting, time.Millisecond)
		b := h.browser()
		b.get("/console/health")
		for range 70 {
			h.counter.Claimed("spring", firstcome.Waiting, time.Millisecond)
		}
		h.counter.Claimed("spring", firstcome.Issued, time.Millisecond)
		h.counter.Served("spring", 49)
		h.stands(now.Add(time.Second))
		got := b.get("/console/health").text()
		for _, want := range []string{"Claims 71/s", part + " 50/s"} {
			if !strings.Contains(got, want) {
				t.Errorf("no %q in %s", want, got)
			}
		}
	}
}

func TestHealthShowsClaimsThatAreNotAnsweredWithAnOutcome(t *testing.T) {
	for said, err := range map[string]error{"some claims end unknown": errors.New("no route"), "some claims are not decided": firstcome.ErrTooMany, "": nil} {
		now := time.Date(2026, 11, 23, 0, 0, 0, 0, time.UTC)
		h := openHouse(t, func(h *house) { h.stands(now) })
		h.counter.Claimed("spring", firstcome.Issued, time.Millisecond)
		b := h.browser()
		b.get("/console/health")
		if h.counter.Claimed("spring", firstcome.Issued, time.Millisecond); err != nil {
			h.counter.Undecided(t.Context(), "spring", err)
		}
		h.stands(now.Add(time.Second))
		if got := b.get("/console/health").text(); strings.Contains(got, "some claims") != (said != "") || !strings.Contains(got, said) {
			t.Errorf("%v: no %q in %s", err, said, got)
		}
	}
}

func TestHealthShowsThatTheRecordersBreakerIsOpen(t *testing.T) {
	breaker := ""
	h := openFar(t, func(h *house) {
		h.config.Journal.Recorder = func() record.Stats { return record.Stats{Breaker: breaker} }
	})
	b := h.browser()
	for _, breaker = range []string{"closed", "open"} {
		if got := b.get("/console/health").text(); strings.Contains(got, "the breaker is open") != (breaker == "open") {
			t.Errorf("the breaker is %s: %s", breaker, got)
		}
	}
}
