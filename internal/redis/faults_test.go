//go:build !check

package redis_test

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/url"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/redis"
	"github.com/firstcome/firstcome/test/services"
	"github.com/firstcome/firstcome/test/stage"
)

// keysOf are the keys of the campaign c.
var keysOf = redis.Keys("c", "")

// dump returns what the campaign's keys hold.
func (s *shop) dump() map[string]string {
	s.t.Helper()
	all := map[string]string{}
	for _, key := range keysOf {
		all[key], _ = s.do("DUMP", key).ToString()
	}
	return all
}

// outcomes returns the outcomes and numbers of decisions, as a vector spells them.
func outcomes(decisions []firstcome.Decision) (all []string) {
	for _, d := range decisions {
		word := "undecided"
		switch {
		case d.Outcome != 0:
			word = d.Outcome.String()
		case d.Undecided != nil:
			word = string(firstcome.CauseOf(d.Undecided))
		}
		if d.Outcome.HasCoupon() {
			word = fmt.Sprintf("%s:%d", word, d.Coupon.Number)
		}
		all = append(all, word)
	}
	return all
}

// want claims for users and checks what they get.
func (s *shop) want(g *node, users []firstcome.UserID, want ...string) {
	s.t.Helper()
	decisions, err := g.Claim(s.t.Context(), "c", users)
	stage.Must(s.t, err)
	if diff := cmp.Diff(want, outcomes(decisions)); diff != "" {
		s.t.Errorf("the claims of %q are answered otherwise (-want +got):\n%s", users, diff)
	}
}

func TestF06ARedisThatEvictsIsRefused(t *testing.T) {
	server := services.Redis.Server(t, "--maxmemory-policy", "allkeys-lru")
	options := redis.Options{URL: server.URL(), Secret: secret(t)}
	if g, err := redis.Open(t.Context(), options); err == nil || !strings.Contains(err.Error(), "noeviction") {
		t.Errorf("got %v, %v", g, err)
	}
	g := open(t, server.URL(), func(o *redis.Options) { o.AnyEviction = true })
	if w := strings.Join(g.Warnings(), "\n"); !strings.Contains(w, "allkeys-lru") {
		t.Errorf("the warnings are %q", w)
	}
}

func TestWhatARedisMayLoseIsWarnedOf(t *testing.T) {
	durable := services.Redis.Server(t)
	if w := open(t, durable.URL()).Warnings(); len(w) > 0 {
		t.Errorf("of a Redis with appendfsync everysec it warns: %q", w)
	}
	if w := open(t, services.Redis.Server(t, "--appendonly", "no").URL()).Warnings(); len(w) != 1 || !strings.Contains(w[0], "set appendonly yes") {
		t.Errorf("of a Redis without an append-only file it warns: %q", w)
	}
	host, port, _ := strings.Cut(durable.Address(), ":")
	services.Redis.Server(t, "--replicaof", host, port)
	stage.Await(t, "a replica", "1", func() string { return connectedReplicas(t, durable.URL()) })
	if w := open(t, durable.URL()).Warnings(); len(w) != 1 || !strings.Contains(w[0], "min-replicas-to-write 1") {
		t.Errorf("of a primary that does not wait for its replica it warns: %q", w)
	}
}

func connectedReplicas(t *testing.T, url string) string {
	t.Helper()
	client := connect(t, url)
	info, err := client.Do(t.Context(), client.B().Info().Section("replication").Build()).ToString()
	stage.Must(t, err)
	_, after, _ := strings.Cut(info, "connected_slaves:")
	count, _, _ := strings.Cut(after, "\r\n")
	return count
}

func TestF07WithoutMemoryNothingIsHalfDoneAndHoldersAreFound(t *testing.T) {
	server := services.Redis.Server(t)
	s, p := newShop(t, server.URL(), firstcome.Unlimited), stage.NewLedger("c")
	s.issue(0, 10)
	s.do("CONFIG", "SET", "maxmemory", "1")
	before := s.dump()
	s.want(s.gate, crowd(9, 3), "already_issued:10", "undecided", "undecided")
	if diff := cmp.Diff(before, s.dump()); diff != "" {
		t.Errorf("a claim without memory left something (-before +after):\n%s", diff)
	}
	s.settle(0, 0, letter(2, 1)) // flagging a dead letter needs a little memory
	if d := s.issue(1, 1); !d[0].Coupon.Buried {
		t.Errorf("a dead letter's holder has no flag: %+v", d)
	}
	s.drain(s.journal(), p.Take) // recording frees memory
	p.WaitFor(t, 10)
	s.drained(10)
	s.do("CONFIG", "SET", "maxmemory", "0")
	s.want(s.gate, crowd(10, 1), "issued:11")
}

