//go:build !check

package redis_test

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/gate"
	"github.com/firstcome/firstcome/internal/record"
	"github.com/firstcome/firstcome/internal/redis"
	"github.com/firstcome/firstcome/test/services"
	"github.com/firstcome/firstcome/test/stage"
)

// A season is a shop on a server of its own, with a journal that looks when the test says so, and a clock. The campaign c closes at closing.
type season struct {
	*shop
	page   *stage.Ledger
	clock  *atomic.Int64
	asked  chan struct{} // the journal asks for the active campaigns, so everything before is done
	active chan []gate.Revision
	stop   func()
}

var (
	opening = time.Date(2026, 3, 2, 9, 0, 0, 0, time.UTC)
	closing = opening.Add(time.Hour)
)

func newSeason(t *testing.T) *season {
	t.Helper()
	s := &season{clock: new(atomic.Int64), page: stage.NewLedger("c")}
	s.at(opening)
	s.shop = newShop(t, services.Redis.Server(t).URL(), firstcome.Unlimited, s.clocked)
	s.closesAt(2, closing)
	s.record()
	return s
}

func (s *season) clocked(o *redis.Options) {
	o.Clock = func() time.Time { return time.Unix(0, s.clock.Load()) }
}

func (s *season) at(now time.Time) { s.clock.Store(now.UnixNano()) }

// closesAt changes when the campaign closes.
func (s *season) closesAt(version int64, at time.Time) {
	s.t.Helper()
	s.apply(firstcome.Change{Version: version, Kind: firstcome.ChangeTerms, Terms: firstcome.Terms{Quantity: firstcome.Unlimited, ClosesAt: at}})
}

// record starts a recorder that replaces the previous one.
func (s *season) record(edit ...func(*redis.ConsumerOptions)) {
	s.t.Helper()
	if s.stop != nil {
		s.stop()
	}
	asked, active := make(chan struct{}), make(chan []gate.Revision)
	s.asked, s.active = asked, active
	journal := s.journal(append(edit, func(o *redis.ConsumerOptions) {
		o.Active = func(ctx context.Context) (now []gate.Revision, err error) {
			select {
			case asked <- struct{}{}:
			case <-ctx.Done():
				return nil, ctx.Err()
			}
			select {
			case now = <-active:
				return now, nil
			case <-ctx.Done():
				return nil, ctx.Err()
			}
		}
	})...)
	s.stop = s.drain(journal, s.page.Take)
	<-s.asked
	s.awaitListener()
}

// look makes the journal look at campaigns once, and returns how many commands Redis got.
func (s *season) look(active ...gate.Revision) (commands int64) {
	s.t.Helper()
	before := s.commands()
	s.active <- active
	<-s.asked
	return s.commands() - before
}

// commands returns how many commands Redis got from all clients, without those that ask for INFO or keep a connection alive.
func (s *season) commands() (all int64) {
	s.t.Helper()
	for name, calls := range s.calls() {
		if name != "info" && name != "ping" {
			all += calls
		}
	}
	return all
}

// calls returns how many calls of each command Redis got.
func (s *shop) calls() map[string]int64 {
	s.t.Helper()
	text, err := s.do("INFO", "commandstats").ToString()
	stage.Must(s.t, err)
	all := map[string]int64{}
	for line := range strings.Lines(text) {
		name, counts, ok := strings.Cut(strings.TrimPrefix(strings.TrimSpace(line), "cmdstat_"), ":calls=")
		if !ok {
			continue
		}
		count, _, _ := strings.Cut(counts, ",")
		if all[name], err = strconv.ParseInt(count, 10, 64); err != nil {
			s.t.Fatal(err)
		}
	}
	return all
}

// costsNothing lets the journal look until 20 looks in a row cost nothing. A worker may still be busy with the campaign for some looks after it has
// become quiet.
func (s *season) costsNothing(what string, active ...gate.Revision) {
	s.t.Helper()
	for n, nothing := 0, 0; nothing < 20; n++ {
		if n == 2000 {
			s.t.Fatalf("%s: again and again a look costs something", what)
		}
		nothing++
		if s.look(active...) > 0 {
			nothing = 0
		}
	}
}

// costsSomething fails unless each of five looks costs a command.
func (s *season) costsSomething(what string, active ...gate.Revision) {
	s.t.Helper()
	for range 5 {
		if s.look(active...) == 0 {
			s.t.Fatalf("%s: nobody looks", what)
		}
	}
}

func (s *season) recorded(active gate.Revision, coupons int) {
	s.t.Helper()
	s.look(active)
	s.page.WaitFor(s.t, coupons)
	s.drained(int64(coupons))
}

func revision(version int64) gate.Revision {
	return gate.Revision{Campaign: "c", Version: version, Epoch: 1}
}

