//go:build !check

package redis_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/gate"
	"github.com/firstcome/firstcome/internal/redis"
	"github.com/firstcome/firstcome/test/conform"
	"github.com/firstcome/firstcome/test/services"
	"github.com/firstcome/firstcome/test/stage"
)

// paced creates the campaign c with a line. A pace of 0 means as fast as the gate takes them.
func (s subject) paced(t testing.TB, quantity, perSecond int64) {
	t.Helper()
	stage.Must(t, s.Create(t.Context(), "c", withPace(quantity, perSecond)))
}

// withPace returns terms of a campaign with a line.
func withPace(quantity, perSecond int64) firstcome.Terms {
	return firstcome.Terms{Quantity: quantity, Pace: &firstcome.Pace{PerSecond: perSecond}}
}

// join lets so many users of a crowd join.
func join(t testing.TB, g gate.Gate, from, count int) {
	t.Helper()
	decisions, err := g.Claim(t.Context(), "c", crowd(from, count))
	stage.Must(t, err)
	for n, d := range decisions {
		if d.Outcome != firstcome.Waiting {
			t.Fatalf("user %d is answered %s", from+n, d.Outcome)
		}
	}
}

// serveAll serves c until no user is in line.
func serveAll(t testing.TB, g gate.Gate) {
	t.Helper()
	stage.Await(t, "an empty line", int64(0), func() int64 {
		served, err := g.Serve(t.Context(), "c", 7)
		stage.Must(t, err)
		return served.Waiting
	})
}

// journaled returns the coupons in the journal of c by number. No recorder may have drained it.
func journaled(t testing.TB, g gate.Gate) (all []firstcome.Coupon) {
	t.Helper()
	stage.Must(t, g.(*node).Unrecorded(t.Context(), "c", func(c firstcome.Coupon) error {
		all = append(all, c)
		return nil
	}))
	return all
}

// keepsPlaces fails unless numbers have the order of tickets, and the counters of each generation fit the coupons that name it. No recorder may have
// drained the journal, and no more generations may have ended than the gate keeps.
func keepsPlaces(t testing.TB, g gate.Gate) gate.LineState {
	t.Helper()
	var last firstcome.Coupon
	served := map[int64]int64{}
	for n, c := range journaled(t, g) {
		if c.Number != int64(n+1) {
			t.Fatalf("number %d stands where number %d should", c.Number, n+1)
		}
		if c.Ticket == 0 {
			continue
		}
		if c.Generation < last.Generation || c.Generation == last.Generation && c.Ticket <= last.Ticket {
			t.Errorf("number %d is of the ticket %d.%d, behind that of %d.%d", c.Number, c.Generation, c.Ticket, last.Generation, last.Ticket)
		}
		served[c.Generation]++
		last = c
	}
	state, err := g.LineOf(t.Context(), "c")
	stage.Must(t, err)
	for _, p := range state.Past {
		if left := p.LastTicket - p.Served - p.Waiting; left < 0 || p.Served < served[p.Generation] {
			t.Errorf("generation %d has %d coupons of tickets: %+v", p.Generation, served[p.Generation], p)
		}
	}
	if l := state.Line; l.Left() < 0 || l.Served < served[l.Generation] {
		t.Errorf("generation %d has %d coupons of tickets: %+v", l.Generation, served[l.Generation], l)
	}
	return state
}

