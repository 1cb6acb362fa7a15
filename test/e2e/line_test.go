//go:build linux && !check

package e2e_test

import (
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/firstcome/firstcome/client"
	"github.com/firstcome/firstcome/internal/point"
	"github.com/firstcome/firstcome/test/services"
	"github.com/firstcome/firstcome/test/stage"
)

// TestF71P9EverybodyInLineKeepsTheirPlaceWhileProcessesAreKilledInTurn has 400 people claim 200 coupons of a campaign with a line, and follow
// their places to the end. The node that has just served users dies, or stands still while the ledger's server, or Redis, is
// killed and started again. A recorder dies, too.
func TestF71P9EverybodyInLineKeepsTheirPlaceWhileProcessesAreKilledInTurn(t *testing.T) {
	for _, s := range lined() {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel() // it waits for what starts again
			d := s.deploy(t, withPoints(t))
			served := []blow{{point.Served, nil}, {point.Served, d.ledger}, {point.Served, nil}}
			if d.gate != nil {
				served = append(served, blow{point.Served, d.gate}, blow{point.Committed, nil})
			}
			d.createLine("spring", 200, slowPace)
			crowd := come(d.fleet, "spring", 400)
			for _, b := range served {
				d.suffer(b)
			}
			paced := d.setPace("spring", map[string]any{}) // what is left goes as fast as it can
			coupons := crowd.verdict()
			wantIssued(t, coupons, 200)
			atPace(t, coupons, paced, slowPace)
			d.audit()
		})
	}
}

// slowPace is the pace while processes are killed: 200 coupons last for minutes, so each kill finds users to serve.
const slowPace = 1

func wantIssued(t *testing.T, coupons []client.Coupon, want int) {
	t.Helper()
	if len(coupons) != want {
		t.Errorf("%d coupons were issued, want %d", len(coupons), want)
	}
}

// atPace wants that coupons were issued at a pace until an instant.
func atPace(t *testing.T, coupons []client.Coupon, until time.Time, perSecond int64) {
	t.Helper()
	var issued []time.Time
	for _, k := range coupons {
		if k.IssuedAt.Before(until) {
			issued = append(issued, k.IssuedAt.Time)
		}
	}
	stage.KeepsPace(t, issued, perSecond)
}

// lined are all setups in which a line is served; with Redis one that syncs each write, so that it may be killed, and outside of a soak
// only that of MariaDB.
func lined() (all []setup) {
	for _, s := range withSQLite() {
		if s.synced = s.redis; !s.redis || s.ledger == services.MariaDB || soaking {
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
		all, err = calls.Operator().Changes(ctx, id, 0, 0)
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