// Operators relieve a full Redis by changes, so it must take them.
func TestF07AFullRedisTakesEveryChangeAndANewNodeAndIssuesNothing(t *testing.T) {
	server := services.Redis.Server(t, "--maxmemory", "4mb")
	s := newShop(t, server.URL(), 20)
	s.issue(0, 10)
	for n, step := range []struct {
		change  firstcome.Change
		refused bool
		then    string // what a new user gets
	}{
		{change: firstcome.Change{Kind: firstcome.ChangePause}, then: "paused"},
		{change: firstcome.Change{Kind: firstcome.ChangeResume}, then: "undecided"},
		{change: firstcome.Change{Kind: firstcome.ChangeVoid, Number: 10, User: crowd(9, 1)[0]}, then: "undecided"},
		{change: terms(12), then: "undecided"},
		{change: terms(1), refused: true, then: "undecided"},
		{change: terms(9), then: "sold_out"},
		{change: firstcome.Change{Kind: firstcome.ChangeClose}, then: "closed"},
	} {
		s.fill()
		// Redis frees buffers of its connections at any time. This limit keeps that memory from becoming room for a coupon.
		s.do("CONFIG", "SET", "maxmemory", "3800kb")
		step.change.Version = int64(n + 2)
		if refused := s.apply(step.change); refused != step.refused {
			t.Errorf("change %d, %s, was refused: %v", step.change.Version, step.change.Kind, refused)
		}
		s.want(s.gate, crowd(8, 1), "already_issued:9")
		s.want(s.gate, crowd(10, 1), step.then)
	}
	s.want(open(t, server.URL()), crowd(8, 2), "already_issued:9", "closed")
	_, err := s.gate.Apply(t.Context(), firstcome.Change{Campaign: "another", Version: 1, Kind: firstcome.ChangeTerms, Epoch: 1})
	if !errors.Is(err, firstcome.ErrBusy) {
		t.Errorf("a campaign that needs memory got %v", err)
	}
	if n, err := s.do(append([]string{"EXISTS"}, redis.Keys("another", "")...)...).AsInt64(); n != 0 || err != nil {
		t.Errorf("the campaign that was not made left %d keys, %v", n, err)
	}
}

func terms(quantity int64) firstcome.Change {
	return firstcome.Change{Kind: firstcome.ChangeTerms, Terms: firstcome.Terms{Quantity: quantity}}
}

// fill writes until Redis refuses even one byte. The writes get smaller, because a refused write leaves the room that it needed.
func (s *shop) fill() {
	s.t.Helper()
	for _, size := range []int{10_000, 100, 1} {
		var err error
		for err == nil {
			err = s.client.Do(s.t.Context(), s.client.B().Set().Key("filler:"+rand.Text()).Value(strings.Repeat("x", size)).Build()).Error()
		}
		if !strings.HasPrefix(err.Error(), "OOM") {
			s.t.Fatal(err)
		}
	}
}

func TestF08AKeyOfAnotherTypeIsSeenBeforeTheFirstWrite(t *testing.T) {
	s := newShop(t, services.Redis.Database(t), 100)
	s.issue(0, 3)
	for _, key := range keysOf[:3] { // line_faults_test.go has the keys of lines
		t.Run(key, func(t *testing.T) {
			there, err := s.do("EXISTS", key).AsBool()
			stage.Must(t, err)
			if there {
				s.do("RENAME", key, "kept")
			}
			s.do("SET", key, "somebody's")
			before := s.dump()
			_, err = s.gate.Claim(t.Context(), "c", crowd(2, 5))
			if classOf(t, err) != redis.Fatal {
				t.Errorf("a claim got %v", err)
			}
			_, err = s.gate.Apply(t.Context(), firstcome.Change{Campaign: "c", Version: 2, Kind: firstcome.ChangePause})
			if classOf(t, err) != redis.Fatal {
				t.Errorf("a change got %v", err)
			}
			if diff := cmp.Diff(before, s.dump()); diff != "" {
				t.Errorf("something was written (-before +after):\n%s", diff)
			}
			s.do("DEL", key)
			if there {
				s.do("RENAME", "kept", key)
			}
		})
	}
	s.want(s.gate, crowd(2, 2), "already_issued:3", "issued:4")
}

