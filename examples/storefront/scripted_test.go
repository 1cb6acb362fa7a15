//go:build !check && (!race || soak)

package main

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"

	"github.com/firstcome/firstcome/test/browser"
)

// A scripted server gives the answers that a test sets, by the request without the campaign's path and with the user as u.
type scripted struct {
	mu      sync.Mutex // guards answers
	answers map[string]string
}

// says sets answers, each as "STATUS BODY". A body that begins with "event: " is a stream.
func (s *scripted) says(answers map[string]string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for request, answer := range answers {
		s.answers[request] = answer
	}
}

func (s *scripted) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	path, _, _ := strings.Cut(strings.TrimPrefix(r.URL.RequestURI(), "/v1/campaigns/drop"), "/guest-")
	if _, rest, ok := strings.Cut(r.URL.RequestURI(), "/guest-"); ok {
		path += "/u" + strings.TrimLeft(rest, "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567")
	}
	s.mu.Lock()
	answer := s.answers[r.Method+" "+path]
	s.mu.Unlock()
	status, body := http.StatusNotFound, `{"code":"not_found"}`
	if answer != "" {
		_, _ = fmt.Sscan(answer, &status)
		_, body, _ = strings.Cut(answer, " ")
	}
	w.Header().Set("Content-Type", "application/json")
	if strings.HasPrefix(body, "event: ") {
		w.Header().Set("Content-Type", "text/event-stream")
	}
	w.WriteHeader(status)
	_, _ = fmt.Fprint(w, body)
}

// state answers with the campaign: how many coupons there are, how many are left, and further fields.
func state(word string, quantity, left int, more string) string {
	return fmt.Sprintf(`200 {"id":"drop","name":"Drop","state":"%s","quantity":%d,"remaining":%d,"server_time":"2031-05-05T01:00:00.000000Z",
		"opens_at":null,"sold_out_at":null,"coupon":{"benefit":{"percent":30}}%s}`, word, quantity, left, more)
}

// A place of the user, with further fields, and the line once it has come to a ticket.
const (
	inLine = `202 {"outcome":"waiting","ticket":3,"generation":1,"ahead":2,"eta_seconds":2,"likely":%v,"serving":true,"why":null,"until":null,"closes_at":null,"poll_after":1}`
	lineAt = `200 {"generation":1,"serving":%d,"last_ticket":%d,"waiting":%d,"likely_through":%d,"pace":{"per_second":1},"state":"open","ended":[]}`
)

// scripts opens the page of a scripted server for a guest of each language.
func scripts(t *testing.T) (*scripted, []*guest, string) {
	server := &scripted{answers: map[string]string{"GET /v1/users/u/coupons": `200 {"items":[],"next":null}`}}
	upstream := httptest.NewServer(server)
	t.Cleanup(upstream.Close)
	at, err := url.Parse(upstream.URL)
	if err != nil {
		t.Fatal(err)
	}
	shop := httptest.NewServer((&storefront{server: at, campaign: "drop", secret: []byte(secret)}).handler())
	t.Cleanup(func() {
		shop.CloseClientConnections() // a page may follow its line still
		shop.Close()
	})
	b := browser.Open(t)
	var guests []*guest
	for _, look := range []browser.Look{{Language: "ko", Width: 360}, {Language: "en", Dark: true}} {
		guests = append(guests, &guest{b.Page(t, look), t, look})
	}
	return server, guests, shop.URL
}

// TestInTheBrowserWhoseCouponWasVoidedIsNotToldThatTheyLeft, neither by the stream nor by the line.
func TestInTheBrowserWhoseCouponWasVoidedIsNotToldThatTheyLeft(t *testing.T) {
	server, guests, shop := scripts(t)
	server.says(map[string]string{"GET ": state("open", 9, 8, ""), "POST /claims": fmt.Sprintf(inLine, true)})
	for way, answers := range map[string]map[string]string{
		"the stream": {"GET /claims/u/events": "200 event: outcome\nid: end\ndata: {\"outcome\":\"voided\"}\n\n"},
		"the line": {
			"GET /claims/u/events": "404 {}", "GET /line": fmt.Sprintf(lineAt, 4, 9, 6, 9),
			"GET /claims/u?place=1.3": `404 {"code":"not_found","outcome":"voided"}`,
		},
	} {
		server.says(answers)
		for _, g := range guests {
			t.Log(way, g.look)
			g.Go(shop)
			g.sees("지금 받을 수 있어요", "Ready when you are")
			g.Press("#act")
			g.looks("쿠폰이 회수됐어요", "Your coupon was taken back")
			g.sees("다시 줄 서기", "Join the line again")
		}
	}
}

// TestInTheBrowserAPlaceByTheLineTellsWhatIsLikely: a raise at the next look, and those who left are not waited for.
func TestInTheBrowserAPlaceByTheLineTellsWhatIsLikely(t *testing.T) {
	server, guests, shop := scripts(t)
	server.says(map[string]string{
		"GET ": state("open", 9, 8, ""), "POST /claims": fmt.Sprintf(inLine, false), "GET /claims/u/events": "404 {}",
		"GET /line": fmt.Sprintf(lineAt, 1, 3, 3, 2),
	})
	for _, g := range guests {
		g.Go(shop)
		g.sees("지금 받을 수 있어요", "Ready when you are")
		g.Press("#act")
		g.sees("남은 쿠폰보다 앞사람이 많아요.", "More people are ahead than coupons are left.")
		g.sees("약 2초", "about 2 s")
	}
	server.says(map[string]string{"GET /line": fmt.Sprintf(lineAt, 1, 3, 2, 3)})
	for _, g := range guests {
		g.sees("화면을 닫아도 자리는 그대로예요.", "Your place is kept, even if you close this page.")
		g.sees("약 1초", "about 1 s")
	}
}
