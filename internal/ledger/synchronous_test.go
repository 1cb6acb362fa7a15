//go:build !check && (!race || soak)

package ledger_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/doctor"
	"github.com/firstcome/firstcome/internal/ledger"
	"github.com/firstcome/firstcome/test/services"
	"github.com/firstcome/firstcome/test/stage"
)

// newSynchronous returns a PostgreSQL primary that confirms a commit only when its standby has it.
func newSynchronous(t *testing.T) *pair {
	t.Helper()
	p := newPair(t, services.PostgreSQL)
	stage.Must(t, p.standby.Synchronize(t.Context()))
	return p
}

// unconfirmed returns how many commits wait for the standby.
func (p *pair) unconfirmed(t *testing.T) int {
	t.Helper()
	n, err := p.primary.Unconfirmed(t.Context())
	stage.Must(t, err)
	return n
}

// claimUnconfirmed claims for a user while no standby confirms, and returns when the commit waits. end has the caller
// give up, and returns the claim's error.
func (p *pair) claimUnconfirmed(t *testing.T, l *ledger.Ledger, id firstcome.CampaignID, user firstcome.UserID) (end func() error) {
	t.Helper()
	before := p.unconfirmed(t)
	ctx, cancel := context.WithCancel(t.Context())
	claimed := make(chan error, 1)
	go func() { claimed <- stage.Err(l.Gate.Claim(ctx, id, users(user))) }()
	for p.unconfirmed(t) <= before {
		if len(claimed) > 0 {
			t.Fatalf("the claim does not wait: %v", <-claimed)
		}
	}
	return func() error {
		cancel()
		return <-claimed
	}
}

// TestF58NobodyReadsACouponBeforeTheStandbyHasIt gives up a COMMIT that waits for a synchronous standby, in each way
// in which a node may. A cancelled COMMIT would stay on the primary, for all to see.
func TestF58NobodyReadsACouponBeforeTheStandbyHasIt(t *testing.T) {
	t.Parallel()
	for what, giveUp := range map[string]func(end func() error, proxy *services.Proxy, stop func()) error{
		"the caller's time is over": func(end func() error, _ *services.Proxy, _ func()) error { return end() },
		"the connection breaks": func(end func() error, proxy *services.Proxy, _ func()) error {
			proxy.Cut()
			proxy.Heal()
			return end()
		},
		"the node stops": func(end func() error, _ *services.Proxy, stop func()) error {
			err := end()
			stop()
			return err
		},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			p := newSynchronous(t)
			l, stop := serve(t, p.name, ledger.Options{})
			create(t, l, "c", 10)
			claim(t, l.Gate, "c", "a")
			direct := reader(t, p.first)
			stage.Must(t, p.standby.Stop())
			end := p.claimUnconfirmed(t, l, "c", "b")
			if err := giveUp(end, p.proxy, stop); err == nil {
				t.Error("the claim is answered")
			}
			for range 20 { // a cancel request needs a moment
				if _, err := direct.Gate.CouponOf(t.Context(), "c", "b"); !errors.Is(err, firstcome.ErrNoCoupon) {
					t.Errorf("b reads: %v", err)
				}
				if wallet, err := direct.Reads.Wallet(t.Context(), "b", "", 10); err != nil || len(wallet) > 0 {
					t.Errorf("b's wallet has %+v, %v", wallet, err)
				}
				if s, all := status(t, direct), allCoupons(t, direct); s.Issued != 1 || s.Position != 1 || len(all) != 1 {
					t.Errorf("the campaign has %+v, and %d coupons", s, len(all))
				}
				stage.Same(t, "commits that wait", 1, p.unconfirmed(t))
			}
			stage.Must(t, p.standby.Restart(t.Context()))
			stage.Same(t, "the standby is back", "already_issued:1 already_issued:2 issued:3", claim(t, start(t, p.first, nil).Gate, "c", "a", "b", "c"))
			if log := p.primary.Log(); strings.Contains(log, "cancel") {
				t.Errorf("the server was told to cancel:\n%s", log)
			}
		})
	}
}

