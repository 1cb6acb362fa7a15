//go:build !check

package redis_test

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/gate"
	"github.com/firstcome/firstcome/internal/record"
	"github.com/firstcome/firstcome/internal/redis"
	"github.com/firstcome/firstcome/test/services"
	"github.com/firstcome/firstcome/test/stage"
)

// line makes the campaign c unlimited, and gives it a line with so many people.
func (s *shop) line(people int) {
	s.t.Helper()
	s.apply(firstcome.Change{Version: 2, Kind: firstcome.ChangeTerms, Terms: withPace(firstcome.Unlimited, 0)})
	join(s.t, s.gate, 0, people)
}

// servedInTurn fails unless the first so many people each have the coupon of their turn.
func servedInTurn(t testing.TB, g gate.Gate, people int) {
	t.Helper()
	all := journaled(t, g)
	if len(all) != people {
		t.Errorf("%d of %d were served", len(all), people)
	}
	for n, c := range all {
		if c.User != crowd(n, 1)[0] || c.Number != int64(n+1) || c.Ticket != c.Number {
			t.Errorf("coupon %d is %s's, with number %d and ticket %d", n+1, c.User, c.Number, c.Ticket)
		}
	}
	keepsPlaces(t, g)
}

// TestF71AServiceWhoseAnswerIsLostIsDoneOnceAndTheNextGoesOn drops replies to services and to joins.
func TestF71AServiceWhoseAnswerIsLostIsDoneOnceAndTheNextGoesOn(t *testing.T) {
	at := services.Redis.Database(t)
	s := newShop(t, at, firstcome.Unlimited)
	s.line(1)
	proxy := services.Through(t, address(t, at))
	through, err := proxy.URL(at)
	stage.Must(t, err)
	g := open(t, through)
	lose := func(call func() error) (lost bool) {
		for err := errors.New("not yet"); err != nil; { // so that the dropped reply is not one of the connection's greeting
			err = errors.Join(g.Ping(t.Context()), g.Ping(t.Context()), g.Ping(t.Context()))
		}
		proxy.DropReply(1)
		err := call()
		proxy.Heal()
		if err != nil && classOf(t, err) == redis.Fatal {
			t.Errorf("a lost reply is %v", err)
		}
		return err != nil
	}
	stage.Must(t, stage.Err(s.gate.Serve(t.Context(), "c", 1))) // so that Redis has the script, and no lost reply is a NOSCRIPT
	const enough, most = 10, 1000                               // replies lost after the script ran, and tries
	lost, people := 0, 1
	for n := 0; lost < enough && n < most; n++ {
		lose(func() error { return stage.Err(g.Claim(t.Context(), "c", crowd(people, 2))) })
		before := s.issue(people, 2) // asks again: it finds both places, or joins both users
		if before[0].Outcome != firstcome.Waiting || before[1].Place.Ticket != int64(people+2) {
			t.Fatalf("who joined is answered %+v", before)
		}
		people += 2
		issued := s.state().LastNumber
		if lose(func() error { return stage.Err(g.Serve(t.Context(), "c", 1)) }) && s.state().LastNumber > issued {
			lost++
		}
	}
	serveAll(t, s.gate)
	servedInTurn(t, s.gate, people)
	if lost < enough {
		t.Errorf("%d services were lost behind their script", lost)
	}
}

// TestF71ALineOutlivesARedisThatIsKilled kills and restarts Redis repeatedly while a line is served. Redis syncs before it answers. With a sync every
// second it would lose what it confirmed during a sync.
func TestF71ALineOutlivesARedisThatIsKilled(t *testing.T) {
	server := services.Redis.Server(t, "--appendfsync", "always")
	s := newShop(t, server.URL(), firstcome.Unlimited)
	const people = 300
	s.line(people)
	for range 3 {
		begun, ended := make(chan struct{}), make(chan struct{})
		go func() {
			defer close(ended)
			for n := 0; stage.Err(s.gate.Serve(context.Background(), "c", 1)) == nil; n++ { // until Redis is killed
				if n == 0 {
					close(begun)
				}
			}
		}()
		stage.Next(t, "a service", begun)
		stage.Must(t, server.Kill())
		<-ended
		stage.Must(t, server.Restart(t.Context()))
		stage.Await(t, "Redis", nil, func() error { return s.gate.Trust(t.Context(), "c") })
		stage.Await(t, "a service", nil, func() error { return stage.Err(s.gate.Serve(t.Context(), "c", 1)) })
	}
	serveAll(t, s.gate)
	servedInTurn(t, s.gate, people)
}

