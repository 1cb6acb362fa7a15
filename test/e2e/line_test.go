//go:build linux

package e2e_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"testing"
	"time"

	"github.com/firstcome/firstcome/client"
	"github.com/firstcome/firstcome/test/seed"
	"github.com/firstcome/firstcome/test/stage"
)

// TestF71P9EverybodyInLineKeepsTheirPlaceWhileProcessesAreKilledInTurn has 10,000 people claim 5,000 coupons of a campaign with a
// line, and follow their places to the end, while what serves them is killed with SIGKILL and started again: nodes, and
// the ledger's server. A kill counts if a coupon was issued within the 50 ms before it and stock was left after it. There are seven for each
// gate, in a soak forty.
func TestF71P9EverybodyInLineKeepsTheirPlaceWhileProcessesAreKilledInTurn(t *testing.T) {
	const visitors, quantity, perSecond = 10_000, 5_000, 200
	for _, s := range lined() {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel() // it waits for what starts again
			d := s.deploy(t)
			d.createLine("spring", quantity, perSecond)
			crowd := come(d.fleet, "spring", visitors)
			killed := d.killWhileServing(crowd, rounds(7, 40), seed.Rand(t))
			waitFor(t, "everybody's first answer", func() bool { return crowd.joined.Load() == visitors })
			paced := d.setPace("spring", map[string]any{}) // what is left goes as fast as it can
			coupons := crowd.verdict()
			t.Logf("%d kills counted; %d coupons", killed, len(coupons))
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

// lined are the setups with gates that keep lines.
func lined() (all []setup) {
	for _, s := range withSQLite() {
		if !s.redis {
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

// killWhileServing kills until so many kills count.
func (d *deployment) killWhileServing(c *lineCrowd, kills int, random *rand.Rand) (counted int) {
	const fresh = 50 * time.Millisecond
	tried := 0
	for ; counted < kills && tried < 3*kills; tried++ {
		since := d.awaitService(c)
		<-time.After(time.Duration(random.IntN(5000)) * time.Microsecond)
		was := time.Since(since) < fresh
		d.killOne(tried, random)
		if was && d.left(c) {
			counted++
		}
	}
	if counted < kills {
		d.t.Errorf("of %d kills only %d came while the line was served, want %d", tried, counted, kills)
	}
	return counted
}

// awaitService waits until somebody in line is served, and returns an instant before that.
func (d *deployment) awaitService(c *lineCrowd) (since time.Time) {
	d.t.Helper()
	last := int64(-1)
	waitFor(d.t, "somebody in line who is served", func() bool {
		asked := time.Now()
		k, err := c.calls.Campaign(d.t.Context(), c.campaign)
		if err != nil {
			last = -1
			return false
		}
		served := last >= 0 && k.Issued > last
		if !served {
			since, last = asked, k.Issued
		}
		return served
	})
	return since
}

// left tells whether coupons are left.
func (d *deployment) left(c *lineCrowd) (is bool) {
	d.t.Helper()
	stage.Must(d.t, d.insist(func() error {
		k, err := c.calls.Campaign(context.WithoutCancel(d.t.Context()), c.campaign)
		is = err == nil && *k.Remaining > 0
		return err
	}))
	return is
}
