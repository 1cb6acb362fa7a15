package client_test

import (
	"context"
	"fmt"
	"math"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/client"
)

const (
	aPlace  = `{"outcome":"waiting","ticket":2,"generation":1,"ahead":%d,"eta_seconds":1,"likely":true,"serving":true,"reason":null,"until":null,"closes_at":null,"poll_after":0.01}`
	aCoupon = `{"outcome":"already_issued","coupon":{"campaign_id":"c","number":2,"user_id":"u"}}`
)

// follow follows a place at a server that answers the n-th request for a stream, from 0, with the n-th answer, and whose line has passed the place
// without a coupon. It returns the outcome, the number of places that were told, and the Last-Event-ID of each request for a stream.
func follow(t *testing.T, stream func(n int, w http.ResponseWriter)) (outcome string, places int, heard []string) {
	t.Helper()
	mux := http.NewServeMux()
	mux.HandleFunc("GET /v1/campaigns/c/claims/u/events", func(w http.ResponseWriter, r *http.Request) {
		heard = append(heard, r.Header.Get("Last-Event-ID"))
		stream(len(heard)-1, w)
	})
	mux.HandleFunc("GET /v1/campaigns/c/line", func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w, `{"generation":2,"serving":1,"ended":[{"generation":1,"reason":"sold_out"}]}`)
	})
	mux.HandleFunc("GET /v1/campaigns/c/claims/u", func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusNotFound)
		fmt.Fprint(w, `{"code":"not_found"}`)
	})
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	c := client.New(server.URL, "")
	t.Cleanup(c.CloseIdle)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	t.Cleanup(cancel)
	answer, err := c.Follow(ctx, "c", "u", client.Place{Ticket: 2, Generation: 1, Ahead: 9, PollAfter: 0.01}, func(client.Place) { places++ })
	if err != nil {
		t.Errorf("following ends with %v", err)
	}
	return answer.Outcome, places, heard
}

func TestFollowTakesTheOutcomeFromTheStream(t *testing.T) {
	outcome, places, heard := follow(t, func(_ int, w http.ResponseWriter) {
		fmt.Fprintf(w, "retry: 9\n\n: here\n\nevent: place\nid: x\ndata: "+aPlace+"\n\nevent: news\ndata: {}\n\nevent: outcome\nid: end\ndata: "+aCoupon+"\n\n", 1)
	})
	if diff := cmp.Diff([]string{""}, heard); outcome != client.AlreadyIssued || places != 2 || diff != "" {
		t.Errorf("the outcome is %q behind %d places; the streams (-want +got):\n%s", outcome, places, diff)
	}
}

// TestF76FollowLosesNoOutcomeWhereStreamsBreak finds in the line the outcome that no stream has sent.
func TestF76FollowLosesNoOutcomeWhereStreamsBreak(t *testing.T) {
	for name, stream := range map[string]func(n int, w http.ResponseWriter){
		"it breaks before an event": func(int, http.ResponseWriter) { panic(http.ErrAbortHandler) },
		"it breaks behind a place": func(_ int, w http.ResponseWriter) {
			fmt.Fprintf(w, "event: place\nid: x\ndata: "+aPlace+"\n\nevent: outcome\nid: end\ndata: "+aCoupon, 1)
		},
		"it is refused":         func(_ int, w http.ResponseWriter) { w.WriteHeader(http.StatusServiceUnavailable) },
		"there is no such path": func(_ int, w http.ResponseWriter) { w.WriteHeader(http.StatusNotFound) },
		"it is none":            func(_ int, w http.ResponseWriter) { fmt.Fprint(w, "<html>\n\n") },
		"its events are broken": func(_ int, w http.ResponseWriter) { fmt.Fprint(w, "event: outcome\ndata: {\n\n") },
		"it says that the user left": func(_ int, w http.ResponseWriter) {
			fmt.Fprint(w, "event: outcome\nid: end\ndata: {\"outcome\":\"left\"}\n\n")
		},
	} {
		t.Run(name, func(t *testing.T) {
			if outcome, _, heard := follow(t, stream); outcome != client.SoldOut || len(heard) != 1 {
				t.Errorf("the outcome is %q behind %d streams", outcome, len(heard))
			}
		})
	}
}

// TestAPlaceThatMovedHasTheETAOfTheGate compares a place that the client moves by the line with the place that the gate would answer.
func TestAPlaceThatMovedHasTheETAOfTheGate(t *testing.T) {
	perSecond := int64(3)
	terms := firstcome.Terms{Quantity: firstcome.Unlimited, Pace: &firstcome.Pace{PerSecond: perSecond}}
	for _, line := range []firstcome.Line{
		{LastTicket: 9, Waiting: 9},
		{LastTicket: 9, ServedThrough: 2, Waiting: 4},
		{LastTicket: 90, ServedThrough: 5, Waiting: 61},
		{LastTicket: 7, ServedThrough: 6, Waiting: 1},
		{LastTicket: 7, ServedThrough: 5},
	} {
		for ticket := line.Serving(); ticket <= line.LastTicket; ticket++ {
			want := firstcome.View{Campaign: firstcome.Campaign{Terms: terms}, Line: line, Now: time.Now()}.Place(ticket)
			got := client.Place{Ticket: ticket}.Moved(client.Line{
				Serving: line.Serving(), LastTicket: line.LastTicket, Waiting: line.Waiting, Pace: &client.Pace{PerSecond: &perSecond}, State: firstcome.StateOpen,
			})
			if got.Ahead != want.Ahead || float64(*got.ETASeconds) != math.Ceil(want.ETA.Seconds()) {
				t.Errorf("%+v, ticket %d: %d ahead and %d s, want %d and %v", line, ticket, got.Ahead, *got.ETASeconds, want.Ahead, want.ETA)
			}
		}
	}
}

// TestWhoIsNotLikelyToGetACouponLooksLessOften matters on a waitlist, where all users would otherwise poll every second.
func TestWhoIsNotLikelyToGetACouponLooksLessOften(t *testing.T) {
	for likely, most := range map[bool]float64{true: 2, false: 10} {
		if wait := client.PollAfter(client.Place{Ahead: 3, Serving: true, Likely: likely}); wait > most || !likely && wait < 3.9 {
			t.Errorf("likely %v: a place is looked at again after %v s", likely, wait)
		}
	}
}
