package console_test

import (
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/auth"
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
		stage.Must(t, h.ledger.Desk.AddKey(t.Context(), "a test", key))
	}
	return h
}

func TestTimesSayHowFarTheyAreAndTheInstantInBothZones(t *testing.T) {
	now := time.Date(2026, 11, 23, 20, 0, 3, 214_000_000, time.UTC)
	b := keysOf(t, now).browser()
	for lang, seoul := range map[string]string{"ko": "서울", "en": "Seoul"} {
		b.lang = lang
		got := b.get("/console/keys").body
		for _, d := range distances {
			at := now.Add(-time.Duration(d.age) * time.Second)
			want := fmt.Sprintf(`<time datetime="%s" tabindex="0" aria-description="%s %s&#10;UTC %s" data-age="%d">%s</time>`, at.Format("2006-01-02T15:04:05.000Z"),
				seoul, at.Add(9*time.Hour).Format("2006-01-02 15:04:05.000"), at.Format("2006-01-02 15:04:05.000"), d.age, d.says(lang))
			if !strings.Contains(got, want) {
				t.Errorf("%s: no %s in %s", lang, want, regexp.MustCompile(`<time.*?</time>`).FindAllString(got, -1))
			}
		}
	}
}
