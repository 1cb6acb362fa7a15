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
	if got := b.get("/console/campaigns/unlimited").text(); !strings.Contains(got, "1 issued, unlimited") {
		t.Errorf("an unlimited campaign: %s", got)
	}
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

// TestLiveLeadsToTheWall also reads the wall, which has no link but the one back, of a campaign whose gate does not know when it sold out.
func TestLiveLeadsToTheWall(t *testing.T) {
	h := openFar(t)
	h.claim(h.campaign("spring", 1), "mina")
	h.gate.Set(func() {
		h.gate.States = func(_ firstcome.CampaignID, s *gate.State) error { s.SoldOutAt = time.Time{}; return nil }
	})
	b := h.browser()
	got := b.get("/console/campaigns/spring")
	if !strings.Contains(got.body, `href="/console/campaigns/spring?wall">View for a wall<`) || !strings.Contains(got.text(), "It is sold out.") {
		t.Errorf("Live: %s", got.body)
	}
	wall := b.get("/console/campaigns/spring?wall")
	if page := parse(t, wall.body); len(page.all("nav")) > 0 || len(page.all("form")) > 0 || len(page.all("a[href]")) != 1 || len(page.all("div[data-plot]")) != 3 {
		t.Errorf("the wall: %s", wall.body)
	}
	if b.lang = "ko"; strings.Contains(b.get("/console/campaigns/spring/coupons?wall").body, `class="wall"`) {
		t.Error("another page is a wall")
	}
}
