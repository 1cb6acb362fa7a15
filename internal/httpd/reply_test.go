package httpd

import (
	"net/http"
	"testing"
	"time"
)

func TestAnAnswersDateIsOfItsOwnSecond(t *testing.T) {
	second := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	for _, at := range []time.Time{second, second.Add(time.Second - 1), second.Add(time.Second), second, second.In(time.FixedZone("KST", 9*60*60))} {
		if got, want := dateOf(at), at.UTC().Format(http.TimeFormat); got != want {
			t.Errorf("at %v: %s, want %s", at, got, want)
		}
	}
}
