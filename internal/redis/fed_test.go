//go:build !check

package redis_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/gate"
	"github.com/firstcome/firstcome/internal/redis"
	"github.com/firstcome/firstcome/test/services"
	"github.com/firstcome/firstcome/test/stage"
)

// ofFeed returns terms of a campaign whose line is in a partition.
func ofFeed(quantity int64, partition int32) firstcome.Terms {
	return firstcome.Terms{Quantity: quantity, Pace: &firstcome.Pace{}, Feed: &firstcome.Feed{Topic: "id", Partition: partition}}
}

// fed makes c a campaign of a feed, whose line begins at an offset.
func (s *shop) fed(quantity, first int64) {
	s.t.Helper()
	s.apply(firstcome.Change{Version: 2, Kind: firstcome.ChangeTerms, Terms: ofFeed(quantity, 0)})
	stage.Must(s.t, stage.Err(s.gate.Begin(s.t.Context(), "c", *ofFeed(0, 0).Feed, 1, first)))
}

// turn serves users, the first of whom has a ticket of a generation.
func (s *shop) turn(generation, from int64, users ...firstcome.UserID) gate.Turned {
	s.t.Helper()
	turned, err := s.gate.ServeTurn(s.t.Context(), "c", gate.Turn{Generation: generation, From: from, Users: users})
	stage.Must(s.t, err)
	return turned
}

// TestTheLedgerHearsWhatBecameOfALineOfAFeed has three generations: one is sold out, one ends with another feed, and one goes on.
func TestTheLedgerHearsWhatBecameOfALineOfAFeed(t *testing.T) {
	s, p := newShop(t, services.Redis.Database(t), 2), stage.NewLedger("c")
	s.fed(2, 5)
	stage.Must(t, s.gate.LeaveOf(t.Context(), "c", "user-1", firstcome.Ticket{Generation: 1, Number: 2}))
	s.turn(1, 1, "user-0", "user-1", "", "user-2", "user-3")
	s.apply(firstcome.Change{Version: 3, Kind: firstcome.ChangeTerms, Terms: ofFeed(5, 0)})
	stage.Must(t, stage.Err(s.gate.Begin(t.Context(), "c", *ofFeed(0, 0).Feed, 2, 20)))
	s.apply(firstcome.Change{Version: 4, Kind: firstcome.ChangeTerms, Terms: ofFeed(5, 1)})
	stage.Must(t, stage.Err(s.gate.Begin(t.Context(), "c", *ofFeed(0, 1).Feed, 3, 0)))
	stage.Await(t, "stock that has left quarantine", int64(1), func() int64 { return int64(len(s.turn(3, 1, "user-3").Coupons)) })
	state, err := s.gate.LineOf(t.Context(), "c")
	stage.Must(t, err)
	s.drain(s.journal(), p.Take)
	p.WaitFor(t, 3)
	s.drained(3)
	var got []string
	coupons := p.Coupons("c")
	for _, number := range slices.Sorted(maps.Keys(coupons)) {
		c := coupons[number]
		got = append(got, fmt.Sprintf("%d %s %d.%d", c.Number, c.User, c.Generation, c.Ticket))
	}
	stage.Same(t, "the coupons", []string{"1 user-0 1.1", "2 user-2 1.4", "3 user-3 3.1"}, got)
	told, err := p.LineOf(t.Context(), "c")
	stage.Must(t, err)
	stage.Same(t, "what ended, by the gate and by the ledger", state.Past, told.Past)
	told.Line.Due = state.Line.Due // is not said
	stage.Same(t, "the line", state.Line, told.Line)
	for n, want := range []struct {
		reason string
		first  int64
	}{{"lost", 20}, {"sold_out", 5}} {
		if p := told.Past[n]; p.Reason != want.reason || p.First != want.first || !p.Begun {
			t.Errorf("generation %d ended as %+v", p.Generation, p)
		}
	}
}

