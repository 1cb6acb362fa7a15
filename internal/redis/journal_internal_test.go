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

func TestTheSameTroubleOfACampaignIsToldOnceAMinute(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var told []string
		trouble := troubles{sweep: time.Second, of: map[firstcome.CampaignID]*trouble{}, onAlarm: func(id firstcome.CampaignID, err error) {
			told = append(told, string(id)+": "+err.Error())
		}}
		for range 70 { // seconds
			trouble.add("c", flow.ErrLost)
			trouble.tell("c", flow.ErrRetired)
			time.Sleep(time.Second)
		}
		trouble.tell("d", flow.ErrLost)
		lost, retired := "c: "+flow.ErrLost.Error(), "c: "+flow.ErrRetired.Error()
		if want := []string{lost, retired, lost, retired, "d: " + flow.ErrLost.Error()}; !slices.Equal(told, want) {
			t.Errorf("told %q", told)
		}
	})
}

func TestACampaignIsInTheLaneOfTheLockedUntilItIsDrainedOrNotActive(t *testing.T) {
	all := troubles{sweep: time.Second, of: map[firstcome.CampaignID]*trouble{}}
	for name, ends := range map[string]func(){"drained": func() { all.drained("c") }, "not active": func() { all.keep(nil) }} {
		all.add("c", flow.ErrRowLocked)
		if all.lane("c") != locked || !all.rests("c") || all.lane("d") != free {
			t.Error("its lane is not that of the locked")
		}
		if ends(); all.lane("c") != free {
			t.Errorf("%s: it is in the lane of the locked", name)
		}
	}
}