// lineCalls are a node's calls about a campaign whose line has user-0 to user-2.
func lineCalls(g *node) map[string]func(context.Context) error {
	return map[string]func(context.Context) error{
		"a join":    func(ctx context.Context) error { return stage.Err(g.Claim(ctx, "c", crowd(5, 5))) },
		"a service": func(ctx context.Context) error { return stage.Err(g.Serve(ctx, "c", 2)) },
		"a direct issue": func(ctx context.Context) error {
			return stage.Err(g.Issue(ctx, gate.Order{Actor: "test"}, "c", crowd(1, 9)))
		},
		"a leave": func(ctx context.Context) error { return stage.Err(g.Leave(ctx, "c", "user-1")) },
		"a close": func(ctx context.Context) error {
			return stage.Err(g.Apply(ctx, firstcome.Change{Campaign: "c", Version: 3, Kind: firstcome.ChangeClose}))
		},
		"who looks at a place": func(ctx context.Context) error {
			_, _, err := g.Place(ctx, "c", "user-1")
			return err
		},
		"who looks at the line": func(ctx context.Context) error { return stage.Err(g.LineOf(ctx, "c")) },
	}
}

// TestF08AKeyOfALineOfAnotherTypeIsSeenBeforeTheFirstWrite gives each key of a campaign with a line the wrong type.
func TestF08AKeyOfALineOfAnotherTypeIsSeenBeforeTheFirstWrite(t *testing.T) {
	s := newShop(t, services.Redis.Database(t), 100)
	s.line(4)
	stage.Must(t, stage.Err(s.gate.Serve(t.Context(), "c", 1)))
	for _, key := range keysOf {
		s.do("RENAME", key, "kept")
		s.do("SET", key, "somebody's")
		before := s.dump()
		for what, call := range lineCalls(s.gate) {
			if key == keysOf[2] && strings.HasPrefix(what, "who looks") {
				continue // this call needs no journal
			}
			if err := call(t.Context()); err == nil || classOf(t, err) != redis.Fatal {
				t.Errorf("%s: %s got %v", key, what, err)
			}
			if diff := cmp.Diff(before, s.dump()); diff != "" {
				t.Errorf("%s: %s wrote something (-before +after):\n%s", key, what, diff)
			}
		}
		s.do("DEL", key)
		s.do("RENAME", "kept", key)
	}
	serveAll(t, s.gate)
	servedInTurn(t, s.gate, 4)
}

