package api_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/api"
	"github.com/firstcome/firstcome/internal/gate"
	"github.com/firstcome/firstcome/internal/ledger"
	"github.com/firstcome/firstcome/internal/sqlgate"
	"github.com/firstcome/firstcome/test/stage"
)

// A slowLedger answers for made-up ids only when the test releases it.
type slowLedger struct {
	*ledger.Reads
	*sqlgate.Gate
	asked, most atomic.Int64 // reads of made-up ids: now, and the most at once
	begun       sync.Once
	reading     chan struct{} // closed by the first read
	let         chan struct{} // closed when the reads may go on
}

func (l *slowLedger) read(id firstcome.CampaignID) {
	if !strings.HasPrefix(string(id), "made-up") {
		return
	}
	now := l.asked.Add(1)
	for most := l.most.Load(); now > most && !l.most.CompareAndSwap(most, now); most = l.most.Load() {
	}
	l.begun.Do(func() { close(l.reading) })
	<-l.let
	l.asked.Add(-1)
}

func (l *slowLedger) Campaign(ctx context.Context, id firstcome.CampaignID) (ledger.Status, error) {
	l.read(id)
	return l.Reads.Campaign(ctx, id)
}

func (l *slowLedger) Exists(ctx context.Context, id firstcome.CampaignID) error {
	l.read(id)
	return l.Reads.Exists(ctx, id)
}

func (l *slowLedger) LineOf(ctx context.Context, id firstcome.CampaignID) (gate.LineState, error) {
	l.read(id)
	return l.Gate.LineOf(ctx, id)
}

func (l *slowLedger) CouponOf(ctx context.Context, id firstcome.CampaignID, user firstcome.UserID) (firstcome.Coupon, error) {
	l.read(id)
	return l.Gate.CouponOf(ctx, id, user)
}

// undecided gets the errors of claims. It has room for all of the test.
type undecided struct {
	api.Observer
	errs chan error
}

func (o *undecided) Undecided(_ context.Context, _ firstcome.CampaignID, err error) { o.errs <- err }

// TestMadeUpCampaignsDoNotOccupyTheLedger requests 200 ids that do not exist from a slow ledger. At most two lookups run at
// once. The node still answers for an existing campaign that it has not cached, and for one created during the flood. A claim
// that is turned away is known to be undecided.
func TestMadeUpCampaignsDoNotOccupyTheLedger(t *testing.T) {
	slow := &slowLedger{reading: make(chan struct{}), let: make(chan struct{})}
	seen := &undecided{errs: make(chan error, 200)}
	s := open(t, guarded, func(s *shop, c *api.Options) {
		seen.Observer, c.Observer = c.Observer, seen
		slow.Reads, slow.Gate, c.Ledger, c.Places, s.claims.Coupons = s.ledger.Reads, s.ledger.Gate, slow, slow, slow
	})
	s.call("POST", "/v1/campaigns", `{"id":"real","name":"n","quantity":9}`, s.key(firstcome.Admin)...).want(t, 201, "")
	token := s.token("u")
	var asking sync.WaitGroup
	var gone, busy atomic.Int64
	for n := range 200 {
		asking.Go(func() {
			id := fmt.Sprint("made-up-", n)
			var r reply
			var err error
			switch n % 4 {
			case 0:
				r, err = s.try("GET", "/v1/campaigns/"+id+"/line", "")
			case 1:
				r, err = s.try("GET", "/v1/campaigns/"+id, "", token...)
			case 2:
				r, err = s.try("GET", "/v1/campaigns/"+id+"/claims/u", "", token...)
			default:
				r, err = s.try("POST", "/v1/campaigns/"+id+"/claims", "", token...)
			}
			switch {
			case err != nil:
				t.Error(err)
			case r.status == http.StatusNotFound:
				gone.Add(1)
			case r.status == http.StatusServiceUnavailable && r.header.Get("Retry-After") != "":
				busy.Add(1)
			default:
				t.Errorf("%s is answered %d %s", id, r.status, r.body)
			}
		})
	}
	<-slow.reading
	for range 20 {
		s.call("GET", "/v1/campaigns/real/line", "").want(t, 200, "")
		if r := s.call("POST", "/v1/campaigns/real/claims", "", token...); r.text("coupon", "code") == "" {
			t.Errorf("a claim is answered %s", r.body)
		}
	}
	s.call("POST", "/v1/campaigns", `{"id":"newer","name":"n","quantity":9}`, s.key(firstcome.Admin)...).want(t, 201, "")
	stage.Await(t, "the answer of a newer campaign", http.StatusOK, func() int { return s.call("GET", "/v1/campaigns/newer/line", "").status })
	if err := <-seen.errs; firstcome.CauseOf(err) != firstcome.Busy {
		t.Errorf("a claim that waited too long counts as %q: %v", firstcome.CauseOf(err), err)
	}
	close(slow.let)
	asking.Wait()
	if slow.most.Load() > 2 || gone.Load()+busy.Load() != 200 {
		t.Errorf("%d were read at once, and %d found gone, %d told to come again", slow.most.Load(), gone.Load(), busy.Load())
	}
}
