//go:build !check

package redis_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/gate"
	"github.com/firstcome/firstcome/internal/record"
	"github.com/firstcome/firstcome/internal/redis"
	"github.com/firstcome/firstcome/test/stage"
)

// A shop is a gate with one campaign, c.
type shop struct {
	t      testing.TB
	url    string
	gate   *node
	client rueidis.Client
	alarms stage.Alarms
}

func newShop(t testing.TB, url string, quantity int64, edit ...func(*redis.Options)) *shop {
	t.Helper()
	s := &shop{t: t, url: url, gate: open(t, url, edit...), client: connect(t, url), alarms: make(stage.Alarms, 100)}
	s.apply(firstcome.Change{Version: 1, Kind: firstcome.ChangeTerms, Epoch: 1, Terms: firstcome.Terms{Quantity: quantity}})
	return s
}

// connect returns a client of its own, beside the gate's.
func connect(t testing.TB, url string) rueidis.Client {
	t.Helper()
	o, err := rueidis.ParseURL(url)
	stage.Must(t, err)
	o.DisableCache, o.ForceSingleClient = true, true
	client, err := rueidis.NewClient(o)
	stage.Must(t, err)
	t.Cleanup(client.Close)
	return client
}

func (s *shop) apply(c firstcome.Change) (refused bool) {
	s.t.Helper()
	c.Campaign = "c"
	refused, err := s.gate.Apply(s.t.Context(), c)
	stage.Must(s.t, err)
	return refused
}

// issue claims for count new users and returns the decisions.
func (s *shop) issue(from, count int) []firstcome.Decision {
	s.t.Helper()
	decisions, err := s.gate.Claim(s.t.Context(), "c", crowd(from, count))
	stage.Must(s.t, err)
	return decisions
}

// do sends a command to Redis.
func (s *shop) do(words ...string) rueidis.RedisResult {
	s.t.Helper()
	answer := s.client.Do(s.t.Context(), s.client.B().Arbitrary(words...).Build())
	if err := answer.Error(); err != nil && !rueidis.IsRedisNil(err) {
		s.t.Fatalf("%s: %v", strings.Join(words, " "), err)
	}
	return answer
}

func (s *shop) state() gate.State {
	s.t.Helper()
	state, err := s.gate.State(s.t.Context(), "c")
	stage.Must(s.t, err)
	return state
}

// journal returns the journal with the times of the tests.
func (s *shop) journal(edit ...func(*redis.ConsumerOptions)) *redis.Consumer {
	o := redis.ConsumerOptions{
		Active: func(context.Context) ([]gate.Revision, error) { return revisions("c"), nil },
		Sweep:  10 * time.Millisecond, Idle: 50 * time.Millisecond,
		OnAlarm: s.alarms.Raise,
	}
	for _, e := range edit {
		e(&o)
	}
	return s.gate.Consumer(o)
}

// drain drains a journal into a sink, as a recorder of the gate does, until stop is called or the test ends.
func (s *shop) drain(j record.Source, to record.Sink, edit ...func(*record.Options)) (stop func()) {
	return stage.Drain(s.t, j, to, append(edit, s.limit)...)
}

// limit gives a recorder the gate, and the times of the tests.
func (s *shop) limit(l *record.Options) {
	l.Holes, l.Patience, l.OnAlarm = s.gate, 100*time.Millisecond, s.alarms.Raise
}

// revisions returns campaigns as they are after their creation.
func revisions(ids ...firstcome.CampaignID) (all []gate.Revision) {
	for _, id := range ids {
		all = append(all, gate.Revision{Campaign: id, Version: 1, Epoch: 1})
	}
	return all
}

// drained waits until all issued coupons are drained and the journal is empty.
func (s *shop) drained(through int64) {
	s.t.Helper()
	type drain struct{ through, entries int64 }
	stage.Await(s.t, "the drain", drain{through: through}, func() drain {
		entries, err := s.do("XLEN", keysOf[2]).AsInt64()
		stage.Must(s.t, err)
		return drain{s.state().DrainedThrough, entries}
	})
}