// TestF08ARightThatIsTakenAwayLeavesALineWhole takes the rights to write away, one by one, from a gate that has already checked its rights.
func TestF08ARightThatIsTakenAwayLeavesALineWhole(t *testing.T) {
	at := services.Redis.Database(t)
	s := newShop(t, at, 100)
	as := services.User(t, at, strings.Fields(redis.Rights)...)
	user, err := url.Parse(as)
	stage.Must(t, err)
	s.line(3)
	owner := s.gate
	s.gate = open(t, as)
	looks := func() string {
		state, err := owner.LineOf(t.Context(), "c")
		stage.Must(t, err)
		people, err1 := s.do("XLEN", keysOf[3]).AsInt64()
		tickets, err2 := s.do("HLEN", keysOf[4]).AsInt64()
		entries, err3 := s.do("XLEN", keysOf[2]).AsInt64()
		stage.Must(t, errors.Join(err1, err2, err3))
		return fmt.Sprintf("%+v, of before %+v, %d in force; %d, %d and %d entries", state.Line, state.Past, state.InForce, people, tickets, entries)
	}
	before := looks()
	for _, right := range []string{"xadd", "hset", "xdel", "xtrim", "hdel"} {
		s.do("ACL", "SETUSER", user.User.Username(), "-"+right)
		for what, call := range lineCalls(s.gate) {
			if needs := map[string][]string{
				"a join": {"xadd", "hset"}, "a service": {"xadd", "hset", "xdel", "xtrim", "hdel"}, "a direct issue": {"xadd", "hset", "xdel", "xtrim", "hdel"},
				"a leave": {"hset", "xdel", "xtrim", "hdel"}, "a close": {"xadd", "hset", "hdel"},
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
	serveAll(t, s.gate)
	servedInTurn(t, s.gate, 3)
}

// TestF07AFullRedisGivesNoPlacesAndLetsPeopleLeave fills Redis while three people are in line.
func TestF07AFullRedisGivesNoPlacesAndLetsPeopleLeave(t *testing.T) {
	server := services.Redis.Server(t)
	s := newShop(t, server.URL(), firstcome.Unlimited)
	s.line(3)
	s.do("CONFIG", "SET", "maxmemory", "1")
	before := s.dump()
	s.want(s.gate, crowd(2, 3), "waiting", "undecided", "undecided")
	if _, err := s.gate.Serve(t.Context(), "c", 9); !errors.Is(err, firstcome.ErrBusy) {
		t.Errorf("a service without memory got %v", err)
	}
	if diff := cmp.Diff(before, s.dump()); diff != "" {
		t.Errorf("something was written without memory (-before +after):\n%s", diff)
	}
	stage.Must(t, stage.Err(s.gate.Leave(t.Context(), "c", "user-1")))
	if state := keepsPlaces(t, s.gate); state.Line.Waiting != 2 || state.Line.LastTicket != 3 {
		t.Errorf("the line is %+v", state.Line)
	}
	s.apply(firstcome.Change{Version: 3, Kind: firstcome.ChangeClose}) // a full Redis takes every change
	s.do("CONFIG", "SET", "maxmemory", "0")
	state := keepsPlaces(t, s.gate)
	if len(state.Past) != 1 || state.Past[0].Waiting != 2 || state.Past[0].Reason != "closed" {
		t.Errorf("what ended is %+v", state.Past)
	}
}

// refuses fails unless each of the calls returns the error and writes nothing.
func (s *shop) refuses(calls map[string]func(context.Context) error, want error) {
	s.t.Helper()
	before := s.dump()
	for what, call := range calls {
		if err := call(s.t.Context()); !errors.Is(err, want) {
			s.t.Errorf("%s got %v, want %v", what, err, want)
		}
	}
	if diff := cmp.Diff(before, s.dump()); diff != "" {
		s.t.Errorf("something was written (-before +after):\n%s", diff)
	}
}

// TestF71PartOfALineThatIsGoneIsLostAndNobodyIsSkipped deletes data of a line without the gate's knowledge.
func TestF71PartOfALineThatIsGoneIsLostAndNobodyIsSkipped(t *testing.T) {
	for what, spoil := range map[string]func(*shop){
		"the line":    func(s *shop) { s.do("DEL", keysOf[3]) },
		"one in line": func(s *shop) { s.do("XDEL", keysOf[3], "1-2") },
		"the tickets": func(s *shop) { s.do("DEL", keysOf[4]) },
		"counters":    func(s *shop) { s.do("HSET", keysOf[0], "line", "1 3 0") },
	} {
		t.Run(what, func(t *testing.T) {
			s := newShop(t, services.Redis.Database(t), 100)
			s.line(3)
			spoil(s)
			s.refuses(lineCalls(s.gate), gate.ErrGone)
		})
	}
}

// TestARetiredCampaignLeavesNoKeyOfItsLine retires a campaign with people in line.
func TestARetiredCampaignLeavesNoKeyOfItsLine(t *testing.T) {
	s := newShop(t, services.Redis.Database(t), 100)
	s.line(3)
	stage.Must(t, s.gate.Retire(t.Context(), "c"))
	if n, err := s.do(append([]string{"EXISTS"}, keysOf...)...).AsInt64(); err != nil || n > 0 {
		t.Errorf("%d keys are left, %v", n, err)
	}
}

// TestAGateThatARebuildFrozeSaysSo: it does not say that its server restarted.
func TestAGateThatARebuildFrozeSaysSo(t *testing.T) {
	s := newShop(t, services.Redis.Database(t), 100)
	s.line(3)
	was, err := s.do("HGET", keysOf[0], "run").ToString()
	stage.Must(t, err)
	restarted := func() error {
		_, err := s.gate.Claim(t.Context(), "c", []firstcome.UserID{"late"})
		return err
	}
	s.do("HSET", keysOf[0], "run", "another")
	if err := restarted(); !errors.Is(err, gate.ErrUnverified) || errors.Is(err, record.ErrRebuilding) {
		t.Errorf("after a restart: %v", err)
	}
	s.do("HSET", keysOf[0], "frozen", "1") // a frozen gate does not check the run
	s.refuses(lineCalls(s.gate), record.ErrRebuilding)
	s.do("HSET", keysOf[0], "run", was)
	s.refuses(lineCalls(s.gate), record.ErrRebuilding)
	s.refuses(lineCalls(s.gate), gate.ErrUnverified) // so that nodes look at it
}

// TestF77WhatMayBeAnOlderLineIsNotTold makes another run of Redis the one that decided last, as after a restart: Redis may have forgotten users who
// joined since.
func TestF77WhatMayBeAnOlderLineIsNotTold(t *testing.T) {
	s := newShop(t, services.Redis.Database(t), 100)
	s.line(3)
	run, err := s.do("HGET", keysOf[0], "run").ToString()
	stage.Must(t, err)
	s.do("HSET", keysOf[0], "run", "another")
	for what, ask := range map[string]func() error{
		"who is in line": func() error { _, _, err := s.gate.Place(t.Context(), "c", "user-1"); return err },
		"who is not":     func() error { _, _, err := s.gate.Place(t.Context(), "c", "nobody"); return err },
		"anybody":        func() error { return stage.Err(s.gate.LineOf(t.Context(), "c")) },
	} {
		if err := ask(); !errors.Is(err, gate.ErrUnverified) || !errors.Is(err, firstcome.ErrBusy) {
			t.Errorf("%s is told %v", what, err)
		}
	}
	s.do("HSET", keysOf[0], "run", run)
	serveAll(t, s.gate)
	servedInTurn(t, s.gate, 3)
}