// TestF08ARightThatIsTakenAwayLeavesNothingHalfDone takes the rights to write away from a gate that has already checked its rights.
func TestF08ARightThatIsTakenAwayLeavesNothingHalfDone(t *testing.T) {
	address := services.Redis.Database(t)
	s := newShop(t, address, 100)
	as := services.User(t, address, strings.Fields(redis.Rights)...)
	user, err := url.Parse(as)
	stage.Must(t, err)
	s.gate = open(t, as)
	s.issue(0, 3)
	counters := func() []string {
		c, err := s.do("HMGET", keysOf[0], "in_force", "issued", "last_number", "version").AsStrSlice()
		stage.Must(t, err)
		for n, count := range []string{"HLEN", "XLEN"} {
			has, err := s.do(count, keysOf[n+1]).AsInt64()
			stage.Must(t, err)
			c = append(c, fmt.Sprint(has))
		}
		return c
	}
	before := counters()
	for _, right := range []string{"xadd", "hset"} {
		s.do("ACL", "SETUSER", user.User.Username(), "-"+right)
		if _, err := s.gate.Claim(t.Context(), "c", crowd(3, 5)); err == nil {
			t.Errorf("without %s a claim was decided", right)
		}
		if diff := cmp.Diff(before, counters()); diff != "" {
			t.Errorf("without %s something was written (-before +after):\n%s", right, diff)
		}
		s.do("ACL", "SETUSER", user.User.Username(), "+"+right)
	}
	s.want(s.gate, crowd(2, 2), "already_issued:3", "issued:4")
}

func TestF09ARedisThatHangsIsGivenUpAtTheDeadlineAndHeals(t *testing.T) {
	server := services.Redis.Server(t)
	s := newShop(t, server.URL(), firstcome.Unlimited)
	s.issue(0, 1)
	stage.Must(t, server.Freeze())
	frozen := time.Now()
	const callers = 64
	before := runtime.NumGoroutine()
	for range 4 {
		var all sync.WaitGroup
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		for n := range callers {
			all.Go(func() {
				// The connection is given up four seconds after Redis froze, whatever the deadline.
				if _, err := s.gate.Claim(ctx, "c", crowd(n, 1)); err == nil || ctx.Err() == nil && time.Since(frozen) < 3*time.Second {
					t.Errorf("a Redis that hangs said %v before the deadline", err)
				}
			})
		}
		all.Wait()
		cancel()
	}
	// Each call leaves at most one goroutine, which waits for an answer that no caller takes.
	if now := runtime.NumGoroutine(); now > before+5*callers {
		t.Errorf("%d goroutines became %d", before, now)
	}
	stage.Must(t, server.Continue())
	s.heals(2)
}

func TestF09ARedisThatHangsIsToldAtTheStart(t *testing.T) {
	server := services.Redis.Server(t)
	stage.Must(t, server.Freeze())
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute) // far longer than each connection may take
	defer cancel()
	g, err := redis.Open(ctx, redis.Options{URL: server.URL(), Secret: secret(t)})
	if err == nil {
		g.Close()
	}
	if err == nil || ctx.Err() != nil || !strings.Contains(err.Error(), "does not answer") {
		t.Errorf("got %v", err)
	}
}

// heals waits until the gate decides again.
func (s *shop) heals(user int) {
	s.t.Helper()
	stage.Await(s.t, "a decision", nil, func() error { return stage.Err(s.gate.Claim(s.t.Context(), "c", crowd(user, 1))) })
}

