package flow_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/flow"
)

func TestACampaignThatRestsIsOnTheAgendaWhenItHasRestedAndInItsLane(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		retries := flow.NewRetries(0)
		a := flow.NewAgenda(retries.Locked)
		next := func(of flow.Shelf) (id firstcome.CampaignID) { // empty: there is none
			ctx, cancel := context.WithCancel(t.Context())
			got := make(chan struct{})
			go func() {
				defer close(got)
				id, _ = a.Next(ctx, of)
			}()
			synctest.Wait()
			cancel()
			<-got
			return id
		}
		for _, id := range []firstcome.CampaignID{"c", "d"} {
			a.Add(id)
			next(flow.Free)
			a.Add(id) // while it is worked on
		}
		a.Rest("c", retries.Failed("c", flow.ErrRowLocked))
		a.Rest("d", time.Second)
		a.Add("d") // a message
		time.Sleep(time.Second - time.Nanosecond)
		synctest.Wait()
		if id := next(flow.Locked); id != "c" {
			t.Errorf("in the lane of the locked is %q", id)
		}
		if id := next(flow.Free); id != "" {
			t.Errorf("%s does not rest", id)
		}
		time.Sleep(time.Nanosecond)
		synctest.Wait()
		if id := next(flow.Free); id != "d" {
			t.Errorf("in the free lane is %q", id)
		}
	})
}
