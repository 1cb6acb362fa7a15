package console_test

import (
	"bufio"
	"net/http"
	"strings"
	"testing"

	"github.com/firstcome/firstcome/test/stage"
)

// A sentEvent is one of a stream.
type sentEvent struct{ name, id, data string }

// stream follows a campaign's events, as a browser that got the last of them before, and returns what reads the next one.
func (b *visitor) stream(campaign, last string) (next func() sentEvent) {
	t := b.h.t
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, b.h.url+"/console/campaigns/"+campaign+"/events", nil)
	stage.Must(t, err)
	if last != "" {
		r.Header.Set("Last-Event-ID", last)
	}
	answer, err := b.client.Do(r)
	stage.Must(t, err)
	t.Cleanup(func() { _ = answer.Body.Close() })
	lines := bufio.NewScanner(answer.Body)
	lines.Buffer(nil, 16<<20)
	return func() (e sentEvent) {
		t.Helper()
		for lines.Scan() {
			name, text, _ := strings.Cut(lines.Text(), ": ")
			switch name {
			case "event":
				e.name = text
			case "id":
				e.id = text
			case "data":
				e.data = text
			case "":
				return e
			}
		}
		t.Fatalf("the stream ended: %v", lines.Err())
		return e
	}
}

// TestWhoComesAgainGetsOnlyWhatWasMissed has one browser watch, and another come again with the id of the second sample.
func TestWhoComesAgainGetsOnlyWhatWasMissed(t *testing.T) {
	h := openHouse(t)
	id := h.campaign("spring", 10)
	h.claim(id, "a", "b", "c")
	w := h.config.Watcher
	next := h.browser().stream("spring", "")
	if first := next(); first.name != "course" || first.id != "" || !strings.Contains(first.data, `"rates":{"issued":[[`) {
		t.Fatalf("who comes first is sent %+v", first)
	}
	var got []sentEvent
	for len(got) < 4 {
		w.Tick(t.Context())
		e := next()
		if e.name != "sample" || e.id == "" || len(got) > 0 && e.id == got[len(got)-1].id {
			t.Fatalf("sample %d is %+v", len(got), e)
		}
		got = append(got, e)
	}
	if e, want := h.browser().stream("spring", got[1].id)(), `{"samples":[`+got[2].data+","+got[3].data+"]}"; e.name != "missed" || e.data != want {
		t.Errorf("who comes again is sent %+v, want %s", e, want)
	}
	if e := h.browser().stream("spring", got[3].id)(); e.name != "missed" || e.data != `{"samples":[]}` {
		t.Errorf("who missed nothing is sent %+v", e)
	}
	for _, odd := range []string{"x", "1e9"} {
		if e := h.browser().stream("spring", odd)(); e.name != "course" {
			t.Errorf("who names %q is sent %+v", odd, e)
		}
	}
}
