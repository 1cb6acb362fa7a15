//go:build linux

package e2e_test

import (
	"testing"
	"time"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/client"
)

// A span is when nobody new may be issued a coupon: from an operator's answer to
// the sending of the change that ends it.
type span struct{ from, to time.Duration }

// issuedIn returns how many claims were sent and answered issued within a span.
func (c *crowd) issuedIn(s span) (issued int, refused int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, claim := range c.claims {
		switch {
		case claim.Sent < s.from || claim.Received > s.to:
		case claim.Outcome == firstcome.Issued:
			issued++
		case !claim.Outcome.HasCoupon():
			refused++
		}
	}
	return issued, refused
}

// asked returns how many claims were answered.
func (c *crowd) asked() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.claims)
}

// TestF61AfterTheOperatorsAnswerNobodyNewIsIssued pauses, resumes and at last
// closes a campaign for which a crowd claims, each claim a new user.
func TestF61AfterTheOperatorsAnswerNobodyNewIsIssued(t *testing.T) {
	const clients = 16
	pauses := rounds(20, 500)
	p := serve(t, launch{})
	p.create("spring", 10_000_000)
	crowd := newCrowd("spring")
	stop := crowd.claimUntil(p, clients)
	change := func(do func() (client.Campaign, error)) (sent, answered time.Duration) {
		sent = time.Since(crowd.start)
		if _, err := do(); err != nil {
			t.Error(err)
		}
		return sent, time.Since(crowd.start)
	}
	var spans []span
	for range pauses {
		crowd.awaitAnswers(t, 50)
		_, from := change(func() (client.Campaign, error) { return p.calls.Pause(t.Context(), "spring") })
		before := crowd.asked()
		waitFor(t, "claims while it is paused", func() bool { return crowd.asked() > before+100 })
		to, _ := change(func() (client.Campaign, error) { return p.calls.Resume(t.Context(), "spring") })
		spans = append(spans, span{from, to})
	}
	crowd.awaitAnswers(t, 50)
	_, closed := change(func() (client.Campaign, error) { return p.calls.Close(t.Context(), "spring") })
	left, before := remaining(t, p, "spring"), crowd.asked()
	waitFor(t, "claims after it was closed", func() bool { return crowd.asked() > before+1000 })
	stop()
	if now := remaining(t, p, "spring"); now != left {
		t.Errorf("%d coupons were left when it was closed, and %d later", left, now)
	}
	for n, s := range append(spans, span{closed, time.Since(crowd.start)}) {
		issued, refused := crowd.issuedIn(s)
		if issued > 0 || refused == 0 {
			t.Errorf("after the answer of the operator's change %d, %d coupons were issued and %d claims refused", n, issued, refused)
		}
	}
	crowd.isLogged(t, p, 2*pauses+2)
	crowd.verdict(p)
	p.stop()
}

// isLogged wants a line of the audit log for each of the operator's changes.
func (c *crowd) isLogged(t *testing.T, p *process, changes int) {
	t.Helper()
	log, err := p.calls.AuditLog(t.Context(), client.LogFilter{Campaign: c.campaign, Limit: 500})
	if err != nil {
		t.Fatal(err)
	}
	if len(log.Items) != min(changes, 500) {
		t.Errorf("the audit log has %d lines, want %d", len(log.Items), changes)
	}
}