func TestF10ScriptsThatAreForgottenInMidLoadAreNotNoticed(t *testing.T) {
	s := newShop(t, services.Redis.Database(t), firstcome.Unlimited)
	var all sync.WaitGroup
	ended := make(chan struct{})
	var flushing sync.WaitGroup
	flushing.Go(func() {
		for {
			select {
			case <-ended:
				return
			default:
				s.do("SCRIPT", "FLUSH")
			}
		}
	})
	for n := range 8 {
		all.Go(func() {
			for k := range 50 {
				if _, err := s.gate.Claim(t.Context(), "c", crowd((n*50+k)*10, 10)); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	close(ended)
	flushing.Wait()
	if state := s.state(); state.LastNumber != 4_000 || state.InForce != 4_000 {
		t.Errorf("the state is %+v", state)
	}
}

func TestF11AClaimWhoseReplyIsLostIsFoundByAskingAgain(t *testing.T) {
	url := services.Redis.Database(t)
	s := newShop(t, url, firstcome.Unlimited)
	proxy := services.Through(t, address(t, url))
	through, err := proxy.URL(url)
	stage.Must(t, err)
	g := open(t, through)
	const enough, most = 10, 1000 // lost replies, and users who claim until then
	lost, users := 0, 0
	for ; lost < enough && users < most; users++ {
		n := users
		for err := errors.New("not yet"); err != nil; { // so that the dropped reply is not one of the connection's greeting
			err = errors.Join(g.Ping(t.Context()), g.Ping(t.Context()), g.Ping(t.Context()))
		}
		proxy.DropReply(1)
		_, err := g.Claim(t.Context(), "c", crowd(n, 1))
		if err == nil {
			continue // another reply was dropped
		}
		if classOf(t, err) == redis.Fatal {
			t.Errorf("a lost reply is %v", err)
		}
		proxy.Heal()
		d := s.issue(n, 1)[0]
		if d.Coupon.Number != int64(n+1) || d.Outcome == firstcome.AlreadyIssued && errors.Is(err, firstcome.ErrBusy) {
			t.Errorf("user %d has %v of number %d after %v", n, d.Outcome, d.Coupon.Number, err)
		}
		if d.Outcome == firstcome.AlreadyIssued {
			lost++
		}
	}
	if state := s.state(); state.LastNumber != int64(users) || lost < enough {
		t.Errorf("%d users have numbers up to %d, %d replies were lost", users, state.LastNumber, lost)
	}
}

func TestF13WhatAnUnwillingRedisAnswersIsSafe(t *testing.T) {
	server := services.Redis.Server(t)
	s := newShop(t, server.URL(), firstcome.Unlimited)
	s.issue(0, 1)
	for name, test := range map[string]struct{ begin, end []string }{
		"READONLY":   {[]string{"REPLICAOF", "127.0.0.1", "1"}, []string{"REPLICAOF", "NO", "ONE"}},
		"NOREPLICAS": {[]string{"CONFIG", "SET", "min-replicas-to-write", "1"}, []string{"CONFIG", "SET", "min-replicas-to-write", "0"}},
	} {
		t.Run(name, func(t *testing.T) {
			s.do(test.begin...)
			before := s.dump()
			_, err := s.gate.Claim(t.Context(), "c", crowd(1, 5))
			var e *redis.Error
			if firstcome.CauseOf(err) != firstcome.GateUnavailable || !errors.As(err, &e) || e.Code != name {
				t.Errorf("got %v", err)
			}
			if diff := cmp.Diff(before, s.dump()); diff != "" {
				t.Errorf("something was written (-before +after):\n%s", diff)
			}
			s.do(test.end...)
			stage.Must(t, s.gate.Trust(t.Context(), "c")) // a server that was a replica is another run
		})
	}
	s.want(s.gate, crowd(0, 2), "already_issued:1", "issued:2")
}

func TestF65AMissingRightIsNamed(t *testing.T) {
	url := services.Redis.Database(t)
	for _, right := range []string{"evalsha", "eval", "xadd", "hset", "publish", "xautoclaim", "info", "time"} {
		t.Run(right, func(t *testing.T) {
			as := services.User(t, url, append(strings.Fields(redis.Rights), "-"+right)...)
			g, err := redis.Open(t.Context(), redis.Options{URL: as, Secret: secret(t)})
			if err == nil {
				g.Close()
			}
			if err == nil || !strings.Contains(strings.ToLower(err.Error()), right) || !strings.Contains(err.Error(), "ACL SETUSER") {
				t.Errorf("got %v", err)
			}
		})
	}
}

func TestF65TheRightsThatAreDocumentedAreEnough(t *testing.T) {
	// A new user may use all channels, as before Redis 7. With that right, a channel pattern in the user's rights is an error.
	url := services.Redis.Server(t, "--acl-pubsub-default", "allchannels").URL()
	s, p := newShop(t, url, firstcome.Unlimited), stage.NewLedger("c")
	as := services.User(t, url, strings.Fields(redis.Rights)...)
	s.gate = open(t, as)
	s.drain(s.journal(), p.Take)
	heard := make(chan int64, 100)
	watch(t, s.gate, func(_ firstcome.CampaignID, through int64) { heard <- through })
	s.issue(0, 10)
	p.WaitFor(t, 10)
	s.drained(10)
	<-heard
	if _, err := s.gate.Holders(t.Context(), "c", func(firstcome.UserID) {}); err != nil {
		t.Error(err)
	}
	s.apply(firstcome.Change{Version: 2, Kind: firstcome.ChangeVoid, Number: 1, User: "user-0"})
	if _, err := s.gate.DrainedThrough(t.Context(), "c"); err != nil {
		t.Error(err)
	}
	if err := s.gate.Retire(t.Context(), "c"); err != nil {
		t.Error(err)
	}
}

// watch watches drained numbers until the test ends. It returns once no message can be missed.
func watch(t *testing.T, g *node, each func(firstcome.CampaignID, int64)) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	ready, ended := make(chan struct{}), make(chan error, 1)
	go func() { ended <- g.WatchDrained(ctx, func() { close(ready) }, each) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	select {
	case <-ready:
	case err := <-ended:
		t.Fatal(err)
	}
}
