package console_test

import (
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/auth"
	"github.com/firstcome/firstcome/internal/zone"
	"github.com/firstcome/firstcome/test/stage"
)

// A distance is what pages say about an instant so many seconds ago.
type distance struct {
	age    int
	ko, en string
}

func (d distance) says(lang string) string {
	if lang == "ko" {
		return d.ko
	}
	return d.en
}

var distances = []distance{
	{0, "0초 전", "0 seconds ago"},
	{1, "1초 전", "1 second ago"},
	{59, "59초 전", "59 seconds ago"},
	{90, "1분 전", "1 minute ago"},
	{59*60 + 59, "59분 전", "59 minutes ago"},
	{90 * 60, "1시간 전", "1 hour ago"},
	{47 * 60 * 60, "47시간 전", "47 hours ago"},
	{49 * 60 * 60, "2일 전", "2 days ago"},
	{1000 * 24 * 60 * 60, "1,000일 전", "1,000 days ago"},
	{-30, "30초 후", "in 30 seconds"},
	{-90 * 60, "1시간 후", "in 1 hour"},
}

// keysOf opens a house with a key created at each of the distances before now.
func keysOf(t *testing.T, now time.Time) *house {
	h := openHouse(t, func(h *house) { h.stands(now) })
	for n, d := range distances {
		_, key, err := auth.NewKey(fmt.Sprint("key ", n), firstcome.Viewer)
		stage.Must(t, err)
		key.CreatedAt = now.Add(-time.Duration(d.age) * time.Second)
		stage.Must(t, h.ledger.Deployment.AddKey(t.Context(), "a test", key))
	}
	return h
}

func TestTimesSayHowFarTheyAreAndTheInstantInBothZones(t *testing.T) {
	now := time.Date(2026, 11, 23, 20, 0, 3, 214_000_000, time.UTC)
	b := keysOf(t, now).browser()
	for _, lang := range []string{"ko", "en"} {
		b.lang = lang
		got := b.get("/console/keys").body
		for _, d := range distances {
			at := now.Add(-time.Duration(d.age) * time.Second)
			want := fmt.Sprintf(`<time datetime="%s" tabindex="0" aria-description="%s KST&#10;%s UTC" data-age="%d">%s</time>`, at.Format("2006-01-02T15:04:05.000Z"),
				at.Add(9*time.Hour).Format("2006-01-02 15:04:05.000"), at.Format("2006-01-02 15:04:05.000"), d.age, d.says(lang))
			if !strings.Contains(got, want) {
				t.Errorf("%s: no %s in %s", lang, want, regexp.MustCompile(`<time.*?</time>`).FindAllString(got, -1))
			}
		}
	}
}

func TestPagesHaveTheZoneOfTheServerOrOfTheirLanguage(t *testing.T) {
	now := time.Date(2026, 7, 23, 20, 0, 3, 0, time.UTC)
	newYork, err := zone.Load("America/New_York")
	stage.Must(t, err)
	for _, c := range []struct {
		zone       *time.Location
		lang, want string // want is how support says when the coupon was issued
		shown      string
	}{
		{nil, "ko", "7월 24일 오전 5시 0분 3초에", "2026-07-24 05:00:03.000 KST"},
		{nil, "en", "at 8:00:03 pm on 23 July (UTC)", "2026-07-23 20:00:03.000 UTC"},
		{newYork, "ko", "7월 23일 오후 4시 0분 3초 (New York 시간)에", "2026-07-23 16:00:03.000 EDT"},
		{newYork, "en", "at 4:00:03 pm on 23 July (New York time)", "2026-07-23 16:00:03.000 EDT"},
	} {
		h := openHouse(t, func(h *house) {
			h.stands(now)
			h.config.Zone = c.zone
		})
		h.claim(h.campaign("spring", 10), "mina")
		b := h.browser()
		b.lang = c.lang
		got := b.get("/console/customer?user_id=mina&campaign=spring").text()
		for _, want := range []string{c.want, c.shown} {
			if !strings.Contains(got, want) {
				t.Errorf("%s in %v: no %q in %s", c.lang, c.zone, want, got)
			}
		}
	}
}

// TestTheFormReadsTimesInTheZoneOfThePage also types times that clocks in New York skip or show twice.
func TestTheFormReadsTimesInTheZoneOfThePage(t *testing.T) {
	newYork, err := zone.Load("America/New_York")
	stage.Must(t, err)
	h := openHouse(t, func(h *house) {
		h.stands(time.Date(2026, 10, 1, 0, 0, 0, 0, time.UTC))
		h.config.Zone = newYork
	})
	b := h.browser()
	form := url.Values{"name": {"drop"}, "id": {"drop"}, "quantity": {"5"}, "answer": {"recorded"}, "line": {"none"}, "step": {"create"}}
	for typed, want := range map[string]string{
		"2027-03-14T02:30": "Clocks in this zone skip this time when they are put forward: choose another time.",
		"2026-11-01T01:30": "Clocks in this zone show this time twice, as they are put back: choose another time, or use the firstcome command",
		"1 o'clock":        "Write it like 2026-12-01T10:00.",
	} {
		form.Set("opens_at", typed)
		if got := b.post("/console/campaigns", form); got.status != http.StatusUnprocessableEntity || !strings.Contains(got.text(), want) {
			t.Errorf("%s: %d, no %q in %s", typed, got.status, want, got.text())
		}
	}
	form.Set("opens_at", "2026-11-02T09:30")
	b.post("/console/campaigns", form)
	if got, want := h.status("drop").OpensAt, time.Date(2026, 11, 2, 14, 30, 0, 0, time.UTC); !got.Equal(want) {
		t.Errorf("it opens at %v, want %v", got, want)
	}
	if got := b.get("/console/campaigns/drop/coupons.csv").body; got != "all of drop, America/New_York, korean false" {
		t.Errorf("the export is %q", got)
	}
}