// TestP9EveryTicketOfAFeedIsServedOnceWhoeverReadsIt has three nodes serve the same feed, each of which reads it on its own, while users leave and
// are issued directly.
func TestP9EveryTicketOfAFeedIsServedOnceWhoeverReadsIt(t *testing.T) {
	s := newShop(t, services.Redis.Database(t), firstcome.Unlimited)
	s.fed(firstcome.Unlimited, 0)
	feed := crowd(0, 300)
	for n := range feed {
		if n%7 == 3 {
			feed[n] = feed[n/2] // again
		}
	}
	gates := []*redis.Gate{s.gate, open(t, s.url), open(t, s.url)}
	var all sync.WaitGroup
	for n, g := range gates {
		all.Go(func() {
			var line firstcome.Line
			for line.ServedThrough < int64(len(feed)) {
				turn := gate.Turn{Generation: 1, From: line.Serving(), Users: feed[line.ServedThrough:]}
				turn.Users = turn.Users[:min(len(turn.Users), 3+n)]
				turned, err := g.ServeTurn(context.Background(), "c", turn)
				if err != nil {
					t.Error(err)
					return
				}
				line = turned.Line
			}
		})
	}
	left := map[firstcome.UserID]bool{}
	for n := 250; n < 300; n += 10 {
		user := feed[n]
		err := s.gate.LeaveOf(t.Context(), "c", user, firstcome.Ticket{Generation: 1, Number: int64(len(feed))})
		if left[user] = err == nil; err != nil && !errors.Is(err, firstcome.ErrServed) {
			t.Error(err)
		}
		stage.Must(t, stage.Err(s.gate.Issue(t.Context(), gate.Order{Actor: "test"}, "c", feed[n+1:n+2])))
	}
	all.Wait()
	served := map[firstcome.UserID]int64{}
	last := int64(0)
	for _, c := range journaled(t, s.gate) {
		if _, twice := served[c.User]; twice {
			t.Errorf("%s is served twice", c.User)
		}
		if served[c.User] = c.Ticket; c.Ticket == 0 {
			continue
		}
		if c.Ticket <= last || feed[c.Ticket-1] != c.User {
			t.Errorf("number %d of %s is of the ticket %d, behind the ticket %d", c.Number, c.User, c.Ticket, last)
		}
		last = c.Ticket
	}
	for _, user := range feed {
		if _, has := served[user]; has == left[user] {
			t.Errorf("%s left: %v, and is served: %v", user, left[user], has)
		}
	}
}

// TestF71ATurnWhoseAnswerIsLostIsDoneOnceAndTheNextGoesOn drops the reply to turns.
func TestF71ATurnWhoseAnswerIsLostIsDoneOnceAndTheNextGoesOn(t *testing.T) {
	at := services.Redis.Database(t)
	s := newShop(t, at, firstcome.Unlimited)
	s.fed(firstcome.Unlimited, 0)
	proxy := services.Through(t, address(t, at))
	through, err := proxy.URL(at)
	stage.Must(t, err)
	g := open(t, through)
	feed := crowd(0, 2000)
	line, lost := firstcome.Line{Generation: 1}, 0
	for lost < 10 && line.ServedThrough < 1900 {
		for err := errors.New("not yet"); err != nil; { // so that it is not the reply to a greeting
			err = errors.Join(g.Ping(t.Context()), g.Ping(t.Context()), g.Ping(t.Context()))
		}
		turn := gate.Turn{Generation: 1, From: line.Serving(), Users: feed[line.ServedThrough : line.ServedThrough+2]}
		proxy.DropReply(1)
		_, err := g.ServeTurn(t.Context(), "c", turn)
		proxy.Heal()
		if again := s.turn(1, turn.From, turn.Users...); err != nil && len(again.Coupons) == 0 {
			lost++
			line = again.Line
		} else {
			line = again.Line
		}
	}
	all := journaled(t, s.gate)
	for n, c := range all {
		if c.User != feed[n] || c.Ticket != int64(n+1) || c.Number != c.Ticket {
			t.Fatalf("coupon %d is %+v", n+1, c)
		}
	}
	if lost < 10 || int64(len(all)) != line.ServedThrough {
		t.Errorf("%d turns were lost behind their script, and %d coupons are of %d tickets", lost, len(all), line.ServedThrough)
	}
}