// TestF58AFailoverLosesNoCouponThatSomebodyWasTold kills the primary while a COMMIT waits.
func TestF58AFailoverLosesNoCouponThatSomebodyWasTold(t *testing.T) {
	t.Parallel()
	p := newSynchronous(t)
	l := start(t, p.name, nil)
	create(t, l, "c", 10)
	stage.Same(t, "told", "issued:1", claim(t, l.Gate, "c", "a"))
	stage.Must(t, p.standby.Stop())
	if err := p.claimUnconfirmed(t, l, "c", "b")(); err == nil {
		t.Error("the claim is answered")
	}
	stage.Must(t, p.primary.Kill())
	stage.Must(t, p.standby.Restart(t.Context()))
	stage.Must(t, p.standby.Promote(t.Context()))
	p.lead(p.standby.Server)
	stage.Same(t, "at the new primary", "already_issued:1 issued:2 issued:3", claim(t, l.Gate, "c", "a", "c", "b"))
}

// TestF58CommitsThatWaitAreBounded claims of more campaigns than a node may have connections that write.
func TestF58CommitsThatWaitAreBounded(t *testing.T) {
	t.Parallel()
	const most = 16 // docs/limits.md
	p := newSynchronous(t)
	l := start(t, p.first, nil)
	id := func(n int) firstcome.CampaignID { return firstcome.CampaignID(fmt.Sprint("c-", n)) }
	for n := range most + 3 {
		create(t, l, id(n), 10)
	}
	stage.Must(t, p.standby.Stop())
	for n := range most {
		if err := p.claimUnconfirmed(t, l, id(n), "a")(); err == nil {
			t.Errorf("the claim of campaign %d is answered", n)
		}
		stage.Same(t, "commits that wait", n+1, p.unconfirmed(t))
	}
	for n := most; n < most+3; n++ {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		err := stage.Err(l.Gate.Claim(ctx, id(n), users("a")))
		cancel()
		if !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "has not answered COMMIT") {
			t.Errorf("campaign %d: %v", n, err)
		}
	}
	stage.Same(t, "commits that wait", most, p.unconfirmed(t))
	stage.Must(t, p.standby.Restart(t.Context()))
	for n := range most + 3 {
		stage.Same(t, "the standby is back", map[bool]string{true: "already_issued:1", false: "issued:1"}[n < most], claim(t, l.Gate, id(n), "a"))
	}
}

// TestF58AStandbyThatIsAwayIsFound examines a server with a synchronous standby.
func TestF58AStandbyThatIsAwayIsFound(t *testing.T) {
	t.Parallel()
	const what = "synchronous standby"
	p := newSynchronous(t)
	examine(t, p.first).Want(t, doctor.OK, what)
	examine(t, p.first+"&synchronous_commit=local").Want(t, doctor.Fail, what)
	blind := services.User(t, p.first)
	if found := examine(t, blind)[what]; found.Grade != doctor.Warn || !strings.Contains(found.Found, "unknown") {
		t.Errorf("a user without pg_monitor finds %+v", found)
	}
	execute(t, services.Beside(t, p.first), `ALTER SYSTEM SET synchronous_standby_names = 'ANY 2 (walreceiver, other)'`, `SELECT pg_reload_conf()`)
	stage.Await(t, "one of two", doctor.Warn, func() doctor.Grade { return examine(t, p.first)[what].Grade })
	stage.Must(t, p.standby.Synchronize(t.Context()))
	stage.Await(t, "one of one", doctor.OK, func() doctor.Grade { return examine(t, p.first)[what].Grade })
	stage.Must(t, p.standby.Stop())
	for _, name := range []string{p.first, blind} {
		stage.Await(t, "none", doctor.Warn, func() doctor.Grade { return examine(t, name)[what].Grade })
	}
	if found := examine(t, blind)[what]; strings.Contains(found.Found, "unknown") {
		t.Errorf("a user without pg_monitor sees that no standby is there, and finds %+v", found)
	}
	execute(t, services.Beside(t, p.primary.URL()), `ALTER SYSTEM RESET synchronous_standby_names`, `SELECT pg_reload_conf()`)
	stage.Await(t, "none is named", "", func() string { return examine(t, p.first)[what].What })
}
