package ledger_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/gate"
	"github.com/firstcome/firstcome/internal/ledger"
	"github.com/firstcome/firstcome/test/conform"
	"github.com/firstcome/firstcome/test/stage"
)

// TestF73P9EverybodyInLineIsServedInOrderWhateverElseHappens has users join, ask again and leave, and an operator issue directly,
// while every node serves.
func TestF73P9EverybodyInLineIsServedInOrderWhateverElseHappens(t *testing.T) {
	nodesOnEach(t, func(t *testing.T, nodes []*ledger.Ledger) {
		ctx := context.Background()
		paced(t, nodes[0], 100, 0)
		var servers sync.WaitGroup
		var crowd errgroup.Group
		crowd.SetLimit(8) // all of them want one row
		var done atomic.Bool
		for _, l := range nodes {
			servers.Go(func() {
				for !done.Load() {
					if err := inTime(func() error { return stage.Err(l.Gate.Serve(ctx, "c", 3)) }); err != nil {
						t.Error(err)
						return
					}
				}
			})
		}
		all := people(120)
		left := make([]error, len(all))
		direct := make([]firstcome.Outcome, len(all))
		for n, user := range all {
			crowd.Go(func() error {
				l := nodes[n%len(nodes)]
				var d []firstcome.Decision
				claim := func() (err error) { d, err = l.Gate.Claim(ctx, "c", users(user, user)); return err }
				if err := inTime(claim); err != nil || d[0].Outcome == firstcome.Waiting && d[1].Place.Ticket != d[0].Place.Ticket {
					t.Errorf("%s: %v, %v", user, d, err)
				}
				left[n] = errors.New("did not")
				switch n % 4 {
				case 0:
					left[n] = inTime(func() error { return stage.Err(l.Gate.Leave(ctx, "c", user)) })
				case 1:
					issue := func() (err error) {
						d, err = l.Gate.Issue(ctx, gate.Order{Actor: "test"}, "c", users(user))
						return err
					}
					if err := inTime(issue); err != nil {
						return err
					}
					direct[n] = d[0].Outcome
				}
				return nil
			})
		}
		if err := crowd.Wait(); err != nil {
			t.Error(err)
		}
		done.Store(true)
		servers.Wait()
		serveAll(t, nodes[0])
		state := keepsPlaces(t, nodes[0])
		stage.Same(t, "in line", int64(0), state.Line.Waiting)
		for n, user := range all {
			_, err := nodes[0].Gate.CouponOf(ctx, "c", user)
			holds := err == nil
			if gone := left[n] == nil; gone && holds || errors.Is(left[n], firstcome.ErrServed) != (holds && n%4 == 0) {
				t.Errorf("%s left: %v, and has a coupon: %v", user, left[n], err)
			}
			if direct[n].HasCoupon() && !holds {
				t.Errorf("%s was told %v and has no coupon", user, direct[n])
			}
		}
	})
}

// TestF74NobodyIsSentAwayWhileACouponIsLeft has coupons voided and the quantity raised while every node serves the last ones and
// users join.
func TestF74NobodyIsSentAwayWhileACouponIsLeft(t *testing.T) {
	nodesOnEach(t, func(t *testing.T, nodes []*ledger.Ledger) {
		ctx := context.Background()
		paced(t, nodes[0], 5, 0)
		_, err := nodes[0].Gate.Claim(ctx, "c", people(60)) // more than there will be coupons
		stage.Must(t, err)
		var all, servers sync.WaitGroup
		var done atomic.Bool
		for _, l := range nodes {
			servers.Go(func() {
				for !done.Load() {
					if err := inTime(func() error { return stage.Err(l.Gate.Serve(ctx, "c", 2)) }); err != nil {
						t.Error(err)
						return
					}
				}
			})
		}
		for k, l := range nodes {
			all.Go(func() {
				for n, user := range people(40) {
					claim := func() error {
						return stage.Err(l.Gate.Claim(ctx, "c", users(firstcome.UserID(fmt.Sprint(user, "-", k)))))
					}
					if err := inTime(claim); err != nil {
						t.Error(err)
					}
					if n%8 == k {
						err := inTime(func() error { return stage.Err(l.Campaigns.Void(ctx, "test", "c", int64(n/4+1), "test")) })
						if err != nil && !errors.Is(err, firstcome.ErrNoCoupon) && !errors.Is(err, firstcome.ErrAlreadyVoided) {
							t.Error(err)
						}
					}
					if n%10 == k {
						raise := func() error {
							return stage.Err(l.Campaigns.SetTerms(ctx, "test", "c", 0, func(t *firstcome.Terms) { t.Quantity++ }))
						}
						if err := inTime(raise); err != nil {
							t.Error(err)
						}
					}
				}
			})
		}
		all.Wait()
		done.Store(true)
		servers.Wait()
		serveAll(t, nodes[0])
		state := keepsPlaces(t, nodes[0])
		if full := state.InForce >= state.Campaign.Quantity; full && state.Line.Waiting > 0 {
			t.Errorf("every coupon is in force, and %d wait", state.Line.Waiting)
		}
		if len(state.Past) == 0 {
			t.Error("nobody was sent away")
		}
	})
}

