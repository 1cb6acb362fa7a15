//go:build !check

package ledger_test

import (
	"context"
	"testing"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/issue"
	"github.com/firstcome/firstcome/internal/ledger"
	"github.com/firstcome/firstcome/test/services"
	"github.com/firstcome/firstcome/test/stage"
)

// comebacks are the changes behind which people join the line of a campaign that was sold out, of one coupon.
var comebacks = map[string]func(ctx context.Context, l *ledger.Ledger) error{
	"void": func(ctx context.Context, l *ledger.Ledger) error {
		return stage.Err(l.Campaigns.Void(ctx, "test", "c", 1, "test"))
	},
	"raised": changed(func(t *firstcome.Terms) { t.Quantity++ }),
	"waitlist": changed(func(t *firstcome.Terms) {
		t.Pace, t.Waitlist = &firstcome.Pace{PerSecond: 1}, true
	}),
	"raised with a pace": changed(func(t *firstcome.Terms) {
		t.Quantity, t.Pace = t.Quantity+1, &firstcome.Pace{PerSecond: 1}
	}),
}

func changed(edit func(*firstcome.Terms)) func(ctx context.Context, l *ledger.Ledger) error {
	return func(ctx context.Context, l *ledger.Ledger) error {
		return stage.Err(l.Campaigns.SetTerms(ctx, "test", "c", 0, edit))
	}
}

// TestF74NobodyInLineHearsSoldOutFromAnotherNodesMemory has one node repeat sold_out from memory while another brings stock
// back: who is told a place there is told it here, too.
func TestF74NobodyInLineHearsSoldOutFromAnotherNodesMemory(t *testing.T) {
	onServers(t, func(t *testing.T, kind services.Kind) {
		for what, comeBack := range comebacks {
			nodes, _ := nodesOn(t, kind, 2, 1)
			here, there := issue.NewIssuer(nodes[0].Gate, issue.Options{}), issue.NewIssuer(nodes[1].Gate, issue.Options{})
			if what == "void" || what == "raised" { // the others begin without a line
				stage.Must(t, changed(func(t *firstcome.Terms) { t.Pace = &firstcome.Pace{} })(t.Context(), nodes[0]))
			}
			asks := func(i *issue.Issuer, user firstcome.UserID) firstcome.Decision {
				d, err := i.Claim(t.Context(), "c", user)
				stage.Must(t, err)
				return d
			}
			asks(here, "holder")
			serveAll(t, nodes[0])
			stage.Await(t, what+": a lease that has just begun", true, func() bool {
				before := there.Stats()
				asks(there, "newcomer") // the gate is asked, or not
				asks(there, "newcomer")
				after := there.Stats()
				return after.Batches == before.Batches+1 && after.Cached == before.Cached+1
			})
			stage.Must(t, here.Change("c", func() error { return comeBack(t.Context(), nodes[0]) }))
			var joined firstcome.Decision
			stage.Await(t, what+": a place in line", firstcome.Waiting, func() firstcome.Outcome {
				joined = asks(here, "x")
				return joined.Outcome
			})
			if again := asks(there, "x"); again.Outcome != firstcome.Waiting || again.Place.Ticket != joined.Place.Ticket {
				t.Errorf("%s: who has ticket %d is told %s at the other node", what, joined.Place.Ticket, again.Outcome)
			}
		}
	})
}
