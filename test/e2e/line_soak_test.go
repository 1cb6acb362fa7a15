//go:build linux && soak && !race

package e2e_test

import (
	"math/rand/v2"
	"strconv"
	"testing"
	"time"

	"github.com/firstcome/firstcome/client"
	"github.com/firstcome/firstcome/test/seed"
	"github.com/firstcome/firstcome/test/services"
	"github.com/firstcome/firstcome/test/stage"
)

// TestF71P9EverybodyInLineKeepsTheirPlaceWhileProcessesAreKilledAtRandom has 10,000 people claim 5,000 coupons of a campaign with a line, and
// follow their places to the end, while nodes, recorders, the ledger's server and Redis are killed. A kill counts if a coupon was issued within
// the 50 ms before it and stock was left after it. There are thirty for each gate.
func TestF71P9EverybodyInLineKeepsTheirPlaceWhileProcessesAreKilledAtRandom(t *testing.T) {
	const visitors, quantity, perSecond = 10_000, 5_000, 75
	for _, s := range lined() {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			d := s.deploy(t)
			d.createLine("spring", quantity, perSecond)
			crowd := come(d.fleet, "spring", visitors)
			d.killWhileServing(crowd, rounds(7, 30), seed.Rand(t))
			crowd.awaitJoined(t, visitors)
			paced := d.setPace("spring", map[string]any{}) // what is left goes as fast as it can
			coupons := crowd.verdict()
			t.Logf("%d coupons within %v", len(coupons), time.Since(crowd.start))
			wantIssued(t, coupons, quantity)
			atPace(t, coupons, paced, perSecond)
			d.audit()
		})
	}
}

// TestF46F71P9ALineInATopicKeepsEveryPlaceWhileProcessesAreKilledAtRandom is TestF71P9 of a line that has a log in a topic, whose broker is
// killed too.
func TestF46F71P9ALineInATopicKeepsEveryPlaceWhileProcessesAreKilledAtRandom(t *testing.T) {
	const visitors, quantity, perSecond = 10_000, 5_000, 10
	for _, s := range logged() {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			broker := services.Kafka.Server(t)
			topic := lines(t, broker.URL(), "lines")
			d := s.deploy(t, "--line", topic)
			d.createLine("spring", quantity, perSecond)
			crowd, random := come(d.fleet, "spring", visitors), seed.Rand(t)
			d.killWhileServing(crowd, rounds(4, 20), random)
			stage.Must(t, broker.Restart(t.Context()))
			d.killWhileServing(crowd, rounds(2, 10), random)
			crowd.awaitJoined(t, visitors)
			d.setPace("spring", map[string]any{})
			crowd.isLogged(topic)
			coupons := crowd.verdict()
			t.Logf("%d coupons within %v", len(coupons), time.Since(crowd.start))
			wantIssued(t, coupons, quantity)
			d.audit()
		})
	}
}

// killWhileServing kills until so many kills count, while the crowd comes and afterwards. It fails if they do not within ten times as many.
func (d *deployment) killWhileServing(c *lineCrowd, kills int, random *rand.Rand) (counted int) {
	tried, calls := 0, newEntrance(d.fleet) // the crowd's connections are busy
	for ; counted < kills && tried < 10*kills; tried++ {
		c.awaitJoined(d.t, min(len(c.all), (tried+1)*len(c.all)/kills))
		number := d.awaitService(calls, c.campaign)
		<-time.After(time.Duration(random.IntN(5000)) * time.Microsecond)
		at := time.Now()
		d.killOne(tried, random)
		if d.wasServed(calls, c.campaign, number, at) {
			counted++
		}
	}
	if counted < kills {
		d.t.Errorf("of %d kills only %d came while the line was served, want %d", tried, counted, kills)
	}
	return counted
}

// awaitService waits until somebody in line is served, and returns how many were. Two looks that are 30 ms apart at most show a service that
// is still fresh. On a machine so busy that ten looks show none, any service will do. Behind the last one it waits no longer.
func (d *deployment) awaitService(calls *client.Client, id string) (served int64) {
	d.t.Helper()
	const near, enough = 30 * time.Millisecond, 10
	before, looks, last := int64(0), 0, time.Time{}
	waitFor(d.t, "somebody in line who is served", func() (seen bool) {
		from := time.Now()
		k, err := calls.Campaign(d.t.Context(), id)
		if err != nil || k.Issued == nil {
			return false
		}
		served, looks = *k.Issued, looks+1
		seen = k.SoldOutAt != nil || looks > 1 && served > before && (looks > enough || time.Since(last) < near)
		before, last = served, from
		return seen
	})
	return served
}

// wasServed reports whether a coupon was issued within the 50 ms before an instant, when number of them had been, and waits for the next.
// If none can follow, nobody's service was cut off.
func (d *deployment) wasServed(calls *client.Client, id string, number int64, at time.Time) bool {
	d.t.Helper()
	was, over := false, false
	from := strconv.FormatInt(max(0, number-100), 10)
	waitFor(d.t, "a coupon that is issued behind a kill", func() bool {
		page, _ := calls.FindCoupons(d.t.Context(), id, client.CouponFilter{After: from, Limit: 500})
		for _, k := range page.Items {
			if since := at.Sub(k.IssuedAt.Time); since < 0 {
				return true
			} else if since < fresh {
				was = true
			}
		}
		k, err := calls.Campaign(d.t.Context(), id)
		over = err == nil && k.SoldOutAt != nil
		return over
	})
	return was && !over
}
