//go:build !check

package ledger_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/line"
	"github.com/firstcome/firstcome/test/services"
	"github.com/firstcome/firstcome/test/stage"
)

// TestThreeNodesServeALineInOrderAtThePaceOfOne has a Dispatcher on each node; two of them stop on the way, and the last
// one, which nobody woke, serves the rest.
func TestThreeNodesServeALineInOrderAtThePaceOfOne(t *testing.T) {
	onServers(t, func(t *testing.T, kind services.Kind) {
		const people, perSecond = 600, 500
		nodes, _ := nodesOn(t, kind, 3, firstcome.Unlimited)
		_, err := nodes[0].Campaigns.SetTerms(t.Context(), "test", "c", 0, func(terms *firstcome.Terms) {
			terms.Pace = &firstcome.Pace{PerSecond: perSecond}
		})
		stage.Must(t, err)
		for n := range people / 100 {
			var some []firstcome.UserID
			for k := range 100 {
				some = append(some, firstcome.UserID(fmt.Sprint("u-", n, "-", k)))
			}
			decisions, err := nodes[n%3].Gate.Claim(t.Context(), "c", some)
			stage.Must(t, err)
			stage.Same(t, "the last one's ticket", int64(100*(n+1)), decisions[99].Place.Ticket)
		}
		var stops []func()
		for _, node := range nodes {
			stops = append(stops, stage.Run(t, line.NewDispatcher(node.Gate, line.Options{Batch: 40}).Run))
		}
		issued := func(least int64) func() bool {
			return func() bool {
				c, err := nodes[0].Reads.Campaign(t.Context(), "c")
				stage.Must(t, err)
				return c.Issued >= least
			}
		}
		stage.Await(t, "a third of the line", true, issued(people/3))
		stops[0]()
		stage.Await(t, "two thirds of the line", true, issued(2*people/3))
		stops[1]()
		stage.Await(t, "the end of the line", true, issued(people))

		var instants []time.Time
		all := allCoupons(t, nodes[0])
		stage.Same(t, "coupons", people, len(all))
		for n, c := range all {
			if c.Number != int64(n+1) || c.Ticket != c.Number || c.Generation != 1 {
				t.Fatalf("the coupon in place %d is number %d, of ticket %d", n+1, c.Number, c.Ticket)
			}
			instants = append(instants, c.IssuedAt)
		}
		stage.KeepsPace(t, instants, perSecond)
	})
}
