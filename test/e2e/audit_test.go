//go:build linux && !check

package e2e_test

import (
	"sync"
	"sync/atomic"
	"testing"
)

// auditServer runs firstcome audit against all campaigns of the server, and fails the test on
// any breach.
func (p *process) auditServer() {
	p.t.Helper()
	p.wantNoBreach(execute(p.t, p.t.TempDir(), "audit", "--server", p.url))
}

// TestTheAuditOfAServerFindsNoBreachWhileItIssuesAndVoids audits again and again
// while coupons are issued, some of them are voided, and the terms change.
func TestTheAuditOfAServerFindsNoBreachWhileItIssuesAndVoids(t *testing.T) {
	const clients, audits = 4, 3
	p := serve(t, launch{args: patient})
	p.create("spring", 10_000_000)
	crowd := newCrowd("spring")
	stop := crowd.claimUntil(p, clients)
	crowd.awaitAnswers(t, 1000)
	var changes sync.WaitGroup
	var stopped atomic.Bool
	changes.Go(func() {
		for number := int64(1); !stopped.Load(); number++ {
			if _, err := p.calls.Void(t.Context(), "spring", number, "e2e"); err != nil {
				t.Error(err)
			}
			if _, err := p.calls.UpdateCampaign(t.Context(), "spring", 0, map[string]any{"quantity": 10_000_000 + number}); err != nil {
				t.Error(err)
			}
		}
	})
	for range audits {
		p.auditServer()
	}
	stopped.Store(true)
	changes.Wait()
	stop()
	p.auditServer()
	p.audit()
	p.stop()
}