// fedCalls are what a node does to a campaign of a feed, whose ticket 1.2 is next.
func fedCalls(g *redis.Gate) map[string]func(context.Context) error {
	return map[string]func(context.Context) error{
		"a claim": func(ctx context.Context) error { return stage.Err(g.Claim(ctx, "c", crowd(5, 5))) },
		"a turn": func(ctx context.Context) error {
			return stage.Err(g.ServeTurn(ctx, "c", gate.Turn{Generation: 1, From: 2, Users: crowd(1, 3)}))
		},
		"a turn of a holder": func(ctx context.Context) error {
			return stage.Err(g.ServeTurn(ctx, "c", gate.Turn{Generation: 1, From: 2, Users: crowd(0, 1)}))
		},
		"a beginning": func(ctx context.Context) error { return stage.Err(g.Begin(ctx, "c", *ofFeed(0, 0).Feed, 1, 9)) },
		"a leave": func(ctx context.Context) error {
			return g.LeaveOf(ctx, "c", "user-1", firstcome.Ticket{Generation: 1, Number: 2})
		},
		"another feed": func(ctx context.Context) error {
			return stage.Err(g.Apply(ctx, firstcome.Change{Campaign: "c", Version: 3, Kind: firstcome.ChangeTerms, Terms: ofFeed(100, 1)}))
		},
		"who looks at a place": func(ctx context.Context) error {
			_, _, err := g.PlaceOf(ctx, "c", "user-1", firstcome.Ticket{Generation: 1, Number: 2})
			return err
		},
		"who looks at the line": func(ctx context.Context) error { return stage.Err(g.LineOf(ctx, "c")) },
	}
}

// newFedShop returns a shop of a feed in which user-9 has left and user-0 is served.
func newFedShop(t *testing.T, url string) *shop {
	s := newShop(t, url, 100)
	s.fed(100, 7)
	stage.Must(t, s.gate.LeaveOf(t.Context(), "c", "user-9", firstcome.Ticket{Generation: 1, Number: 10}))
	s.turn(1, 1, "user-0")
	return s
}

func TestF08AKeyOfALineOfAFeedOfAnotherTypeIsSeenBeforeTheFirstWrite(t *testing.T) {
	s := newFedShop(t, services.Redis.Database(t))
	for n, key := range keysOf {
		there, err := s.do("EXISTS", key).AsInt64()
		stage.Must(t, err)
		if there == 1 {
			s.do("RENAME", key, "kept")
		}
		s.do("SET", key, "somebody's")
		before := s.dump()
		for what, call := range fedCalls(s.gate) {
			if n == 2 && (strings.HasPrefix(what, "who looks") || what == "a beginning" || what == "a leave") {
				continue // it needs no journal
			}
			if err := call(t.Context()); err == nil || classOf(t, err) != redis.Fatal {
				t.Errorf("%s: %s got %v", key, what, err)
			}
			if diff := cmp.Diff(before, s.dump()); diff != "" {
				t.Errorf("%s: %s wrote something (-before +after):\n%s", key, what, diff)
			}
		}
		s.do("DEL", key)
		if there == 1 {
			s.do("RENAME", "kept", key)
		}
	}
}

