package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/firstcome/firstcome/client"
)

// growth: the last claims of a large campaign against the first of a new one;
// memory; start.
func growth(ctx context.Context, b *bench) {
	for name, users := range orders {
		ledger := "growth-" + name[:2] + ".db"
		b.grow(ctx, ledger, name, users)
		b.restart(ctx, ledger)
		must(os.Remove(filepath.Join(b.dir, ledger)))
	}
}

func (b *bench) grow(ctx context.Context, ledger, name string, users func(int) func(int) string) {
	s := b.firstcome(ctx, ledger)
	defer s.stop()
	warm := b.campaign(ctx, s, -1)
	drive(ctx, at(s, warm, users(0)), 20_000, 64, 0, "issued")
	before := s.memory()
	large := b.campaign(ctx, s, int64(b.holders))
	drive(ctx, at(s, large, users(0)), b.holders, 64, 0, "issued")
	b.refuseFromMemory(ctx, s, at(s, large, users(2*b.holders)))
	after := s.memory()
	value(client.New("http://"+s.address, "").UpdateCampaign(ctx, large, 0, map[string]any{"quantity": nil}))
	const part = 20_000
	from := b.holders
	late := func() figure {
		from += part
		return drive(ctx, at(s, large, users(from)), part, 64, 0, "issued")
	}
	early := func() figure {
		id := b.campaign(ctx, s, -1)
		return drive(ctx, at(s, id, users(0)), part, 64, 0, "issued")
	}
	c := b.pair(late, early)
	b.printRate(fmt.Sprintf("claims after %d coupons, user ids %s", b.holders, name), c, "in a new campaign", wantGrowth)
	b.print("… bytes of resident memory a holder, sold out", fmt.Sprintf("%.1f", float64(after-before)/float64(b.holders)), "", "", wantMemory)
}

// refuseFromMemory has newcomers refused until the node does so without its gate: then it has read who holds a coupon.
func (b *bench) refuseFromMemory(ctx context.Context, s *server, newcomers target) {
	const part, ofGate, parts = 2_000, 20, 1000
	asked := 0.0
	for range parts {
		drive(ctx, newcomers, part, 64, 0, "sold_out")
		calls := s.metric("firstcome_batch_claims_count")
		if asked > 0 && calls-asked <= ofGate {
			return
		}
		asked = calls
	}
	must(fmt.Errorf("of %d claims at a campaign that is sold out the gate is asked each time", parts*part))
}

// restart measures how long a start on the large ledger takes until a claim is answered.
func (b *bench) restart(ctx context.Context, ledger string) {
	began := time.Now()
	s := b.firstcome(ctx, ledger)
	defer s.stop()
	id := fmt.Sprintf("bench-%d", b.made)
	drive(ctx, at(s, id, func(int) string { return "a newcomer" }), 1, 1, 0, "issued")
	b.print("… start until the first claim is answered", time.Since(began).Round(time.Millisecond).String(), "", "", wantStart)
}
