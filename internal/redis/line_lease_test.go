//go:build !check

package redis_test

import (
	"testing"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/issue"
	"github.com/firstcome/firstcome/test/services"
	"github.com/firstcome/firstcome/test/stage"
)

// TestNobodyInLineHearsSoldOutFromAnotherNodesMemory lets one node repeat sold_out from memory while another returns a coupon to stock. A user who
// gets a place at one node must get it at the other too.
func TestNobodyInLineHearsSoldOutFromAnotherNodesMemory(t *testing.T) {
	s := newSubject(t, services.Redis.Database(t), 2, false)
	nodes := s.Telling()
	here, there := issue.NewIssuer(nodes[0], issue.Options{}), issue.NewIssuer(nodes[1], issue.Options{})
	terms := firstcome.Terms{Name: "c", Quantity: 1, Answer: firstcome.Recorded, Benefit: []byte(`{}`), Pace: &firstcome.Pace{}}
	stage.Must(t, s.Create(t.Context(), "c", terms))
	asks := func(i *issue.Issuer, user firstcome.UserID) firstcome.Decision {
		d, err := i.Claim(t.Context(), "c", user)
		stage.Must(t, err)
		return d
	}
	asks(here, "holder")
	stage.Must(t, stage.Err(s.Serve(t.Context(), "c", 9)))
	stage.Await(t, "a lease that has just begun", true, func() bool {
		before := there.Stats()
		asks(there, "newcomer") // the node asks the gate, or answers from memory
		asks(there, "newcomer")
		after := there.Stats()
		return after.Batches == before.Batches+1 && after.Cached == before.Cached+1
	})
	stage.Must(t, here.Change("c", func() error { return s.Void(t.Context(), "c", 1) }))
	var joined firstcome.Decision
	stage.Await(t, "a place in line", firstcome.Waiting, func() firstcome.Outcome {
		joined = asks(here, "x")
		return joined.Outcome
	})
	if again := asks(there, "x"); again.Outcome != firstcome.Waiting || again.Place.Ticket != joined.Place.Ticket {
		t.Errorf("who has ticket %d is told %s at the other node", joined.Place.Ticket, again.Outcome)
	}
}
