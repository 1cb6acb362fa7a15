package record

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/firstcome/firstcome"
)

func TestACampaignThatRestsIsOnTheAgendaWhenItHasRestedAndInItsLane(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		retries := newRetries(0)
		a := newAgenda(retries.shelf)
		next := func(of shelf) (id firstcome.CampaignID) { // "" if there is none
			ctx, cancel := context.WithCancel(t.Context())
			got := make(chan struct{})
			go func() {
				defer close(got)
				id, _ = a.next(ctx, of)
			}()
			synctest.Wait()
			cancel()
			<-got
			return id
		}
		for _, id := range []firstcome.CampaignID{"c", "d"} {
			a.add(id)
			next(free)
			a.add(id) // while it is worked on
		}
		a.rest("c", retries.failed("c", ErrRowLocked))
		a.rest("d", time.Second)
		a.add("d") // a message
		time.Sleep(time.Second - time.Nanosecond)
		synctest.Wait()
		if id := next(locked); id != "c" {
			t.Errorf("in the lane of the locked is %q", id)
		}
		if id := next(free); id != "" {
			t.Errorf("%s does not rest", id)
		}
		time.Sleep(time.Nanosecond)
		synctest.Wait()
		if id := next(free); id != "d" {
			t.Errorf("in the free lane is %q", id)
		}
	})
}

func TestACampaignCountsAsLockedUntilItIsDrained(t *testing.T) {
	again := newRetries(0)
	again.failed("c", ErrRowLocked)
	again.failed("c", errors.New("the ledger is down"))
	again.failed("d", errors.New("the ledger is down"))
	if c, d := again.shelf("c"), again.shelf("d"); c != locked || d != failing {
		t.Errorf("the campaigns are on the shelves %d and %d", c, d)
	}
	if again.succeeded("c"); again.shelf("c") != free {
		t.Error("c counts as locked though it was drained")
	}
}
