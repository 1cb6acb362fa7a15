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
func growth(ctx context.Context, b *bench) error {
	for name, users := range orders {
		ledger := "growth-" + name[:2] + ".db"
		s, err := b.firstcome(ctx, ledger)
		if err != nil {
			return err
		}
		if err := b.grow(ctx, s, name, users); err != nil {
			s.stop()
			return err
		}
		s.stop()
		if err := b.restart(ctx, ledger); err != nil {
			return err
		}
		if err := os.Remove(filepath.Join(b.dir, ledger)); err != nil {
			return err
		}
	}
	return nil
}

func (b *bench) grow(ctx context.Context, s *server, name string, users func(int) func(int) string) error {
	warm, err := b.campaign(ctx, s, -1)
	if err != nil {
		return err
	}
	if _, err := drive(ctx, at(s, warm, users(0)), 20_000, 64, 0, "issued"); err != nil {
		return err
	}
	before, err := s.memory()
	if err != nil {
		return err
	}
	large, err := b.campaign(ctx, s, int64(b.holders))
	if err != nil {
		return err
	}
	if _, err := drive(ctx, at(s, large, users(0)), b.holders, 64, 0, "issued"); err != nil {
		return err
	}
	if err := b.refuseFromMemory(ctx, s, at(s, large, users(2*b.holders))); err != nil {
		return err
	}
	after, err := s.memory()
	if err != nil {
		return err
	}
	if _, err := client.New("http://"+s.address, "").UpdateCampaign(ctx, large, 0, map[string]any{"quantity": nil}); err != nil {
		return err
	}
	const part = 20_000
	from := b.holders
	late := func() (figure, error) {
		from += part
		return drive(ctx, at(s, large, users(from)), part, 64, 0, "issued")
	}
	early := func() (figure, error) {
		id, err := b.campaign(ctx, s, -1)
		if err != nil {
			return figure{}, err
		}
		return drive(ctx, at(s, id, users(0)), part, 64, 0, "issued")
	}
	c, err := b.pair(late, early)
	if err != nil {
		return err
	}
	b.printRate(fmt.Sprintf("claims after %d coupons, user ids %s", b.holders, name), c, "in a new campaign", wantGrowth)
	b.print("… bytes of resident memory a holder, sold out", fmt.Sprintf("%.1f", float64(after-before)/float64(b.holders)), "", "", wantMemory)
	return nil
}

// refuseFromMemory has newcomers refused until the node does so without its gate: then it has read who holds a coupon.
func (b *bench) refuseFromMemory(ctx context.Context, s *server, newcomers target) error {
	const part, ofGate, parts = 2_000, 20, 1000
	asked := 0.0
	for range parts {
		if _, err := drive(ctx, newcomers, part, 64, 0, "sold_out"); err != nil {
			return err
		}
		calls, err := s.metric("firstcome_batch_claims_count")
		if err != nil {
			return err
		}
		if asked > 0 && calls-asked <= ofGate {
			return nil
		}
		asked = calls
	}
	return fmt.Errorf("of %d claims at a campaign that is sold out the gate is asked each time", parts*part)
}

// restart measures how long a start on the large ledger takes until a claim is answered.
func (b *bench) restart(ctx context.Context, ledger string) error {
	began := time.Now()
	s, err := b.firstcome(ctx, ledger)
	if err != nil {
		return err
	}
	defer s.stop()
	id := fmt.Sprintf("bench-%d", b.made)
	if _, err := drive(ctx, at(s, id, func(int) string { return "a newcomer" }), 1, 1, 0, "issued"); err != nil {
		return err
	}
	b.print("… start until the first claim is answered", time.Since(began).Round(time.Millisecond).String(), "", "", wantStart)
	return nil
}