func TestAQuietCampaignCostsTheGateNothing(t *testing.T) {
	s := newSeason(t)
	s.issue(0, 10)
	s.recorded(revision(2), 10)
	s.costsSomething("while it is open", revision(2))
	s.apply(firstcome.Change{Version: 3, Kind: firstcome.ChangeClose})
	s.costsSomething("while the ledger has not said so", revision(2))
	s.costsSomething("in another epoch", gate.Revision{Campaign: "c", Version: 3, Epoch: 2})
	s.costsNothing("closed", revision(3))
	s.costsSomething("in a later revision that the gate lacks", revision(4))
	s.costsNothing("closed as before", revision(3))
}

func TestACampaignIsQuietOnceItsJournalIsEmptyByTheGatesClock(t *testing.T) {
	s := newSeason(t)
	let := make(chan struct{})
	s.page.Before = func(record.Batch) error {
		<-let
		return nil
	}
	s.at(closing.Add(-time.Microsecond))
	s.issue(0, 10) // at the last instant before the closing
	s.at(closing)
	s.costsSomething("with a journal", revision(2))
	close(let)
	s.recorded(revision(2), 10)
	s.costsNothing("closed", revision(2))
}

func TestAMessageOrANewVersionEndsTheSlowLookAtOnce(t *testing.T) {
	s := newSeason(t)
	s.at(closing)
	s.costsNothing("closed", revision(2))
	s.closesAt(3, closing.Add(time.Hour))
	s.at(closing.Add(time.Minute))
	// The recorder's list is older than the change, as while the ledger is down. The message about an issue wakes it.
	s.issue(0, 10)
	s.page.WaitFor(t, 10)
	s.drained(10)
	s.costsSomething("while the list is older", revision(2))
	s.costsSomething("with a later window", revision(3))
	s.issue(10, 10)
	s.recorded(revision(3), 20)
	s.at(closing.Add(time.Hour))
	s.costsNothing("closed again", revision(3))
}

// TestWhatIsIssuedOfAQuietCampaignIsRecordedThoughItsMessageIsLost claims through a node whose messages do not reach the recorder.
func TestWhatIsIssuedOfAQuietCampaignIsRecordedThoughItsMessageIsLost(t *testing.T) {
	for _, c := range []struct {
		name  string
		slow  time.Duration
		again func(s *season) gate.Revision
	}{
		{"because the clock went back, at the slow look", 2 * time.Second, func(s *season) gate.Revision {
			s.at(opening)
			return revision(2)
		}},
		{"because its window was raised, at the new version", time.Hour, func(s *season) gate.Revision {
			s.closesAt(3, closing.Add(time.Hour))
			s.at(closing.Add(time.Minute))
			return revision(3)
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newSeason(t)
			s.record(func(o *redis.ConsumerOptions) { o.Slow = c.slow })
			s.gate = open(t, s.url, s.clocked, func(o *redis.Options) { o.Ledger = func() string { return "unheard" } })
			s.at(closing)
			s.costsNothing("closed", revision(2))
			now := c.again(s)
			s.issue(0, 10)
			stage.Await(t, "what is recorded", 10, func() int {
				s.look(now)
				return len(s.page.Coupons("c"))
			})
		})
	}
}

func TestAJournalThatIsLostIsMadeAgainBeforeTheCampaignIsQuiet(t *testing.T) {
	s := newSeason(t)
	s.stop()
	s.issue(0, 10)
	s.do("DEL", keysOf[2])
	s.at(closing)
	s.record()
	s.recorded(revision(2), 10)
	s.costsNothing("recorded from the holders", revision(2))
}

// copies creates campaigns like c.
func (s *season) copies(count int, like gate.Revision) (all []gate.Revision) {
	s.t.Helper()
	words := []string{"EVAL", `for n = 2, #KEYS do redis.call('COPY', KEYS[1], KEYS[n]) end`, fmt.Sprint(1 + count), keysOf[0]}
	for n := range count {
		like.Campaign = firstcome.CampaignID(fmt.Sprintf("many-%05d", n))
		all, words = append(all, like), append(words, redis.Keys(like.Campaign, "")[0])
	}
	s.do(words...)
	return all
}

func TestTenThousandQuietCampaignsCostTheGateNothing(t *testing.T) {
	s := newSeason(t)
	s.apply(firstcome.Change{Version: 3, Kind: firstcome.ChangeClose})
	many := s.copies(10_000, revision(3))
	s.costsNothing("ten thousand", many...)
	lags, err := s.gate.Lag(t.Context(), many)
	before := s.commands()
	if more, err2 := s.gate.Lag(t.Context(), many); err != nil || err2 != nil || len(lags)+len(more) > 0 {
		t.Errorf("they lag behind by %v, %v: %v, %v", lags, more, err, err2)
	}
	if n := s.commands() - before; n != 0 {
		t.Errorf("to say how far they lag behind costs %d commands besides a ping", n)
	}
	s.costsNothing("the half, since the others are retired", many[:5_000]...)
	if s.look(many...) == 0 {
		t.Error("nobody looks at the others when they are active again")
	}
}
