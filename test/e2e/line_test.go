//go:build linux

package e2e_test

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"strconv"
	"testing"
	"time"

	"github.com/firstcome/firstcome/client"
	"github.com/firstcome/firstcome/test/seed"
	"github.com/firstcome/firstcome/test/services"
	"github.com/firstcome/firstcome/test/stage"
)

// TestF71P9EverybodyInLineKeepsTheirPlaceWhileProcessesAreKilledInTurn has 10,000 people claim 5,000 coupons of a campaign with a
// line, and follow their places to the end, while what serves them is killed with SIGKILL and started again: nodes, who records,
// the ledger's server, and Redis. A kill counts if a coupon was issued within the 50 ms before it and stock was left after it. There are seven for each
// gate, in a soak thirty, of a line that is served half as fast so that it lasts as long.
func TestF71P9EverybodyInLineKeepsTheirPlaceWhileProcessesAreKilledInTurn(t *testing.T) {
	const visitors, quantity = 10_000, 5_000
	perSecond := int64(rounds(150, 75))
	for _, s := range lined() {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel() // it waits for what starts again
			d := s.deploy(t)
			d.createLine("spring", quantity, perSecond)
			crowd := come(d.fleet, "spring", visitors)
			killed := d.killWhileServing(crowd, rounds(7, 30), seed.Rand(t))
			waitFor(t, "everybody's first answer", func() bool { return crowd.joined.Load() == visitors })
			paced := d.setPace("spring", map[string]any{}) // what is left goes as fast as it can
			coupons := crowd.verdict()
			t.Logf("%d kills counted; %d coupons within %v", killed, len(coupons), time.Since(crowd.start))
			if len(coupons) != quantity {
				t.Errorf("%d coupons were issued, want %d", len(coupons), quantity)
			}
			var issued []time.Time // at the pace
			for _, k := range coupons {
				if k.IssuedAt.Before(paced) {
					issued = append(issued, k.IssuedAt.Time)
				}
			}
			stage.KeepsPace(t, issued, perSecond)
			d.audit()
		})
	}
}

// lined are all setups in which a line is served; with Redis one that syncs each write, so that it may be killed, and without a soak
// only that of MariaDB.
func lined() (all []setup) {
	for _, s := range withSQLite() {
		if s.synced = s.redis; !s.redis || s.ledger == services.MariaDB || rounds(0, 1) > 0 {
			all = append(all, s)
		}
	}
	return all
}

// createLine makes a campaign with a line.
func (f *fleet) createLine(id string, quantity, perSecond int64) {
	f.t.Helper()
	body := fmt.Sprintf(`{"id":%q,"name":%q,"quantity":%d,"pace":{"per_second":%d}}`, id, id, quantity, perSecond)
	p := f.node(0)
	if answer, text := p.ask(http.MethodPost, p.url+"/v1/campaigns", body); answer.StatusCode != http.StatusCreated {
		f.t.Fatalf("create a campaign with a line: %s %s", answer.Status, text)
	}
}

// setPace changes the pace, and returns when that was, by the gate's clock.
func (f *fleet) setPace(id string, pace any) time.Time {
	f.t.Helper()
	ctx := f.t.Context()
	calls := newEntrance(f)
	stage.Must(f.t, f.insist(func() error { return stage.Err(calls.UpdateCampaign(ctx, id, 0, map[string]any{"pace": pace})) }))
	var all client.List[client.Change]
	stage.Must(f.t, f.insist(func() (err error) {
		all, err = calls.Changes(ctx, id, 0, 0)
		return err
	}))
	return all.Items[len(all.Items)-1].At.Time
}

// insist asks until there is an answer other than 503: who asks may reach a node that is dead.
func (f *fleet) insist(ask func() error) (err error) {
	f.t.Helper()
	waitFor(f.t, "an answer other than 503", func() bool {
		err = ask()
		p := isProblem(err)
		return err == nil || p != nil && p.Status != http.StatusServiceUnavailable
	})
	return err
}

// killWhileServing kills until so many kills count, while the crowd comes and behind that. On a busy machine few of them count, and stock is left
// for many more.
func (d *deployment) killWhileServing(c *lineCrowd, kills int, random *rand.Rand) (counted int) {
	tried, calls := 0, newEntrance(d.fleet) // the crowd's connections are busy
	for ; counted < kills && tried < 9*kills; tried++ {
		come := min(len(c.all), (tried+1)*len(c.all)/kills)
		waitFor(d.t, "more of the crowd", func() bool { return c.joined.Load() >= int64(come) })
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
		if err != nil {
			return false
		}
		served, looks = k.Issued, looks+1
		seen = k.SoldOutAt != nil || looks > 1 && served > before && (looks > enough || time.Since(last) < near)
		before, last = served, from
		return seen
	})
	return served
}

// wasServed tells whether a coupon was issued within the 50 ms before an instant, when some of that number had been, and waits for one behind it.
// If none can come any more, nobody's service was cut off.
func (d *deployment) wasServed(calls *client.Client, id string, number int64, at time.Time) bool {
	d.t.Helper()
	was, over := false, false
	from := strconv.FormatInt(max(0, number-100), 10)
	waitFor(d.t, "a coupon that is issued behind a kill", func() bool {
		page, _ := calls.FindCoupons(d.t.Context(), id, client.CouponFilter{After: from, Limit: 500})
		for _, k := range page.Items {
			if since := at.Sub(k.IssuedAt.Time); since < 0 {
				return true
			} else if since < 50*time.Millisecond {
				was = true
			}
		}
		k, err := calls.Campaign(d.t.Context(), id)
		over = err == nil && k.SoldOutAt != nil
		return over
	})
	return was && !over
}
