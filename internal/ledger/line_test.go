package ledger_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/audit"
	"github.com/firstcome/firstcome/internal/flow"
	"github.com/firstcome/firstcome/internal/ledger"
	"github.com/firstcome/firstcome/test/conform"
	"github.com/firstcome/firstcome/test/services"
	"github.com/firstcome/firstcome/test/stage"
)

// paced makes the campaign c with a line; 0 a second is as fast as it goes.
func paced(t *testing.T, l *ledger.Ledger, quantity, perSecond int64) {
	t.Helper()
	stage.Must(t, l.Create(t.Context(), "test", "c", withPace(quantity, perSecond)))
}

// withPace returns terms of a campaign with a line.
func withPace(quantity, perSecond int64) firstcome.Terms {
	paced := terms(quantity)
	paced.Pace = &firstcome.Pace{PerSecond: perSecond}
	return paced
}

// people returns so many users.
func people(n int) []firstcome.UserID { return stage.Users("u", 100, n) }

// nodesOnEach runs a test with nodes on one ledger: three on a server, and one on SQLite.
func nodesOnEach(t *testing.T, test func(t *testing.T, nodes []*ledger.Ledger)) {
	onEach(t, func(t *testing.T, name string) {
		nodes := []*ledger.Ledger{start(t, name, nil)}
		for len(nodes) < 3 && ledger.OnServer(name) {
			nodes = append(nodes, start(t, name, nil))
		}
		test(t, nodes)
	})
}

// keepsPlaces audits c, and holds the order of its coupons against that of its tickets.
func keepsPlaces(t *testing.T, l *ledger.Ledger) flow.LineState {
	t.Helper()
	var report audit.Report
	stage.Must(t, l.AtOnce(t.Context(), func(b *ledger.Books) (err error) {
		secret := stage.Secret()
		report, err = audit.Ledger(t.Context(), b.Source(), "c", &secret)
		return err
	}))
	for _, b := range report.Breaches.Shown {
		t.Errorf("%s: %s", b.Promise, b.Text)
	}
	var last firstcome.Coupon
	for _, c := range allCoupons(t, l) {
		if c.Ticket > 0 && (c.Generation < last.Generation || c.Generation == last.Generation && c.Ticket <= last.Ticket) {
			t.Errorf("number %d is of the ticket %d.%d, behind that of %d.%d", c.Number, c.Generation, c.Ticket, last.Generation, last.Ticket)
		} else if c.Ticket > 0 {
			last = c
		}
	}
	state, err := l.LineOf(t.Context(), "c")
	stage.Must(t, err)
	return state
}

// serveAll serves c until nobody waits or is sent away.
func serveAll(t *testing.T, l *ledger.Ledger) {
	t.Helper()
	for {
		served, err := l.Serve(t.Context(), "c", 7)
		stage.Must(t, err)
		if served.Waiting == 0 {
			return
		}
	}
}

// inTime does what may come too late, and again where it did: on a busy machine a transaction waits longer for a row than it
// may. Who asks again is told what was decided.
func inTime(do func() error) (err error) {
	for range 6 {
		var late interface{ Timeout() bool }
		if err = do(); !errors.As(err, &late) || !late.Timeout() {
			return err
		}
	}
	return err
}

