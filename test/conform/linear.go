package conform

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/gate"
	"github.com/firstcome/firstcome/internal/issue"
	"github.com/firstcome/firstcome/test/seed"
	"github.com/firstcome/firstcome/test/stage"
)

const (
	histories = 40
	clients   = 16
	steps     = 16 // a client's; 256 operations a history
	users     = 48
	// A gate where stock is quarantined has fewer clients: each answer leaves it open whether it
	// still does, and the search tries both. With several nodes more of it overlaps.
	quarantineClients = 9
	clusteredClients  = 6
)

// Linearizable runs short histories of concurrent claims and changes through an
// Issuer in front of a gate that now and then answers with an error, before or
// after it has decided, and checks that each history is one that the rule could
// have given, an operation at a time. A Cluster has an Issuer for each node.
//
// Where stock that came back is quarantined, a claim may find it still quarantined or not; the vectors
// and the walk say when.
func Linearizable(t *testing.T, fresh func(t *testing.T) Subject) {
	s := fresh(t)
	nodes := []gate.Decider{s}
	if c, ok := s.(Cluster); ok {
		nodes = c.Nodes()
	}
	issuers := make([]*issue.Issuer, len(nodes))
	for n, node := range nodes {
		issuers[n] = issue.NewIssuer(&flaky{Decider: node, every: int64(8 * len(nodes) * len(nodes))}, issue.Options{})
		defer func() {
			if err := issuers[n].Stop(context.Background()); err != nil {
				t.Error(err)
			}
		}()
	}
	first, crowd := state{quantity: 12, quarantine: quarantineFor(s) > 0, leases: len(nodes) > 1}, clients
	switch {
	case first.leases:
		crowd = clusteredClients
	case first.quarantine:
		crowd = quarantineClients
	}
	for n := range seed.Each(t, histories) {
		h := &history{s: s, issuers: issuers, clients: crowd, id: firstcome.CampaignID(fmt.Sprintf("history-%d", n)), first: first}
		h.run(t, n)
	}
}

// A flaky gate loses the question of one small batch in so many and the answer of
// another. It has decided, or never will, when it says so. Large batches come
// through, and of several nodes, whose batches are smaller, each loses fewer: each claim
// without an answer doubles what the search has to try.
type flaky struct {
	gate.Decider
	every int64
	calls atomic.Int64
}

var errLost = errors.New("lost")

func (f *flaky) Claim(ctx context.Context, id firstcome.CampaignID, users []firstcome.UserID) ([]firstcome.Decision, error) {
	n := f.calls.Add(1) % f.every
	if len(users) > 3 {
		n = 0
	}
	if n == 3 {
		return nil, errLost
	}
	decisions, err := f.Decider.Claim(ctx, id, users)
	if n == 7 {
		return nil, errLost
	}
	return decisions, err
}

// A history is one campaign's operations.
type history struct {
	s       Subject
	issuers []*issue.Issuer
	clients int
	id      firstcome.CampaignID
	first   state
	start   time.Time
	mu      sync.Mutex // guards events
	events  []event
}

// An op is what a client asks: a claim by user, or a change.
type op struct {
	kind  string // claim, quantity, pause, resume, void
	user  int
	value int64 // the quantity, or the number to void
}

// A result is what it was answered.
type result struct {
	unknown bool
	outcome firstcome.Outcome
	number  int64
	err     error // a refused change
}

func (h *history) run(t *testing.T, from uint64) {
	t.Helper()
	terms := firstcome.Terms{Name: "history", Quantity: h.first.quantity, Answer: firstcome.Recorded, Benefit: []byte(`{}`)}
	stage.Must(t, h.s.Create(t.Context(), h.id, terms))
	h.start = time.Now()
	var all sync.WaitGroup
	for client := range h.clients {
		all.Go(func() {
			random := rand.New(rand.NewPCG(from, uint64(client)))
			for range steps {
				h.do(t.Context(), client, draw(random, client))
			}
		})
	}
	all.Wait()
	order, found := ordered(h.first, h.events)
	if !found {
		t.Fatalf("no order of the operations of seed %d gives these answers: %+v", from, h.events)
	}
	if !confirmed(h.first, h.events, order) {
		t.Fatalf("the order %v of the operations of seed %d does not give these answers: %+v", order, from, h.events)
	}
}