// TestF72TheLineGoesOnWhereverTheClockGoes has the clock jump an hour forward and back while a line is served.
func TestF72TheLineGoesOnWhereverTheClockGoes(t *testing.T) {
	onEach(t, func(t *testing.T, name string) {
		var clock atomic.Int64
		clock.Store(conform.Epoch.UnixMicro())
		l := start(t, name, func() time.Time { return time.UnixMicro(clock.Load()) })
		paced(t, l, 1000, 10)
		_, err := l.Gate.Claim(t.Context(), "c", people(60))
		stage.Must(t, err)
		served := func(jump time.Duration, seconds int) (coupons int) {
			clock.Add(jump.Microseconds())
			for range seconds * 10 {
				s, err := l.Gate.Serve(t.Context(), "c", 99)
				stage.Must(t, err)
				coupons += len(s.Coupons)
				clock.Add(100_000)
			}
			return coupons
		}
		for _, jump := range []time.Duration{0, time.Hour, -2 * time.Hour, time.Hour} {
			if n := served(jump, 1); n < 8 || n > 11 {
				t.Errorf("after a jump of %v %d are served in a second, at 10 a second", jump, n)
			}
		}
		keepsPlaces(t, l)
	})
}

// TestF78AFullLineRefusesNewcomersAndHurtsNobodyInIt fills a line of three.
func TestF78AFullLineRefusesNewcomersAndHurtsNobodyInIt(t *testing.T) {
	onEach(t, func(t *testing.T, name string) {
		l, _ := serve(t, name, ledger.Options{MaxLine: 3})
		paced(t, l, 9, 0)
		stage.Same(t, "joining", "waiting:0 waiting:0 waiting:0 Outcome(0):0 waiting:0 Outcome(0):0", claim(t, l.Gate, "c", "a", "b", "c", "d", "a", "e"))
		stage.Must(t, stage.Err(l.Gate.Leave(t.Context(), "c", "b")))
		stage.Same(t, "joining again", "waiting:0 waiting:0 Outcome(0):0", claim(t, l.Gate, "c", "d", "c", "b"))
		serveAll(t, l)
		stage.Same(t, "served", "already_issued:1 already_issued:2 already_issued:3 waiting:0", claim(t, l.Gate, "c", "a", "c", "d", "b"))
		keepsPlaces(t, l)
	})
}

// TestAPaceIsKeptByOneNodeAndByThree has nodes serve by the gate's clock, as often as they can.
func TestAPaceIsKeptByOneNodeAndByThree(t *testing.T) {
	nodesOnEach(t, func(t *testing.T, nodes []*ledger.Ledger) {
		const perSecond, people = 700, 600
		paced(t, nodes[0], 10_000, perSecond)
		var coupons []firstcome.Coupon
		for count, l := range nodes { // one node, two, three
			var crowd []firstcome.UserID
			for n := range people {
				crowd = append(crowd, firstcome.UserID(fmt.Sprint("u-", count, "-", n)))
			}
			_, err := l.Gate.Claim(t.Context(), "c", crowd)
			stage.Must(t, err)
			var all sync.WaitGroup
			for _, l := range nodes[:count+1] {
				all.Go(func() {
					for served := (gate.Served{Waiting: 1}); served.Waiting > 0; {
						var err error
						if served, err = l.Gate.Serve(context.Background(), "c", 99); err != nil {
							t.Error(err)
							return
						}
					}
				})
			}
			all.Wait()
			coupons = allCoupons(t, l)
			stage.Same(t, "coupons", (count+1)*people, len(coupons))
		}
		var issued []time.Time
		for _, c := range coupons {
			issued = append(issued, c.IssuedAt)
		}
		stage.KeepsPace(t, issued, perSecond)
		keepsPlaces(t, nodes[0])
	})
}