// TestF73P9EverybodyInLineIsServedInOrderWhateverElseHappens has users join, ask again and leave, and an operator issue directly,
// while every node serves.
func TestF73P9EverybodyInLineIsServedInOrderWhateverElseHappens(t *testing.T) {
	nodesOnEach(t, func(t *testing.T, nodes []*ledger.Ledger) {
		ctx := context.Background()
		paced(t, nodes[0], 100, 0)
		var servers sync.WaitGroup
		var crowd errgroup.Group
		crowd.SetLimit(24) // all of them want one row
		var done atomic.Bool
		for _, l := range nodes {
			servers.Go(func() {
				for !done.Load() {
					if err := inTime(func() error { return stage.Err(l.Serve(ctx, "c", 3)) }); err != nil {
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
				claim := func() (err error) { d, err = l.Claim(ctx, "c", users(user, user)); return err }
				if err := inTime(claim); err != nil || d[0].Outcome == firstcome.Waiting && d[1].Place.Ticket != d[0].Place.Ticket {
					t.Errorf("%s: %v, %v", user, d, err)
				}
				left[n] = errors.New("did not")
				switch n % 4 {
				case 0:
					left[n] = inTime(func() error { return l.Leave(ctx, "c", user) })
				case 1:
					issue := func() (err error) { d, err = l.Issue(ctx, "test", "c", users(user)); return err }
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
			_, err := nodes[0].CouponOf(ctx, "c", user)
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
		_, err := nodes[0].Claim(ctx, "c", people(60)) // more than there will be coupons
		stage.Must(t, err)
		var all, servers sync.WaitGroup
		var done atomic.Bool
		for _, l := range nodes {
			servers.Go(func() {
				for !done.Load() {
					if _, err := l.Serve(ctx, "c", 2); err != nil {
						t.Error(err)
						return
					}
				}
			})
		}
		for k, l := range nodes {
			all.Go(func() {
				for n, user := range people(40) {
					if _, err := l.Claim(ctx, "c", users(firstcome.UserID(fmt.Sprint(user, "-", k)))); err != nil {
						t.Error(err)
					}
					if n%8 == k {
						_, err := l.Void(ctx, "test", "c", int64(n/4+1), "test")
						if err != nil && !errors.Is(err, firstcome.ErrNoCoupon) && !errors.Is(err, firstcome.ErrAlreadyVoided) {
							t.Error(err)
						}
					}
					if n%10 == k {
						_, err := l.SetTerms(ctx, "test", "c", 0, func(t *firstcome.Terms) { t.Quantity++ })
						stage.Must(t, err)
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

// TestF75AServiceBehindAChangeGoesByTheChange has a change of the row wait for the lock before the service, by hand: pause,
// close, no pace.
func TestF75AServiceBehindAChangeGoesByTheChange(t *testing.T) {
	onServers(t, func(t *testing.T, kind services.Kind) {
		nodes, name := nodesOn(t, kind, 2, 50)
		db := services.Beside(t, name)
		for change, want := range map[string]string{
			`paused = TRUE`:               "0, , 2",
			`closed = TRUE`:               "0, closed, 0",
			`pace = NULL`:                 "2, , 0",
			`opens_at = 9007199254740992`: "0, , 2",
			`quantity = 1`:                "1, sold_out, 0",
		} {
			id := firstcome.CampaignID("c-" + change[:4])
			stage.Must(t, nodes[0].Create(t.Context(), "test", id, withPace(9, 1000)))
			stage.Same(t, "in line", "waiting:0 waiting:0", claim(t, nodes[0], id, "a", "b"))
			hand := begin(t, db, `UPDATE campaigns SET `+change+` WHERE id = '`+string(id)+`'`)
			served := make(chan string, 1)
			go func() {
				s, err := nodes[1].Serve(context.Background(), id, 9)
				if err != nil {
					t.Error(err)
				}
				served <- fmt.Sprintf("%d, %s, %d", len(s.Coupons), s.Ended, s.Waiting)
			}()
			waitUntilBlocked(t, kind, db)
			stage.Must(t, hand.Commit())
			stage.Same(t, change, want, <-served)
		}
	})
}

// TestF71AServiceWhoseCommitIsUnknownIsDoneOnceOrNotAtAll has the reply of each statement of a service lost in turn, that of COMMIT among them: the next service goes on
// behind what was committed, and nobody is skipped or served twice.
func TestF71AServiceWhoseCommitIsUnknownIsDoneOnceOrNotAtAll(t *testing.T) {
	onServers(t, func(t *testing.T, kind services.Kind) {
		name := kind.Database(t)
		direct := start(t, name, nil)
		paced(t, direct, 1000, 0)
		proxy, far := through(t, name)
		l := start(t, far, nil)
		claims, err := direct.Claim(t.Context(), "c", people(200))
		stage.Must(t, err)
		stage.Same(t, "the last one's ticket", int64(200), claims[199].Place.Ticket)
		unknown, ended := 0, false
		for n, k := 1, 1; n <= 60 && !(ended && unknown > 0); n, k = n+1, k+1 { // see TestF52AVoidWhoseCommitIsUnknownIsNotRunAgain
			lost := proxy.DropReply(k)
			if _, err := l.Serve(t.Context(), "c", 3); err != nil {
				unknown++
			}
			select {
			case <-lost:
			default:
				ended, k = true, 0
			}
			proxy.Heal()
		}
		if unknown == 0 {
			t.Error("no service was unknown")
		}
		serveAll(t, direct)
		all := allCoupons(t, direct)
		stage.Same(t, "coupons", 200, len(all))
		for n, c := range all {
			if c.Ticket != int64(n+1) || c.User != people(200)[n] {
				t.Errorf("number %d is of the ticket %d, of %s", n+1, c.Ticket, c.User)
			}
		}
		keepsPlaces(t, direct)
	})
}

// TestF72TheLineGoesOnWhereverTheClockGoes has the clock jump an hour forward and back while a line is served.
func TestF72TheLineGoesOnWhereverTheClockGoes(t *testing.T) {
	onEach(t, func(t *testing.T, name string) {
		var clock atomic.Int64
		clock.Store(conform.Epoch.UnixMicro())
		l := start(t, name, func() time.Time { return time.UnixMicro(clock.Load()) })
		paced(t, l, 1000, 10)
		_, err := l.Claim(t.Context(), "c", people(60))
		stage.Must(t, err)
		served := func(jump time.Duration, seconds int) (coupons int) {
			clock.Add(jump.Microseconds())
			for range seconds * 10 {
				s, err := l.Serve(t.Context(), "c", 99)
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
		stage.Same(t, "joining", "waiting:0 waiting:0 waiting:0 Outcome(0):0 waiting:0 Outcome(0):0", claim(t, l, "c", "a", "b", "c", "d", "a", "e"))
		stage.Must(t, l.Leave(t.Context(), "c", "b"))
		stage.Same(t, "joining again", "waiting:0 waiting:0 Outcome(0):0", claim(t, l, "c", "d", "c", "b"))
		serveAll(t, l)
		stage.Same(t, "served", "already_issued:1 already_issued:2 already_issued:3 waiting:0", claim(t, l, "c", "a", "c", "d", "b"))
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
			_, err := l.Claim(t.Context(), "c", crowd)
			stage.Must(t, err)
			var all sync.WaitGroup
			for _, l := range nodes[:count+1] {
				all.Go(func() {
					for served := (flow.Served{Waiting: 1}); served.Waiting > 0; {
						var err error
						if served, err = l.Serve(context.Background(), "c", 99); err != nil {
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

// TestTheLineOfACampaignWithoutAPaceCostsNoStatement holds that tickets are looked up only where there is a line.
func TestTheLineOfACampaignWithoutAPaceCostsNoStatement(t *testing.T) {
	onServers(t, func(t *testing.T, kind services.Kind) {
		nodes, name := nodesOn(t, kind, 1, 5)
		rename := func(db *sql.DB, from, to string) {
			_, err := db.Exec(`ALTER TABLE ` + from + ` RENAME TO ` + to)
			stage.Must(t, err)
		}
		db := services.Beside(t, name)
		rename(db, "tickets", "hidden")
		defer rename(db, "hidden", "tickets")
		stage.Same(t, "claims", "issued:1 issued:2", claim(t, nodes[0], "c", "a", "b"))
		_, err := nodes[0].Void(t.Context(), "test", "c", 1, "test")
		stage.Must(t, err)
	})
}
