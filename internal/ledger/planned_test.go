package ledger

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/record"
	"github.com/firstcome/firstcome/test/stage"
)

// A planned load has users and numbers that are new.
type planned struct {
	t    *testing.T
	last int64
}

// claims has new users claim.
func (p *planned) claims(l *Ledger, size int) {
	p.t.Helper()
	users := make([]firstcome.UserID, size)
	for n := range users {
		p.last++
		users[n] = firstcome.UserID(fmt.Sprint("user-", p.last))
	}
	stage.Must(p.t, stage.Err(l.Gate.Claim(context.Background(), "c", users)))
}

// lines has new users join, ask again and be served, behind 200 who wait.
func (p *planned) lines(l *Ledger, size int) {
	p.t.Helper()
	if p.last == 0 {
		stage.Must(p.t, stage.Err(l.Campaigns.SetTerms(context.Background(), "test", "c", 0, func(t *firstcome.Terms) { t.Pace = &firstcome.Pace{} })))
		p.claims(l, 200)
	}
	p.claims(l, size)
	p.last -= int64(size)
	p.claims(l, size)
	stage.Must(p.t, stage.Err(l.Gate.Serve(context.Background(), "c", size)))
}

// records has coupons recorded twice, the second time behind a dead letter.
func (p *planned) records(l *Ledger, size int) {
	p.t.Helper()
	coupons := make([]firstcome.Coupon, size)
	for n := range coupons {
		p.last++
		coupons[n] = stage.Coupon("c", p.last)
	}
	if p.last == int64(size) { // the first ones
		stage.Must(p.t, stage.Err(l.Recorder.Bury(context.Background(), record.Batch{Campaign: "c", Epoch: 1, Coupons: coupons[:1]}, "test")))
	}
	for range 2 {
		stage.Must(p.t, stage.Err(l.Recorder.Record(context.Background(), record.Batch{Campaign: "c", Epoch: 1, Coupons: coupons})))
	}
}

// reads asks for each of the latest coupons, and for the campaign.
func (p *planned) reads(l *Ledger, size int) {
	p.t.Helper()
	for n := range min(size, 20) {
		_, err := l.Reads.Campaign(context.Background(), "c")
		if err == nil {
			_, err = l.Gate.CouponOf(context.Background(), "c", firstcome.UserID(fmt.Sprint("user-", p.last-int64(n))))
			if errors.Is(err, firstcome.ErrNoCoupon) { // in line
				err = nil
			}
		}
		if err == nil {
			_, err = l.Recorder.Has(context.Background(), "c", []firstcome.Coupon{{Campaign: "c", Number: p.last}})
		}
		stage.Must(p.t, err)
	}
}
