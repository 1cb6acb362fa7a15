package conform

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/test/seed"
)

// answer returns the state behind an operation, and its answer: of what is quarantined now and
// then something is released before.
func (s state) answer(o op, random *rand.Rand) (state, result) {
	if random.IntN(4) == 0 {
		s.quarantined = 0
	}
	for _, r := range []result{
		{},
		{err: firstcome.ErrBelowInForce},
		{err: firstcome.ErrNoCoupon},
		{err: firstcome.ErrAlreadyVoided},
		{outcome: firstcome.Paused},
		{outcome: firstcome.SoldOut},
		{outcome: firstcome.Issued, number: s.last + 1},
		{outcome: firstcome.AlreadyIssued, number: s.holds[o.user]},
	} {
		if after, right := s.step(o, r); right {
			return after, r
		}
	}
	panic("the rule has no answer")
}

// drawn returns a history of a few clients that has an order, and with some answers that
// nobody knows, or one that was changed, so that it may have none.
func drawn(random *rand.Rand, first state) (events []event) {
	const crowd = 4
	var free [crowd]time.Duration // when a client's last answer came
	s, lost, wrong := first, random.IntN(2) == 0, random.IntN(32)
	for n := range 24 {
		client := random.IntN(crowd)
		at := time.Duration(n+1) * 100
		e := event{op: draw(random, client), call: max(free[client]+1, at-time.Duration(random.IntN(400))), back: at + time.Duration(random.IntN(400))}
		e.op.user %= 6
		if e.call > at { // it still waits for its last answer
			continue
		}
		before := s
		s, e.result = s.answer(e.op, random)
		if lost && e.op.kind == "claim" && random.IntN(5) == 0 {
			if random.IntN(2) == 0 {
				s = before
			}
			e.result = result{unknown: true}
		}
		if n == wrong {
			e.result = result{outcome: firstcome.Issued, number: s.last}
		}
		free[client], events = e.back, append(events, e)
	}
	return events
}

func TestTheSearchForAnOrderFindsWhatAnotherCheckerFinds(t *testing.T) {
	found := map[bool]int{}
	for from := range seed.Each(t, 3000) {
		random := rand.New(rand.NewPCG(from, 4))
		first := state{quantity: 4, quarantine: from%2 == 0, leases: from%4 == 0}
		events := drawn(random, first)
		var operations []porcupine.Operation
		for n, e := range events {
			operations = append(operations, porcupine.Operation{ClientId: n, Input: e.op, Output: e.result, Call: int64(e.call), Return: int64(e.back)})
		}
		want := porcupine.CheckOperations(rule(first).ToModel(), operations)
		order, got := ordered(first, events)
		if got != want || got && !confirmed(first, events, order) {
			t.Fatalf("the history of seed %d has an order: %t, and the search says %t, %v: %+v", from, want, got, order, events)
		}
		found[want]++
	}
	if !seed.Given() && (found[true] < 1000 || found[false] < 500) {
		t.Errorf("%d histories had an order and %d had none", found[true], found[false])
	}
}
