//go:build !check

package main

import (
	"maps"
	"slices"
	"strconv"
	"testing"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/record"
	"github.com/firstcome/firstcome/test/services"
	"github.com/firstcome/firstcome/test/stage"
)

// A giver is a node with its own --backlog. All givers of a test share a record of which user got which number.
type giver struct {
	*rewind
	given map[int64]firstcome.UserID
	epoch int64
}

// gives claims for this many users, and returns the coupons that are issued, and whether the campaign is sold out.
func (g *giver) gives(prefix string, users int) (fresh []firstcome.Coupon, soldOut bool) {
	g.t.Helper()
	decisions, err := g.remote.gate.Claim(g.t.Context(), "c", people(prefix, users))
	stage.Must(g.t, err)
	for _, one := range decisions {
		soldOut = soldOut || one.Outcome == firstcome.SoldOut
		if one.Outcome != firstcome.Issued {
			continue
		}
		if other, ok := g.given[one.Coupon.Number]; ok {
			g.t.Errorf("number %d is given to %s, and %s has it", one.Coupon.Number, one.Coupon.User, other)
		}
		g.given[one.Coupon.Number] = one.Coupon.User
		fresh = append(fresh, one.Coupon)
	}
	return fresh, soldOut
}

// keeps records the coupons of the journal's first entries, and acknowledges the entries.
func (g *giver) keeps(coupons []firstcome.Coupon, entries int) {
	g.t.Helper()
	drained, err := g.ledger.Recorder.Record(g.t.Context(), record.Batch{Campaign: "c", Epoch: g.epoch, Coupons: coupons})
	stage.Must(g.t, err)
	g.settle(drained, g.entries()[:entries]...)
}

// TestF64ABacklogThatDiffersBetweenNodesHarmsNobody runs a node with a backlog of 10 and a node with 50 at the same gate and ledger. The gate loses
// numbers that the node with 50 issued above the limit of the node with 10. Whichever node rebuilds, these numbers are lost, and no other user gets them.
func TestF64ABacklogThatDiffersBetweenNodesHarmsNobody(t *testing.T) {
	for _, kind := range []services.Kind{services.MariaDB, services.PostgreSQL} {
		for _, rebuilds := range []string{"the narrow one rebuilds", "the wide one rebuilds"} {
			t.Run(string(kind)+", "+rebuilds, func(t *testing.T) {
				t.Parallel()
				url, name := services.Redis.Database(t), kind.Database(t)
				given := map[int64]firstcome.UserID{}
				node := func(backlog int64, campaigns ...firstcome.CampaignID) *giver {
					d := (&desk{t: t, url: url, name: name, limit: backlog}).open(campaigns...)
					return &giver{rewind: &rewind{desk: d, journal: d.key("journal")}, given: given, epoch: 1}
				}
				narrow, wide := node(10, "c"), node(50)

				first, _ := wide.gives("a-", 20)
				stage.Same(t, "how many are given below the ceiling of the one that made the campaign", 10, len(first))
				wide.keeps(first, 1) // the ledger grants 50 more
				second, _ := wide.gives("b-", 5)
				third, _ := wide.gives("c-", 60)
				stage.Same(t, "how many are given below the ceiling of the one that recorded", 45, len(third))
				none, _ := narrow.gives("d-", 5)
				stage.Same(t, "how many the narrow one gives, where 50 wait for the ledger", 0, len(none))
				narrow.keeps(second, 1) // its own grant is smaller, and does not lower the other

				narrow.do("FLUSHALL")
				by := narrow
				if rebuilds == "the wide one rebuilds" {
					by = wide
				}
				done := by.rebuilt(by.rebuilder())
				stage.Same(t, "the epoch, and how many numbers are lost", []int64{2, 45}, []int64{done.Epoch, done.Lost})
				for turn, over := 0, false; !over; turn++ {
					if turn == 30 {
						t.Fatalf("%d numbers are given, and the campaign is not sold out", len(given))
					}
					g := []*giver{narrow, wide}[turn%2]
					g.epoch = 2
					var fresh []firstcome.Coupon
					if fresh, over = g.gives("e-"+strconv.Itoa(turn)+"-", 7); len(fresh) > 0 {
						g.keeps(fresh, 1)
					}
				}
				stage.Same(t, "in force, and issued", []int64{100, 100}, []int64{narrow.status().InForce, wide.status().Issued})
				numbers := slices.Sorted(maps.Keys(given))
				stage.Same(t, "how many numbers, and the last one", []int64{145, 145}, []int64{int64(len(numbers)), numbers[len(numbers)-1]})
			})
		}
	}
}
