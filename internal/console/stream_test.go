package console_test

import (
	"bufio"
	"context"
	"net/http"
	"strings"
	"testing"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/test/stage"
)

// A sentEvent is an event of a stream.
type sentEvent struct{ name, id, data string }

// stream follows a campaign's events like a browser whose last event was the one with this id. It returns a function that reads the next event.
func (b *visitor) stream(campaign, last string) (next func() sentEvent) {
	t := b.h.t
	t.Helper()
	next, _ = b.streamUntil(t.Context(), campaign, last)
	return next
}

// streamUntil does the same until ctx ends, and also returns the status.
func (b *visitor) streamUntil(ctx context.Context, campaign, last string) (next func() sentEvent, status int) {
	t := b.h.t
	t.Helper()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, b.h.url+"/console/campaigns/"+campaign+"/events", nil)
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
	}, answer.StatusCode
}

// TestOneKeyFollowsOnlySoManyStreams opens as many streams with one viewer's key as it may have. Other keys are not affected, and a stream that ends
// makes room.
func TestOneKeyFollowsOnlySoManyStreams(t *testing.T) {
	const most = 8 // console.pagesOfKey
	h := openHouse(t, withKeys)
	h.campaign("spring", 10)
	greedy, _ := h.key(firstcome.Viewer)
	other, _ := h.key(firstcome.Viewer)
	b := h.login(greedy)
	first, leave := context.WithCancel(t.Context())
	ctx := first
	for n := range most + 1 {
		want := http.StatusOK
		if n == most {
			want = http.StatusServiceUnavailable
		}
		if _, status := b.streamUntil(ctx, "spring", ""); status != want {
			t.Fatalf("stream %d is answered %d, want %d", n+1, status, want)
		}
		ctx = t.Context()
	}
	if got := b.get("/console/campaigns/spring"); got.status != http.StatusOK {
		t.Errorf("its own page: %d", got.status)
	}
	if got := h.login(other).follows("spring"); !got {
		t.Error("another key's stream is refused")
	}
	leave()
	stage.Await(t, "a stream once another has ended", true, func() bool { return b.follows("spring") })
}

// TestAllKeysTogetherFollowOnlySoManyStreams lets sixteen viewers each open as many streams as one key may have.
func TestAllKeysTogetherFollowOnlySoManyStreams(t *testing.T) {
	const each, most = 8, 128 // console.pagesOfKey and console.mostPages
	h := openHouse(t, withKeys)
	h.campaign("spring", 10)
	for range most / each {
		plain, _ := h.key(firstcome.Viewer)
		b := h.login(plain)
		for range each {
			if _, status := b.streamUntil(t.Context(), "spring", ""); status != http.StatusOK {
				t.Fatalf("a stream is answered %d", status)
			}
		}
	}
	plain, _ := h.key(firstcome.Viewer)
	if _, status := h.login(plain).streamUntil(t.Context(), "spring", ""); status != http.StatusServiceUnavailable {
		t.Errorf("stream %d of all is answered %d", most+1, status)
	}
}

// TestWhoComesAgainGetsOnlyWhatWasMissed lets one browser watch, and another reconnect with the id of the second sample.
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
