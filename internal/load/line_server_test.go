package load_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/client"
)

// A queue is a shop with a waiting line. Once enough users are in line, it serves them all, as long as there are coupons.
type queue struct {
	shop
	crowd int // how many it waits for
	// serve, if not nil, serves a ticket instead of the queue.
	serve func(q *queue, ticket int64, user string)
	// fails, if not nil, may answer a request that follows a place, and reports whether it did.
	fails func(w http.ResponseWriter, r *http.Request) bool

	tickets []string // the users, by their ticket less one
	left    map[string]bool
	away    map[string]bool // users whose tickets are gone
	through int64
	ended   []client.EndedLine
}

func (q *queue) open(t *testing.T) string {
	t.Helper()
	q.id, q.name, q.left, q.away = "launch", "Launch", map[string]bool{}, map[string]bool{}
	mux := http.NewServeMux()
	follow := func(pattern string, answer func(w http.ResponseWriter, user string)) {
		mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) {
			q.mu.Lock()
			defer q.mu.Unlock()
			switch user := r.PathValue("user"); {
			case q.fails != nil && q.fails(w, r):
			default:
				answer(w, user)
			}
		})
	}
	mux.HandleFunc("POST /v1/campaigns/{id}/claims", q.join)
	follow("GET /v1/campaigns/{id}/line", q.line)
	follow("GET /v1/campaigns/{id}/claims/{user}", q.own)
	follow("DELETE /v1/campaigns/{id}/claims/{user}", q.leave)
	mux.Handle("/", q.handler())
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	return server.URL
}

func (q *queue) join(w http.ResponseWriter, r *http.Request) {
	var body struct {
		UserID string `json:"user_id"`
	}
	_ = json.NewDecoder(r.Body).Decode(&body)
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.ended) > 0 {
		answer(w, firstcome.SoldOut, client.Coupon{})
		return
	}
	q.tickets = append(q.tickets, body.UserID)
	reply(w, http.StatusAccepted, q.place(body.UserID))
	if len(q.tickets) == q.crowd {
		q.serveAll()
	}
}

func (q *queue) serveAll() {
	for n, user := range q.tickets {
		if q.left[user] {
			continue
		}
		if int64(len(q.holders)) == q.quantity {
			q.ended = []client.EndedLine{{Generation: 1, Reason: "sold_out", LastTicketServed: q.through}}
			return
		}
		if q.serve != nil {
			q.serve(q, int64(n+1), user)
		} else {
			q.issue(int64(n+1), user)
		}
		q.through = int64(n + 1)
	}
}

// issue gives a ticket's user a coupon.
func (q *queue) issue(ticket int64, user string) {
	generation := int64(1)
	q.give(user)
	c := &q.coupons[len(q.coupons)-1]
	c.Generation, c.Ticket, c.IssuedAt = &generation, &ticket, client.Time{Time: time.Now()}
}

func (q *queue) place(user string) client.Answer {
	place := client.Place{Generation: 1, Serving: true, Likely: true, PollAfter: 0.01}
	for n, holder := range q.tickets {
		if holder == user {
			place.Ticket, place.Ahead = int64(n+1), int64(n)-q.through
		}
	}
	eta := place.Ahead
	place.ETASeconds = &eta
	return client.Answer{Outcome: "waiting", Place: &place}
}

func (q *queue) line(w http.ResponseWriter, _ string) {
	reply(w, http.StatusOK, client.Line{
		CampaignID: q.id, Generation: 1 + int64(len(q.ended)), Serving: q.through + 1, LastTicket: int64(len(q.tickets)), State: "open", Ended: q.ended,
	})
}

func (q *queue) own(w http.ResponseWriter, user string) {
	n, holds := q.holders[user]
	switch {
	case holds:
		answer(w, firstcome.AlreadyIssued, q.coupons[n])
	case q.left[user] || q.away[user] || len(q.ended) > 0:
		reply(w, http.StatusNotFound, client.Problem{Status: http.StatusNotFound})
	default:
		reply(w, http.StatusOK, q.place(user))
	}
}

func (q *queue) leave(w http.ResponseWriter, user string) {
	if _, holds := q.holders[user]; holds {
		reply(w, http.StatusConflict, client.Problem{Status: http.StatusConflict})
		return
	}
	q.left[user] = true
	reply(w, http.StatusOK, map[string]bool{"left": true})
}

func reply(w http.ResponseWriter, status int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(body)
}
