package console_test

import (
	"strings"
	"testing"
	"time"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/gate"
)

// TestTheLivePageShowsHowManyAreLeft also views an unlimited campaign, and a gate that does not answer.
func TestTheLivePageShowsHowManyAreLeft(t *testing.T) {
	h := openFar(t)
	h.claim(h.campaign("bounded", 10), "a", "b", "c")
	h.claim(h.campaign("unlimited", firstcome.Unlimited), "a")
	b := h.browser()
	shows := func(id, left string) {
		t.Helper()
		got := b.get("/console/campaigns/" + id)
		if !strings.Contains(got.text(), " Left "+left+" ") || strings.Contains(got.body, "<progress") != (left != "–") {
			t.Errorf("%s: not %s left: %s", id, left, got.body)
		}
	}
	shows("bounded", "7")
	shows("unlimited", "–")
	h.gate.Set(func() {
		h.gate.States = func(firstcome.CampaignID, *gate.State) error { return errAway }
	})
	shows("bounded", "–")
}

// TestTheLivePageCountsClaimsInVain adds up four kinds of refusals. Before the first tick their number is unknown.
func TestTheLivePageCountsClaimsInVain(t *testing.T) {
	now := time.Date(2026, 11, 23, 0, 0, 0, 0, time.UTC)
	h := openHouse(t, func(h *house) {
		h.stands(now)
		h.config.Watcher.Clock = h.clock
	})
	id := h.campaign("spring", 10)
	for outcome, claims := range map[firstcome.Outcome]int{
		firstcome.SoldOut: 1, firstcome.NotOpen: 10, firstcome.Closed: 100, firstcome.Paused: 1000,
		firstcome.Issued: 2, firstcome.AlreadyIssued: 2, firstcome.Waiting: 2,
	} {
		for range claims {
			h.counter.Claimed(id, outcome, time.Millisecond)
		}
	}
	shows := func(want string) {
		t.Helper()
		if got := h.browser().get("/console/campaigns/spring").text(); !strings.Contains(got, "Refused "+want+" ") {
			t.Errorf("not %s refused claims: %s", want, got)
		}
	}
	shows("–")
	_, stop := h.config.Watcher.Watch(id)
	defer stop()
	h.config.Watcher.Tick(t.Context())
	shows("1,111")
}
