package redis

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/gate"
)

func TestAQuietCampaignIsDueAfterItsSlowLookItsNextRevisionOrAMessage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, r := schedule{slow: time.Minute}, gate.Revision{Campaign: "c", Version: 1}
		due := func(what string, r gate.Revision, want bool) {
			t.Helper()
			if got := len(s.due([]gate.Revision{r})) == 1; got != want {
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