// draw returns a client's next operation: client 0 is the operator.
func draw(random *rand.Rand, client int) op {
	if client > 0 || random.IntN(3) == 0 {
		return op{kind: "claim", user: random.IntN(users)}
	}
	switch random.IntN(6) {
	case 0:
		return op{kind: "quantity", value: int64(8 + random.IntN(12))}
	case 1:
		return op{kind: "pause"}
	case 2, 3:
		return op{kind: "resume"}
	}
	return op{kind: "void", value: int64(1 + random.IntN(24))}
}

// do runs an operation and logs it. An operation that ended with an error may have taken effect.
func (h *history) do(ctx context.Context, client int, o op) {
	call := time.Since(h.start)
	r := h.ask(ctx, h.issuers[client%len(h.issuers)], o)
	back := time.Since(h.start)
	h.mu.Lock()
	defer h.mu.Unlock()
	h.events = append(h.events, event{o, r, call, back})
}

func (h *history) ask(ctx context.Context, issuer *issue.Issuer, o op) result {
	if o.kind == "claim" {
		d, err := issuer.Claim(ctx, h.id, firstcome.UserID(fmt.Sprintf("user-%d", o.user)))
		return result{unknown: err != nil, outcome: d.Outcome, number: d.Coupon.Number}
	}
	return result{err: issuer.Change(h.id, func() error {
		switch o.kind {
		case "quantity":
			return h.s.SetTerms(ctx, h.id, func(t *firstcome.Terms) { t.Quantity = o.value })
		case "void":
			return h.s.Void(ctx, h.id, o.value)
		}
		return h.s.Change(ctx, h.id, o.kind)
	})}
}

// A state is a campaign's, comparable with ==.
type state struct {
	quantity, last int64
	paused         bool
	holds          [users]int64 // the number that a user holds; 0: none

	quarantine  bool  // stock that comes back is quarantined
	quarantined int64 // how much may be quarantined still
	leases      bool  // other nodes may repeat sold_out for a while after a pause
}

func (s state) inForce() (n int64) {
	for _, number := range s.holds {
		if number > 0 {
			n++
		}
	}
	return n
}

// giveBack quarantines stock that came back; a lowered quantity is taken from it first.
func (s *state) giveBack(back int64) {
	if s.quarantine {
		s.quarantined = max(0, s.quarantined+back)
	}
}

// steps returns the states that an operation with this answer may lead to.
func (s state) steps(o op, r result) []state {
	after, right := s.step(o, r)
	switch {
	case r.unknown:
		return []state{after, s}
	case right:
		return []state{after}
	}
	return nil
}

// step returns the state after an operation, and whether the answer is the right one.
func (s state) step(o op, r result) (after state, right bool) {
	switch o.kind {
	case "claim":
		return s.claim(o.user, r)
	case "quantity":
		if o.value < s.inForce() {
			return s, errors.Is(r.err, firstcome.ErrBelowInForce)
		}
		s.giveBack(o.value - s.quantity)
		s.quantity = o.value
		return s, r.err == nil
	case "pause", "resume":
		s.paused = o.kind == "pause"
		return s, r.err == nil
	}
	return s.void(o.value, r)
}

func (s state) claim(user int, r result) (after state, right bool) {
	c := firstcome.Campaign{Terms: firstcome.Terms{Quantity: s.quantity}, Paused: s.paused}
	outcome := firstcome.Decide(c, Epoch, s.inForce()+s.quarantined, s.holds[user] > 0, false)
	if outcome == firstcome.Paused && r.outcome == firstcome.SoldOut && s.leases && s.inForce()+s.quarantined >= s.quantity {
		return s, true
	}
	if outcome == firstcome.Issued {
		s.last++
		s.holds[user] = s.last
	}
	number := int64(0)
	if outcome.HasCoupon() {
		number = s.holds[user]
	}
	return s, r.outcome == outcome && r.number == number
}

func (s state) void(number int64, r result) (after state, right bool) {
	if number > s.last {
		return s, errors.Is(r.err, firstcome.ErrNoCoupon)
	}
	for user, held := range s.holds {
		if held == number {
			s.holds[user] = 0
			s.giveBack(1)
			return s, r.err == nil
		}
	}
	return s, errors.Is(r.err, firstcome.ErrAlreadyVoided)
}
