package api

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/firstcome/firstcome"
)

func TestACrowdReadsTermsOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		letGo, reads := make(chan error), 0
		c := NewTermsCache(func(ctx context.Context, _ firstcome.CampaignID, version int64) (firstcome.Terms, error) {
			reads++
			return firstcome.Terms{Quantity: version}, errors.Join(<-letGo, ctx.Err())
		})
		ask := func(ctx context.Context, got func(*terms, error)) (all *sync.WaitGroup) {
			all = &sync.WaitGroup{}
			for range 100 {
				all.Go(func() { got(c.get(ctx, "c", 7)) })
			}
			synctest.Wait()
			return all
		}
		failed := ask(t.Context(), func(got *terms, err error) {
			if got != nil || err == nil {
				t.Errorf("they got %v, %v", got, err)
			}
		})
		letGo <- errors.New("down")
		failed.Wait()
		ctx, goAway := context.WithCancel(t.Context())
		gone := ask(ctx, func(_ *terms, err error) {
			if !errors.Is(err, context.Canceled) {
				t.Errorf("who went away got %v", err)
			}
		})
		goAway()
		gone.Wait()
		told := ask(t.Context(), func(got *terms, err error) {
			if err != nil || got.Quantity != 7 {
				t.Errorf("they got %v, %v", got, err)
			}
		})
		letGo <- nil
		told.Wait()
		if reads != 2 {
			t.Errorf("they were read %d times", reads)
		}
	})
}
