package load_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/client"
)

// A shop is a server with one campaign in memory, whose answers a test may change.
type shop struct {
	id       string
	name     string
	quantity int64
	key      string // that an admin has; empty: everyone
	answer   string // when claims are answered
	lost     []client.Range
	dead     []client.DeadLetter
	unknown  int   // so many reads of the campaign are answered without the gate's counts
	behind   int64 // coupons that the ledger does not have yet: one comes each time that the campaign is read

	// spoil, if not nil, changes a claim's answer before it is sent. It may change the shop too.
	spoil func(s *shop, user string, o firstcome.Outcome, c *client.Coupon) firstcome.Outcome
	// fails, if not nil, may answer a claim, and reports whether it did: before the claim is decided or, if after is true, once it is.
	fails func(w http.ResponseWriter, claim int, after bool) bool

	mu      sync.Mutex // guards what follows
	claims  int
	version int64
	next    int64
	coupons []client.Coupon
	holders map[string]int
}

func open(t *testing.T, s *shop) string {
	t.Helper()
	server := httptest.NewServer(s.handler())
	t.Cleanup(server.Close)
	return server.URL
}

func (s *shop) handler() http.Handler {
	if s.id == "" {
		s.id, s.name = "launch", "Launch"
	}
	s.holders, s.version = map[string]int{}, 1
	mux := http.NewServeMux()
	mux.HandleFunc("POST /v1/campaigns/{id}/claims", s.claim)
	mux.HandleFunc("GET /v1/campaigns/{id}", s.read)
	mux.HandleFunc("GET /v1/campaigns/{id}/coupons", s.list)
	mux.HandleFunc("GET /v1/campaigns/{id}/ledger", s.ledger)
	mux.HandleFunc("GET /v1/dead-letters", s.letters)
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, _ *http.Request) {
		_ = json.NewEncoder(w).Encode(client.Readiness{Status: "ready", Version: "v9.8"})
	})
	return mux
}

func (s *shop) claim(w http.ResponseWriter, r *http.Request) {
	var body struct {
		UserID string `json:"user_id"`
	}
	if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.claims++
	if s.fails != nil && s.fails(w, s.claims, false) {
		return
	}
	outcome, coupon := s.decide(body.UserID)
	if s.spoil != nil {
		outcome = s.spoil(s, body.UserID, outcome, &coupon)
	}
	if s.fails != nil && s.fails(w, s.claims, true) {
		return
	}
	answer(w, outcome, coupon)
}

// decide decides as a correct gate.
func (s *shop) decide(user string) (firstcome.Outcome, client.Coupon) {
	if n, ok := s.holders[user]; ok {
		return firstcome.AlreadyIssued, s.coupons[n]
	}
	if int64(len(s.holders)) >= s.quantity {
		return firstcome.SoldOut, client.Coupon{}
	}
	return firstcome.Issued, s.give(user)
}

// prizes are the shop's: the first three ranks get a drink, and all others free shipping.
var prizes = []client.Prize{
	{PrizeSpec: client.PrizeSpec{ID: "drink", Name: "A drink", Quantity: new(int64(3))}, From: 1, To: new(int64(3))},
	{PrizeSpec: client.PrizeSpec{ID: "shipping", Name: "Free shipping"}, From: 4},
}

func prizeOf(rank int64) *client.CouponPrize {
	if rank <= 3 {
		return &client.CouponPrize{ID: "drink", Name: "A drink"}
	}
	return &client.CouponPrize{ID: "shipping", Name: "Free shipping"}
}

func (s *shop) give(user string) client.Coupon {
	s.next++
	s.holders[user] = len(s.coupons)
	s.coupons = append(s.coupons, client.Coupon{
		CampaignID: s.id, Number: s.next, Rank: s.next, Prize: prizeOf(s.next), UserID: user, Code: fmt.Sprintf("%016d", s.next), State: "in_force",
		Benefit:  json.RawMessage(`{"number": 7, "code": "no", "coupon": {"number": 8}, "recorded": false}`),
		IssuedAt: client.Time{Time: time.Unix(1_800_000_000, s.next*1000)}, Recorded: true,
	})
	return s.coupons[len(s.coupons)-1]
}

func answer(w http.ResponseWriter, o firstcome.Outcome, c client.Coupon) {
	status, body := http.StatusOK, any(client.Answer{Outcome: o.String(), Coupon: &c})
	switch o {
	case firstcome.Issued:
		status = http.StatusCreated
	case firstcome.SoldOut:
		status, body = http.StatusGone, client.Problem{Title: "sold out", Status: http.StatusGone, Outcome: o.String()}
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(body)
}

func (s *shop) read(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if r.PathValue("id") != s.id {
		w.WriteHeader(http.StatusNotFound)
		_ = json.NewEncoder(w).Encode(client.Problem{Title: "no such campaign", Status: http.StatusNotFound})
		return
	}
	issued := s.next
	for _, numbers := range s.lost {
		issued -= numbers.Count
	}
	recorded := issued - min(s.behind, issued)
	for _, d := range s.dead {
		if d.Number != nil && d.ResolvedBy == nil {
			recorded--
		}
	}
	s.behind = max(0, s.behind-1)
	held := int64(len(s.holders))
	if s.unknown > 0 {
		s.unknown--
		_ = json.NewEncoder(w).Encode(client.Campaign{ID: s.id, Version: s.version, State: "unknown", GateState: "unverified", Terms: client.Terms{Quantity: &s.quantity}, Recorded: recorded})
		return
	}
	_ = json.NewEncoder(w).Encode(client.Campaign{
		ID: s.id, Version: s.version, State: "open",
		Terms:   client.Terms{Name: s.name, Answer: s.answer, Quantity: &s.quantity, Coupon: client.CouponSpec{Benefit: json.RawMessage("null")}},
		Prizes:  prizes,
		InForce: &held, Issued: &issued, Recorded: recorded,
		CreatedAt: client.Time{Time: time.Unix(1_800_000_000, 0)}, ServerTime: client.Time{Time: time.Unix(1_800_000_000, 0)},
	})
}

// forAdmins reports whether the caller is an admin. If not, it answers the request.
func (s *shop) forAdmins(w http.ResponseWriter, r *http.Request) bool {
	if s.key == "" || r.Header.Get("Authorization") == "Bearer "+s.key {
		return true
	}
	w.WriteHeader(http.StatusForbidden)
	_ = json.NewEncoder(w).Encode(client.Problem{Title: "not your role", Status: http.StatusForbidden})
	return false
}

func (s *shop) ledger(w http.ResponseWriter, r *http.Request) {
	if s.forAdmins(w, r) {
		_ = json.NewEncoder(w).Encode(client.LedgerState{CampaignID: s.id, Gate: "redis:test", Lost: s.lost})
	}
}

// letters answers with the dead letters, one to a page.
func (s *shop) letters(w http.ResponseWriter, r *http.Request) {
	if !s.forAdmins(w, r) {
		return
	}
	after, _ := strconv.Atoi(r.URL.Query().Get("after"))
	page := client.List[client.DeadLetter]{Items: []client.DeadLetter{}}
	if after < len(s.dead) {
		page.Items = s.dead[after : after+1]
	}
	if after+1 < len(s.dead) {
		next := strconv.Itoa(after + 1)
		page.Next = &next
	}
	_ = json.NewEncoder(w).Encode(page)
}

// list answers with all coupons, a line each.
func (s *shop) list(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.forAdmins(w, r) {
		return
	}
	w.Header().Set("Content-Type", "application/x-ndjson")
	for _, c := range s.coupons {
		_ = json.NewEncoder(w).Encode(c)
	}
}