// TestF08ARightThatIsTakenAwayLeavesALineOfAFeedWhole takes the rights to what scripts write away, one by one.
func TestF08ARightThatIsTakenAwayLeavesALineOfAFeedWhole(t *testing.T) {
	at := services.Redis.Database(t)
	s := newFedShop(t, at)
	as := services.User(t, at, strings.Fields(redis.Rights)...)
	user, err := url.Parse(as)
	stage.Must(t, err)
	owner := s.gate
	s.gate = open(t, as)
	looks := func() string {
		state, err := owner.LineOf(t.Context(), "c")
		stage.Must(t, err)
		left, err1 := s.do("HLEN", keysOf[4]).AsInt64()
		entries, err2 := s.do("XLEN", keysOf[2]).AsInt64()
		stage.Must(t, errors.Join(err1, err2))
		return fmt.Sprintf("%+v, of before %+v, %d in force; %d and %d entries", state.Line, state.Past, state.InForce, left, entries)
	}
	before := looks()
	for _, right := range []string{"xadd", "hset", "hdel"} {
		s.do("ACL", "SETUSER", user.User.Username(), "-"+right)
		for what, call := range fedCalls(s.gate) {
			if needs := map[string][]string{
				"a turn": {"xadd", "hset"}, "a turn of a holder": {"hset"}, "a leave": {"hset", "hdel"}, "another feed": {"xadd", "hset", "hdel"},
			}[what]; !slices.Contains(needs, right) {
				continue
			}
			if err := call(t.Context()); err == nil {
				t.Errorf("without %s %s was done", right, what)
			}
			if now := looks(); now != before {
				t.Errorf("without %s %s did half:\n%s\n%s", right, what, before, now)
			}
		}
		s.do("ACL", "SETUSER", user.User.Username(), "+"+right)
	}
}

// TestF07AFullRedisKeepsTheLineOfAFeedAndServesNobody fills Redis. Who claims joins all the same: the feed is elsewhere.
func TestF07AFullRedisKeepsTheLineOfAFeedAndServesNobody(t *testing.T) {
	server := services.Redis.Server(t)
	s := newShop(t, server.URL(), firstcome.Unlimited)
	s.apply(firstcome.Change{Version: 2, Kind: firstcome.ChangeTerms, Terms: ofFeed(100, 0)})
	s.do("CONFIG", "SET", "maxmemory", "1")
	s.want(s.gate, crowd(2, 3), "waiting", "waiting", "waiting")
	stage.Must(t, stage.Err(s.gate.Begin(t.Context(), "c", *ofFeed(0, 0).Feed, 1, 0)))
	for what, users := range map[string][]firstcome.UserID{"of users": crowd(0, 3), "of nobody": {""}} {
		if _, err := s.gate.ServeTurn(t.Context(), "c", gate.Turn{Generation: 1, From: 1, Users: users}); !errors.Is(err, firstcome.ErrBusy) {
			t.Errorf("a turn %s without memory got %v", what, err)
		}
	}
	stage.Must(t, s.gate.LeaveOf(t.Context(), "c", "user-1", firstcome.Ticket{Generation: 1, Number: 2}))
	s.do("CONFIG", "SET", "maxmemory", "0")
	turned := s.turn(1, 1, crowd(0, 3)...)
	if len(turned.Coupons) != 2 || turned.Over != 1 || turned.Line.ServedThrough != 3 {
		t.Errorf("served %+v", turned)
	}
}

// TestF71PartOfALineOfAFeedThatIsGoneIsLost deletes what a line needs behind the gate's back.
func TestF71PartOfALineOfAFeedThatIsGoneIsLost(t *testing.T) {
	for what, spoil := range map[string]func(*shop){
		"who left": func(s *shop) { s.do("DEL", keysOf[4]) },
		"counters": func(s *shop) { s.do("HSET", keysOf[0], "line", "1 3 0") },
		"the feed": func(s *shop) { s.do("HSET", keysOf[0], "line", "1 1 1 1 0 0 0 0 id 0 7") },
		"a holder": func(s *shop) { s.do("DEL", keysOf[1]) },
	} {
		t.Run(what, func(t *testing.T) {
			s := newFedShop(t, services.Redis.Database(t))
			spoil(s)
			s.refuses(fedCalls(s.gate), gate.ErrLost)
		})
	}
}