// serving lets each gate serve c repeatedly, until the returned function is called.
func serving(t testing.TB, gates []gate.Gate, limit int) (stop func()) {
	var all sync.WaitGroup
	var done atomic.Bool
	for _, g := range gates {
		all.Go(func() {
			for !done.Load() {
				if _, err := g.Serve(context.Background(), "c", limit); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	return func() {
		done.Store(true)
		all.Wait()
	}
}

// TestF73P9EverybodyInLineIsServedInOrderWhateverElseHappens lets users join, repeat and leave, and an operator issue directly, while three nodes
// serve.
func TestF73P9EverybodyInLineIsServedInOrderWhateverElseHappens(t *testing.T) {
	ctx := context.Background()
	s := newSubject(t, services.Redis.Database(t), 3, false)
	s.paced(t, 100, 0)
	stop := serving(t, s.Gates, 3)
	all := crowd(0, 120)
	left, direct := make([]error, len(all)), make([]firstcome.Outcome, len(all))
	var users sync.WaitGroup
	for n, user := range all {
		users.Go(func() {
			g := s.Gates[n%3]
			d, err := g.Claim(ctx, "c", []firstcome.UserID{user, user})
			if err != nil || d[0].Outcome == firstcome.Waiting && d[1].Place.Ticket != d[0].Place.Ticket {
				t.Errorf("%s: %v, %v", user, d, err)
			}
			left[n] = errors.New("did not")
			switch n % 4 {
			case 0:
				left[n] = stage.Err(g.Leave(ctx, "c", user))
			case 1:
				d, err := g.Issue(ctx, gate.Order{Actor: "test"}, "c", []firstcome.UserID{user})
				if err != nil {
					t.Error(err)
					return
				}
				direct[n] = d[0].Outcome
			}
		})
	}
	users.Wait()
	stop()
	serveAll(t, s.Gates[0])
	if state := keepsPlaces(t, s.Gates[0]); state.Line.Waiting != 0 {
		t.Errorf("%d are in line", state.Line.Waiting)
	}
	for n, user := range all {
		_, err := s.Gates[0].CouponOf(ctx, "c", user)
		holds := err == nil
		if gone := left[n] == nil; gone && holds || errors.Is(left[n], firstcome.ErrServed) != (holds && n%4 == 0) {
			t.Errorf("%s left: %v, and has a coupon: %v", user, left[n], err)
		}
		if direct[n].HasCoupon() && !holds {
			t.Errorf("%s was told %v and has no coupon", user, direct[n])
		}
	}
}

// TestF74NobodyIsSentAwayWhileACouponIsLeft voids coupons and raises the quantity, while three nodes serve the last coupons and users join.
func TestF74NobodyIsSentAwayWhileACouponIsLeft(t *testing.T) {
	ctx := context.Background()
	s := newSubject(t, services.Redis.Database(t), 3, false)
	s.paced(t, 30, 0)
	join(t, s.Gates[0], 0, 60) // more people than coupons
	stop := serving(t, s.Gates, 1)
	for n := range 40 {
		if _, err := s.Gates[n%3].Claim(ctx, "c", crowd(100+n, 1)); err != nil {
			t.Error(err)
		}
		if n%8 == 1 {
			if err := s.Void(ctx, "c", int64(n/4+1)); err != nil && !errors.Is(err, firstcome.ErrNoCoupon) {
				t.Error(err)
			}
		}
		if n%10 == 1 {
			stage.Must(t, s.SetTerms(ctx, "c", func(t *firstcome.Terms) { t.Quantity++ }))
		}
	}
	stop()
	more := 200
	stage.Await(t, "every coupon in force, and nobody in line", [2]int64{34, 0}, func() [2]int64 {
		more++
		if _, err := s.Gates[1].Claim(ctx, "c", crowd(more, 1)); err != nil {
			t.Error(err)
		}
		if _, err := s.Gates[2].Serve(ctx, "c", 9); err != nil {
			t.Error(err)
		}
		state, err := s.Gates[0].LineOf(ctx, "c")
		stage.Must(t, err)
		return [2]int64{state.InForce, state.Line.Waiting}
	})
	state := keepsPlaces(t, s.Gates[0])
	if len(state.Past) == 0 {
		t.Error("nobody was sent away")
	}
	for _, p := range state.Past {
		if p.Reason != firstcome.SoldOut.String() {
			t.Errorf("a generation ended %s: %+v", p.Reason, p)
		}
	}
}

// TestF75AServiceBesideAChangeGoesByWhichCameFirst makes each change while three nodes serve. The line after the change shows whether places were
// kept.
func TestF75AServiceBesideAChangeGoesByWhichCameFirst(t *testing.T) {
	for what, c := range map[string]struct {
		change func(ctx context.Context, s subject) error
		ends   string // why the generation ends
		stands bool   // whether the line stands still after the change
	}{
		"pause": {func(ctx context.Context, s subject) error { return s.Change(ctx, "c", "pause") }, "", true},
		"close": {func(ctx context.Context, s subject) error { return s.Change(ctx, "c", "close") }, "closed", false},
		"no pace": {func(ctx context.Context, s subject) error {
			return s.SetTerms(ctx, "c", func(t *firstcome.Terms) { t.Pace = nil })
		}, "", false},
		"a later opening": {func(ctx context.Context, s subject) error {
			return s.SetTerms(ctx, "c", func(t *firstcome.Terms) { t.OpensAt = time.Now().Add(time.Hour) })
		}, "", true},
	} {
		t.Run(what, func(t *testing.T) {
			s := newSubject(t, services.Redis.Database(t), 3, false)
			s.paced(t, firstcome.Unlimited, firstcome.MaxPace)
			const people = 2000
			for n := 0; n < people; n += 500 {
				join(t, s.Gates[0], n, 500)
			}
			stop := serving(t, s.Gates, 1)
			stage.Await(t, "the first service", true, func() bool { return len(journaled(t, s.Gates[0])) > 0 })
			stage.Must(t, c.change(t.Context(), s))
			behind := keepsPlaces(t, s.Gates[0])
			if !c.stands && c.ends == "" {
				stop()
				serveAll(t, s.Gates[0])
			} else {
				stop()
			}
			end := keepsPlaces(t, s.Gates[0])
			coupons := int64(len(journaled(t, s.Gates[0])))
			switch {
			case c.ends != "":
				if len(end.Past) != 1 || end.Past[0].Reason != c.ends || end.Past[0].Served != coupons || end.Past[0].Waiting != people-coupons {
					t.Errorf("%d coupons, and the generations that ended are %+v", coupons, end.Past)
				}
			case len(end.Past) > 0:
				t.Errorf("a generation ended: %+v", end.Past)
			case c.stands:
				if diff := cmp.Diff(behind.Line, end.Line); diff != "" || end.Line.Waiting != people-coupons {
					t.Errorf("the line of %d people with %d coupons moved (-before +after):\n%s", people, coupons, diff)
				}
			case coupons != people:
				t.Errorf("%d of %d were served", coupons, people)
			}
		})
	}
}

// TestF72TheLineGoesOnWhereverTheClockGoes makes Redis's clock jump an hour forward and back while a line is served.
func TestF72TheLineGoesOnWhereverTheClockGoes(t *testing.T) {
	s := newSubject(t, services.Redis.Database(t), 1, true)
	clock := conform.Epoch
	s.SetClock(clock)
	s.paced(t, 1000, 10)
	join(t, s.Gates[0], 0, 60)
	served := func(jump time.Duration) (coupons int) {
		clock = clock.Add(jump)
		for range 10 {
			s.SetClock(clock)
			served, err := s.Gates[0].Serve(t.Context(), "c", 99)
			stage.Must(t, err)
			coupons += len(served.Coupons)
			clock = clock.Add(100 * time.Millisecond)
		}
		return coupons
	}
	for _, jump := range []time.Duration{0, time.Hour, -2 * time.Hour, time.Hour} {
		if n := served(jump); n < 8 || n > 11 {
			t.Errorf("after a jump of %v %d are served in a second, at 10 a second", jump, n)
		}
	}
	keepsPlaces(t, s.Gates[0])
}

// TestF78AFullLineRefusesNewcomersAndHurtsNobodyInIt fills a line of three.
func TestF78AFullLineRefusesNewcomersAndHurtsNobodyInIt(t *testing.T) {
	s := newShop(t, services.Redis.Database(t), 9, func(o *redis.Options) { o.MaxLine = 3 })
	s.apply(firstcome.Change{Version: 2, Kind: firstcome.ChangeTerms, Terms: withPace(9, 0)})
	users := crowd(0, 5)
	s.want(s.gate, []firstcome.UserID{users[0], users[1], users[2], users[3], users[0], users[4]}, "waiting", "waiting", "waiting", "line_full", "waiting", "line_full")
	stage.Must(t, stage.Err(s.gate.Leave(t.Context(), "c", users[1])))
	s.want(s.gate, []firstcome.UserID{users[3], users[2], users[1]}, "waiting", "waiting", "line_full")
	serveAll(t, s.gate)
	s.want(s.gate, []firstcome.UserID{users[0], users[2], users[3], users[1]}, "already_issued:1", "already_issued:2", "already_issued:3", "waiting")
	keepsPlaces(t, s.gate)
}

// TestAFullBacklogStopsServingAndNotJoining has a backlog with room for two unrecorded coupons.
func TestAFullBacklogStopsServingAndNotJoining(t *testing.T) {
	s := newShop(t, services.Redis.Database(t), 9, func(o *redis.Options) { o.Backlog = 2 })
	s.apply(firstcome.Change{Version: 2, Kind: firstcome.ChangeTerms, Terms: withPace(9, 0)})
	join(t, s.gate, 0, 3)
	for _, want := range []int{2, 0} {
		served, err := s.gate.Serve(t.Context(), "c", 9)
		if err != nil || len(served.Coupons) != want || served.Waiting != 1 || served.Again != 0 {
			t.Errorf("served %+v, %v", served, err)
		}
	}
	join(t, s.gate, 3, 2)
	p := stage.NewLedger("c")
	s.drain(s.journal(), p.Take)
	p.WaitFor(t, 2)
	s.drained(2)
	if served, err := s.gate.Serve(t.Context(), "c", 9); err != nil || len(served.Coupons) != 2 || served.Coupons[0].Ticket != 3 {
		t.Errorf("served %+v, %v", served, err)
	}
}

// TestThreeGatesKeepThePaceOfOne lets three nodes serve at every tick of one clock. In any span they issue at most the pace and a bucket, and over a
// longer time no less than the pace.
func TestThreeGatesKeepThePaceOfOne(t *testing.T) {
	s := newSubject(t, services.Redis.Database(t), 3, true)
	clock := conform.Epoch
	s.SetClock(clock)
	const perSecond, bucket, seconds = 500, 50, 3
	s.paced(t, firstcome.Unlimited, perSecond)
	for n := 0; n < 2000; n += 500 {
		join(t, s.Gates[0], n, 500)
	}
	var at []time.Time // of each coupon
	for tick := 0; clock.Before(conform.Epoch.Add(seconds * time.Second)); tick++ {
		for _, g := range s.Gates {
			served, err := g.Serve(t.Context(), "c", 99)
			stage.Must(t, err)
			for range served.Coupons {
				at = append(at, clock)
			}
		}
		clock = clock.Add(time.Duration(7+tick%13) * time.Millisecond) // sometimes no node serves for a while
		if tick%29 == 0 {
			clock = clock.Add(60 * time.Millisecond)
		}
		s.SetClock(clock)
	}
	if least := perSecond * seconds * 98 / 100; len(at) < least {
		t.Errorf("%d were served in %d s, at %d a second", len(at), seconds, perSecond)
	}
	for from := range at {
		to, _ := slices.BinarySearchFunc(at, at[from].Add(time.Second), time.Time.Compare)
		if n := to - from; n > perSecond+bucket {
			t.Fatalf("%d were served in the second from %v, at %d a second", n, at[from], perSecond)
		}
	}
	keepsPlaces(t, s.Gates[0])
}

// TestALinesWayToTheLedgerSaysWhichTicketAndWhatEnded drains the coupons of a line.
func TestALinesWayToTheLedgerSaysWhichTicketAndWhatEnded(t *testing.T) {
	s, p := newShop(t, services.Redis.Database(t), 3), stage.NewLedger("c")
	s.apply(firstcome.Change{Version: 2, Kind: firstcome.ChangeTerms, Terms: withPace(3, 0)})
	join(t, s.gate, 0, 5)
	stage.Must(t, stage.Err(s.gate.Leave(t.Context(), "c", "user-1")))
	serveAll(t, s.gate)
	state := keepsPlaces(t, s.gate)
	s.drain(s.journal(), p.Take)
	p.WaitFor(t, 3)
	s.drained(3)
	var got []string
	coupons := p.Coupons("c")
	for _, number := range slices.Sorted(maps.Keys(coupons)) {
		c := coupons[number]
		got = append(got, fmt.Sprintf("%d %s %d.%d", c.Number, c.User, c.Generation, c.Ticket))
	}
	if diff := cmp.Diff([]string{"1 user-0 1.1", "2 user-2 1.3", "3 user-3 1.4"}, got); diff != "" {
		t.Errorf("the ledger has (-want +got):\n%s", diff)
	}
	told, err := p.LineOf(t.Context(), "c")
	if err != nil || len(told.Past) != 1 || told.Line.Generation != 2 {
		t.Fatalf("the ledger knows %+v, %v", told, err)
	}
	if diff := cmp.Diff(state.Past, told.Past); diff != "" {
		t.Errorf("of what ended the ledger has another word than the gate (-gate +ledger):\n%s", diff)
	}
}

// TestTheLedgerHearsOfALineWhosePaceIsTakenAway takes the pace away before anybody was served. Nodes that start later find the line by what the
// ledger has of it.
func TestTheLedgerHearsOfALineWhosePaceIsTakenAway(t *testing.T) {
	s, p := newShop(t, services.Redis.Database(t), 9), stage.NewLedger("c")
	s.apply(firstcome.Change{Version: 2, Kind: firstcome.ChangeTerms, Terms: withPace(9, 1)})
	join(t, s.gate, 0, 3)
	s.apply(firstcome.Change{Version: 3, Kind: firstcome.ChangeTerms, Terms: firstcome.Terms{Quantity: 9}})
	s.drain(s.journal(), p.Take)
	stage.Await(t, "the line in the ledger", int64(3), func() int64 {
		told, err := p.LineOf(t.Context(), "c")
		stage.Must(t, err)
		return told.Line.Waiting
	})
	s.drained(0)
}

// TestTheLedgerHearsHowALineEndedWhosePaceIsTakenAway uses one change that takes the pace away and ends the generation.
func TestTheLedgerHearsHowALineEndedWhosePaceIsTakenAway(t *testing.T) {
	s, p := newShop(t, services.Redis.Database(t), 9), stage.NewLedger("c")
	s.apply(firstcome.Change{Version: 2, Kind: firstcome.ChangeTerms, Terms: withPace(9, 0)})
	join(t, s.gate, 0, 3)
	stage.Must(t, stage.Err(s.gate.Serve(t.Context(), "c", 1)))
	s.apply(firstcome.Change{Version: 3, Kind: firstcome.ChangeTerms, Terms: firstcome.Terms{Quantity: 1}})
	state := keepsPlaces(t, s.gate)
	s.drain(s.journal(), p.Take)
	s.drained(1)
	told, err := p.LineOf(t.Context(), "c")
	stage.Must(t, err)
	if diff := cmp.Diff(state.Past, told.Past); diff != "" || len(state.Past) != 1 || told.Line.Waiting != 0 {
		t.Errorf("of what ended the ledger has another word than the gate, and the line is %+v (-gate +ledger):\n%s", told.Line, diff)
	}
}
