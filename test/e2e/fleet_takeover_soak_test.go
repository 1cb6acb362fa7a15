//go:build linux && soak && !race

package e2e_test

import (
	"testing"
	"time"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/test/seed"
	"github.com/firstcome/firstcome/test/services"
	"github.com/firstcome/firstcome/test/stage"
)

// TestF02WhereAReplicaTakesOverAtRandomEveryPromiseHolds has replicas take over a hundred times while coupons are issued.
func TestF02WhereAReplicaTakesOverAtRandomEveryPromiseHolds(t *testing.T) {
	for name, start := range takeovers {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o, want := start(t), rounds(4, 100)
			o.fleet = newFleet(t, services.MariaDB.Database(t), o.gate)
			crowds := []*crowd{o.gather("spring", firstcome.Recorded), o.gather("summer", firstcome.Decided)}
			var stops []func()
			for _, c := range crowds {
				stop := o.claimUntil(c, 6)
				defer stop()
				stops = append(stops, stop)
			}
			random, counted, tried := seed.Rand(t), 0, 0
			for ; counted < want && tried < 10*want; tried++ {
				c := crowds[tried%len(crowds)]
				if tried%3 != 1 { // otherwise it is promoted twice
					for _, one := range crowds {
						one.awaitAnswers(t, 50+random.IntN(100))
					}
				}
				p := o.of(c.campaign)
				stage.Must(t, p.Settle(t.Context()))
				if _, last, _ := c.answered(); time.Since(last) < fresh {
					counted++
				}
				if o.lag != nil {
					o.lag(p)
					<-time.After(20 * time.Millisecond)
				}
				o.promote(p)
				o.goesOn(c, p, tried)
			}
			if counted < want {
				t.Errorf("of %d promotions only %d came while coupons were issued, want %d", tried, counted, want)
			}
			for _, stop := range stops {
				stop()
			}
			o.giveAway(crowds, firstcome.Recorded, firstcome.Decided)
		})
	}
}
