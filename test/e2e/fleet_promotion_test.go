//go:build linux && !check

package e2e_test

import (
	"testing"
	"time"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/client"
	"github.com/firstcome/firstcome/internal/audit"
	"github.com/firstcome/firstcome/test/services"
	"github.com/firstcome/firstcome/test/stage"
)

// TestF02AGateWithManyHoldersIssuesAgainBehindAPromotion promotes the replica of a gate with 5,000 holders, in a soak with a million, and prints how long
// it takes until somebody new is issued a coupon. How long that may be is not asked: it would only tell how busy the machine is.
func TestF02AGateWithManyHoldersIssuesAgainBehindAPromotion(t *testing.T) {
	holders := rounds(5_000, 1_000_000)
	o := byHand(t)
	o.fleet = newFleet(t, services.MariaDB.Database(t), o.gate)
	c := o.gather("spring", firstcome.Recorded)
	for range holders / 1000 {
		o.issue(c, 1000)
	}
	o.drained("spring")
	p := o.of("spring")
	stage.Must(t, p.Settle(t.Context()))
	o.promote(p)
	t.Logf("with %d holders a coupon is issued %v after the promotion", holders, o.issuesAgain(c))
	o.drained("spring")
	o.verdict(c)
}

// issue issues coupons to new users, past any line, and keeps the answers. It asks again while the answer is 503.
func (f *fleet) issue(c *crowd, count int) {
	f.t.Helper()
	var users []string
	for range count {
		users = append(users, c.user())
	}
	stage.Must(f.t, f.insist(func() error {
		sent := time.Since(c.start)
		answers, err := f.node(0).calls.Issue(f.t.Context(), c.campaign, users, "")
		if err != nil {
			answers = make([]client.Answer, count)
		}
		for n, answer := range answers {
			c.keep(audit.Claim{User: firstcome.UserID(users[n]), Sent: sent}, answer, err)
		}
		return err
	}))
}

// issuesAgain has new users claim until one is issued a coupon, and returns how long that took.
func (f *fleet) issuesAgain(c *crowd) time.Duration {
	f.t.Helper()
	before, _, _ := c.answered()
	started := time.Now()
	for turn := 0; time.Since(started) < 10*patience; turn++ {
		_, _ = c.claim(f.t.Context(), f.node(turn).calls, c.user())
		if now, _, _ := c.answered(); now > before {
			return time.Since(started)
		}
		<-time.After(5 * time.Millisecond)
	}
	f.t.Fatal("nobody is issued a coupon behind the promotion")
	return 0
}
