package redis_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/flow"
	"github.com/firstcome/firstcome/test/services"
)

func TestManyUnrecordedNumbersKeepNoConnectionBusy(t *testing.T) {
	s := newShop(t, services.Redis.Database(t), firstcome.Unlimited)
	s.issue(0, 500)
	watch(t, s.gate, func(firstcome.CampaignID, flow.Settled) {})
	var numbers []int64
	for n := range 101 {
		numbers = append(numbers, int64(n+1))
	}
	var all sync.WaitGroup
	for from := range 4 {
		all.Go(func() {
			g := open(t, s.url)
			for n := range 100 {
				if err := g.Settle(t.Context(), "c", flow.Settled{Through: int64(102 + from*100 + n), Order: int64(1 + from*100 + n), Unrecorded: numbers, Epoch: 1}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	for range 100 {
		if _, err := s.gate.SettledThrough(ctx, "c", numbers); err != nil {
			t.Error(err)
			break
		}
	}
	all.Wait()
}
