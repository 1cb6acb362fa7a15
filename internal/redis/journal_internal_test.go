package redis

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/flow"
)

func TestAQuietCampaignIsDueAfterItsSlowLookItsNextRevisionOrAMessage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, r := schedule{slow: time.Minute}, flow.Revision{Campaign: "c", Version: 1}
		due := func(what string, r flow.Revision, want bool) {
			t.Helper()
			if got := len(s.due([]flow.Revision{r})) == 1; got != want {
				t.Errorf("%s it is due: %v", what, got)
			}
		}
		due("at first", r, true)
		due("while it is not quiet", r, true)
		s.quiet(r)
		time.Sleep(time.Minute - time.Nanosecond)
		due("before its slow look", r, false)
		time.Sleep(time.Nanosecond)
		due("at its slow look", r, true)
		s.quiet(r)
		r.Version++
		due("in another revision", r, true)
		s.soon(r.Campaign)
		s.quiet(r)
		due("as a message came during the look", r, true)
		s.quiet(r)
		s.soon(firstcome.CampaignID("c"))
		due("as a message came", r, true)
	})
}

func TestTheSameAlarmOfACampaignIsToldOnceAMinute(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var told []string
		alarms := alarms{on: func(id firstcome.CampaignID, err error) { told = append(told, string(id)+": "+err.Error()) }}
		for second := range 100 {
			alarms.tell("c", flow.ErrLost)
			if second >= 30 {
				alarms.tell("c", flow.ErrRetired)
			}
			time.Sleep(time.Second)
		}
		alarms.tell("d", flow.ErrLost)
		lost, retired := "c: "+flow.ErrLost.Error(), "c: "+flow.ErrRetired.Error()
		if want := []string{lost, retired, lost, retired, "d: " + flow.ErrLost.Error()}; !slices.Equal(told, want) {
			t.Errorf("told %q", told)
		}
	})
}

func TestACampaignThatRestsIsOnTheAgendaWhenItHasRestedAndInItsLane(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		retries := flow.NewRetries(0)
		a := newAgenda(retries.Locked)
		for _, id := range []firstcome.CampaignID{"c", "d"} {
			a.add(id)
			a.take(free)
			a.add(id) // while it is worked on
		}
		a.rest("c", retries.Failed("c", flow.ErrRowLocked))
		a.rest("d", time.Second)
		a.add("d") // a message
		time.Sleep(time.Second - time.Nanosecond)
		synctest.Wait()
		if id, _ := a.take(locked); id != "c" {
			t.Errorf("in the lane of the locked is %q", id)
		}
		if id, ok := a.take(free); ok {
			t.Errorf("%s does not rest", id)
		}
		time.Sleep(time.Nanosecond)
		synctest.Wait()
		if id, _ := a.take(free); id != "d" {
			t.Errorf("in the free lane is %q", id)
		}
	})
}
