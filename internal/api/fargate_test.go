package api_test

import (
	"context"
	"testing"
	"time"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/api"
	"github.com/firstcome/firstcome/internal/gate"
	"github.com/firstcome/firstcome/internal/issue"
	"github.com/firstcome/firstcome/internal/ledger"
	"github.com/firstcome/firstcome/test/stage"
)

// farGateName is the far gate's name in campaigns.
const farGateName = "redis:test"

// errAway is the error of a gate that is away.
var errAway = gate.ErrGone

// A farShop is a shop whose campaigns a far gate decides. Nothing is recorded until the test says so.
type farShop struct {
	*shop
	gate   *stage.Gate
	issued chan int64 // the numbers that the gate issued, with room for those of a test
}

// openFar opens a shop in which claims wait for the ledger as long as a test may take, unless change says otherwise.
func openFar(t testing.TB, change ...func(*shop, *api.Options)) *farShop {
	t.Helper()
	f := &farShop{gate: stage.NewGate(0), issued: make(chan int64, 100)}
	f.gate.Lease, f.gate.Issued = 0, func(number int64) { f.issued <- number }
	f.shop = openFor(t, ledger.Options{Gate: farGateName}, func(s *shop, c *api.Options) {
		waiter := issue.NewWaiter(&gate.Router{Gate: f.gate, Retired: s.ledger.Gate, Ledger: s.ledger.Recorder})
		s.far, s.issuer = f.gate, issue.NewIssuer(f.gate, issue.Options{})
		s.claims = &issue.Answerer{Coupons: f.gate, Waiter: waiter, Wait: time.Minute}
		for _, do := range change {
			do(s, c)
		}
		stage.Run(t, waiter.Run)
	})
	return f
}

// record does what a recorder does.
func (f *farShop) record(id firstcome.CampaignID) {
	f.t.Helper()
	f.gate.Record(f.t, f.ledger.Recorder, id)
}

// bury makes a dead letter as a recorder does for a coupon that the ledger refuses. The coupon has no fault, so that the
// dead letter can be replayed.
func (f *farShop) bury(id firstcome.CampaignID, cause string) {
	f.t.Helper()
	f.gate.Bury(f.t, f.ledger.Recorder, id, cause)
}

// away sets the error that the gate returns for changes, or nil.
func (f *farShop) away(err error) { f.gate.Set(func() { f.gate.Changes = err }) }

// hold makes the gate signal when a batch arrives, and decide it only when released.
func (f *farShop) hold() (came <-chan struct{}, letGo func()) {
	at, held := make(chan struct{}, 100), make(chan struct{})
	f.gate.Before = func(ctx context.Context, _ firstcome.CampaignID) error {
		at <- struct{}{}
		select {
		case <-held:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return at, func() { close(held) }
}

// queue is a change of openFar that limits the queue to the gate.
func queue(l issue.Options) func(*shop, *api.Options) {
	return func(s *shop, _ *api.Options) { s.issuer = issue.NewIssuer(s.far, l) }
}