// TestF77WhatMayBeAnOlderLineOfAFeedIsNeitherToldNorServed has another run of Redis have decided last, or another layout written last.
func TestF77WhatMayBeAnOlderLineOfAFeedIsNeitherToldNorServed(t *testing.T) {
	s := newFedShop(t, services.Redis.Database(t))
	for field, want := range map[string]error{"run": gate.ErrUnverified, "layout": firstcome.ErrGateMismatch} {
		was, err := s.do("HGET", keysOf[0], field).ToString()
		stage.Must(t, err)
		s.do("HSET", keysOf[0], field, "99")
		s.refuses(fedCalls(s.gate), want)
		s.do("HSET", keysOf[0], field, was)
	}
}

func TestARetiredCampaignOfAFeedLeavesNoKey(t *testing.T) {
	s := newFedShop(t, services.Redis.Database(t))
	stage.Must(t, s.gate.Retire(t.Context(), "c"))
	if n, err := s.do(append([]string{"EXISTS"}, keysOf...)...).AsInt64(); err != nil || n > 0 {
		t.Errorf("%d keys are left, %v", n, err)
	}
}

// TestWhoLeftAGenerationOfAFeedLeavesNothingBehind ends generations by each way, and looks for who left them.
func TestWhoLeftAGenerationOfAFeedLeavesNothingBehind(t *testing.T) {
	for what, end := range map[string]func(*shop){
		"sold out": func(s *shop) { s.turn(1, 2, crowd(1, 99)...) },
		"a close":  func(s *shop) { s.apply(firstcome.Change{Version: 3, Kind: firstcome.ChangeClose}) },
		"another feed": func(s *shop) {
			s.apply(firstcome.Change{Version: 3, Kind: firstcome.ChangeTerms, Terms: ofFeed(100, 1)})
		},
		"a lower quantity": func(s *shop) {
			s.apply(firstcome.Change{Version: 3, Kind: firstcome.ChangeTerms, Terms: ofFeed(1, 0)})
		},
	} {
		t.Run(what, func(t *testing.T) {
			s := newFedShop(t, services.Redis.Database(t))
			if what == "sold out" {
				s.apply(firstcome.Change{Version: 3, Kind: firstcome.ChangeTerms, Terms: ofFeed(4, 0)})
			}
			end(s)
			w, err := s.gate.WrittenLine(t.Context(), "c")
			stage.Must(t, err)
			n, err := s.do("EXISTS", keysOf[4]).AsInt64()
			stage.Must(t, err)
			if w.Generation != 2 || w.Left != 0 || n != 0 || w.Begun {
				t.Errorf("there are %+v, and %d keys of tickets", w, n)
			}
		})
	}
}

// TestAVoidedCouponOfAFeedIsNoMarkOfWhoLeft has the user claim again.
func TestAVoidedCouponOfAFeedIsNoMarkOfWhoLeft(t *testing.T) {
	s := newFedShop(t, services.Redis.Database(t))
	s.apply(firstcome.Change{Version: 3, Kind: firstcome.ChangeVoid, Number: 1, User: "user-0"})
	n, err := s.do("HLEN", keysOf[4]).AsInt64()
	stage.Must(t, err)
	if served := s.turn(1, 2, "user-0"); n != 1 || len(served.Coupons) != 1 {
		t.Errorf("%d have left, and served is %+v", n, served)
	}
}

// TestAFullBacklogStopsTurns has room for two coupons that the ledger does not have. Who holds one is passed over all the same.
func TestAFullBacklogStopsTurns(t *testing.T) {
	s := newShop(t, services.Redis.Database(t), 9, func(o *redis.Options) { o.Backlog = 2 })
	s.fed(9, 0)
	first := s.turn(1, 1, "a", "b", "a", "c")
	second := s.turn(1, 4, "c", "d")
	if len(first.Coupons) != 2 || first.Over != 1 || first.Line.ServedThrough != 3 || len(second.Coupons) != 0 || second.Line.ServedThrough != 3 || second.Again != 0 {
		t.Errorf("served %+v, then %+v", first, second)
	}
}
