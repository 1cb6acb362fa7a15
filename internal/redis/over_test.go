package redis_test

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/flow"
	"github.com/firstcome/firstcome/internal/redis"
	"github.com/firstcome/firstcome/test/services"
)

// A season is a shop on a server of its own, a journal that looks when it is told to, and
// a clock. The campaign c closes at closing.
type season struct {
	*shop
	page    *page
	clock   *atomic.Int64
	journal *redis.Journal
	asked   chan struct{} // the journal asks for the active campaigns: what it did before is done
	active  chan []flow.Revision
	stop    func()
}

var (
	opening = time.Date(2026, 3, 2, 9, 0, 0, 0, time.UTC)
	closing = opening.Add(time.Hour)
)

func newSeason(t *testing.T) *season {
	t.Helper()
	s := &season{clock: new(atomic.Int64), page: newPage()}
	s.at(opening)
	s.shop = newShop(t, services.Redis.Server(t).URL(), firstcome.Unlimited, func(o *redis.Options) {
		clock := s.clock
		o.Clock = func() time.Time { return time.Unix(0, clock.Load()) }
	})
	s.closesAt(2, closing)
	s.record()
	return s
}

func (s *season) at(now time.Time) { s.clock.Store(now.UnixNano()) }

// closesAt changes when the campaign closes.
func (s *season) closesAt(version int64, at time.Time) {
	s.t.Helper()
	s.apply(firstcome.Change{Version: version, Kind: firstcome.ChangeTerms, Terms: firstcome.Terms{Quantity: firstcome.Unlimited, ClosesAt: at}})
}

// record starts a recorder, in the place of the one before.
func (s *season) record(edit ...func(*redis.JournalOptions)) {
	s.t.Helper()
	if s.stop != nil {
		s.stop()
	}
	asked, active := make(chan struct{}), make(chan []flow.Revision)
	s.asked, s.active = asked, active
	s.journal = s.shop.journal(append(edit, func(o *redis.JournalOptions) {
		o.Active = func(ctx context.Context) (now []flow.Revision, err error) {
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
	s.stop = s.drain(s.journal, s.page.take)
	<-s.asked
	s.awaitListener()
}

// look has the journal look once at campaigns, and returns how many commands Redis got.
func (s *season) look(active ...flow.Revision) (commands int64) {
	s.t.Helper()
	before := s.commands()
	s.active <- active
	<-s.asked
	return s.commands() - before
}

// commands returns how many commands Redis got of everybody, but for those that ask for
// this and that keep connections alive.
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
	if err != nil {
		s.t.Fatal(err)
	}
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

// costsNothing has the journal look until many looks in a row cost nothing. A campaign that
// is over is looked at a few times until whoever works on it is done, and a worker may pause
// for as long as a look takes.
func (s *season) costsNothing(what string, active ...flow.Revision) {
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

// costsSomething tells whether each of some looks costs something.
func (s *season) costsSomething(what string, active ...flow.Revision) {
	s.t.Helper()
	for range 5 {
		if s.look(active...) == 0 {
			s.t.Fatalf("%s: nobody looks", what)
		}
	}
}

func (s *season) recorded(active flow.Revision, coupons int) {
	s.t.Helper()
	s.look(active)
	s.page.waitFor(s.t, coupons)
	s.settled(int64(coupons))
}

func revision(version int64) flow.Revision {
	return flow.Revision{Campaign: "c", Version: version, Epoch: 1}
}

func TestACampaignThatIsOverCostsTheGateNothing(t *testing.T) {
	s := newSeason(t)
	s.issue(0, 10)
	s.recorded(revision(2), 10)
	s.costsSomething("while it is open", revision(2))
	s.apply(firstcome.Change{Version: 3, Kind: firstcome.ChangeClose})
	s.costsSomething("while the ledger has not said so", revision(2))
	s.costsSomething("in another epoch", flow.Revision{Campaign: "c", Version: 3, Epoch: 2})
	s.costsNothing("closed", revision(3))
	s.costsSomething("in a later revision that the gate lacks", revision(4))
	s.costsNothing("closed as before", revision(3))
}

func TestACampaignIsOverOnceItsJournalIsEmptyByTheGatesClock(t *testing.T) {
	s := newSeason(t)
	let := make(chan struct{})
	s.page.before = func(flow.Batch) error {
		<-let
		return nil
	}
	s.at(closing.Add(-time.Microsecond))
	s.issue(0, 10) // at the last instant
	s.at(closing)
	s.costsSomething("with a journal", revision(2))
	close(let)
	s.recorded(revision(2), 10)
	s.costsNothing("closed", revision(2))
	s.at(opening)
	s.want(s.gate, crowd(10, 1), "closed")
	if n := s.look(revision(2)); n > 2 {
		t.Errorf("a refusal makes it cost %d commands", n)
	}
}

func TestAClockThatGoesBackReopensNothingThatWasSeenToBeOver(t *testing.T) {
	s := newSeason(t)
	s.at(closing)
	s.costsNothing("closed", revision(2)) // and nobody claims meanwhile
	s.at(opening)
	s.want(s.gate, crowd(0, 1), "closed")
}

func TestACampaignThatAChangeReopensIsDrainedAgain(t *testing.T) {
	s := newSeason(t)
	s.at(closing)
	s.costsNothing("closed", revision(2))
	s.closesAt(3, closing.Add(time.Hour))
	s.at(closing.Add(time.Minute))
	// The recorder's list is older than the change, as while the ledger is down: what is issued wakes it.
	s.issue(0, 10)
	s.page.waitFor(t, 10)
	s.settled(10)
	s.costsSomething("while the list is older", revision(2))
	s.costsSomething("reopened", revision(3))
	s.issue(10, 10)
	s.recorded(revision(3), 20)
	s.at(closing.Add(time.Hour))
	s.costsNothing("closed again", revision(3))
}

func TestACampaignOfWhichARecorderHasEntriesIsNotOver(t *testing.T) {
	s := newSeason(t)
	s.stop()
	s.issue(0, 10)
	entries, err := s.do("XREADGROUP", "GROUP", "recorders", "another", "STREAMS", keysOf[2], ">").AsXRead()
	if err != nil {
		t.Fatal(err)
	}
	s.at(closing)
	s.record(func(o *redis.JournalOptions) { o.Idle = time.Hour })
	s.costsSomething("while another recorder has an entry", revision(2))
	// It settles, as a recorder does, but for the entry, which somebody deletes.
	if err := s.gate.Settle(t.Context(), "c", flow.Settled{Through: 10, Epoch: 1}); err != nil {
		t.Fatal(err)
	}
	id := entries[keysOf[2]][0].ID
	s.do("XDEL", keysOf[2], id)
	s.costsSomething("while another recorder has an entry that is gone", revision(2))
	s.do("XACK", keysOf[2], "recorders", id)
	s.costsNothing("when all have finished", revision(2))
}

func TestAJournalThatIsLostIsMadeAgainBeforeTheCampaignIsOver(t *testing.T) {
	s := newSeason(t)
	s.stop()
	s.issue(0, 10)
	s.do("DEL", keysOf[2])
	s.at(closing)
	s.record()
	s.recorded(revision(2), 10)
	s.costsNothing("recorded from the holders", revision(2))
	s.do("DEL", keysOf[2])
	s.costsNothing("without a journal", revision(2))
}

func TestARecorderThatStartsOrWasCutOffLooksAgainOnce(t *testing.T) {
	s := newSeason(t)
	s.at(closing)
	s.costsNothing("closed", revision(2))
	s.record()
	if s.look(revision(2)) == 0 {
		t.Error("a recorder that starts does not look")
	}
	s.costsNothing("after a start", revision(2))
	s.do("CLIENT", "KILL", "TYPE", "pubsub")
	before := s.calls()["xlen"]
	for n := 0; s.calls()["xlen"] == before; n++ {
		s.look(revision(2))
		if n == 2000 {
			t.Fatal("a recorder that was cut off does not look")
		}
	}
	s.awaitListener()
	s.costsNothing("after the cut", revision(2))
}

// copies makes campaigns that are like c.
func (s *season) copies(count int, like flow.Revision) (all []flow.Revision) {
	s.t.Helper()
	const script = `for n = 0, ARGV[1] - 1 do redis.call('COPY', KEYS[1], string.format('firstcome:{many-%05d}:campaign', n)) end`
	s.do("EVAL", script, "1", keysOf[0], fmt.Sprint(count))
	for n := range count {
		like.Campaign = firstcome.CampaignID(fmt.Sprintf("many-%05d", n))
		all = append(all, like)
	}
	return all
}

func TestTenThousandCampaignsThatAreOverCostTheGateNothing(t *testing.T) {
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
	s.costsSomething("the others, if they were not", many...)
}

// names returns the recorders that the journal's group knows.
func (s *shop) names() (all []string) {
	s.t.Helper()
	recorders, err := s.do("XINFO", "CONSUMERS", keysOf[2], "recorders").ToArray()
	if err != nil {
		s.t.Fatal(err)
	}
	for _, r := range recorders {
		fields, err := r.AsStrMap()
		if err != nil {
			s.t.Fatal(err)
		}
		all = append(all, fields["name"])
	}
	return all
}

func TestTheNamesOfRecordersThatAreGoneAreDeletedAndNothingThatTheyHave(t *testing.T) {
	s, p := newShop(t, services.Redis.Server(t).URL(), firstcome.Unlimited), newPage()
	for n, name := range []string{"dead", "gone", "holding"} {
		s.issue(n, 1)
		s.do("XREADGROUP", "GROUP", "recorders", name, "COUNT", "1", "STREAMS", keysOf[2], ">")
	}
	entries, err := s.do("XRANGE", keysOf[2], "-", "+").AsXRange()
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries[:2] {
		s.do("XACK", keysOf[2], "recorders", e.ID)
		s.do("XDEL", keysOf[2], e.ID)
	}
	slow := func(silent time.Duration) func(*redis.JournalOptions) {
		return func(o *redis.JournalOptions) { o.Idle, o.Silent = time.Hour, silent }
	}
	stop := s.drain(s.journal(slow(time.Hour)), p.take)
	tidied := func() int64 { return s.calls()["xinfo|consumers"] + s.calls()["xinfo"] } // the latter before Redis 7
	issued, before := 3, tidied()
	for ; tidied() == before; issued++ { // each wakes the journal
		s.issue(issued, 1)
		p.waitNumber(t, int64(issued+1))
	}
	stop()
	if all := s.names(); !slices.Contains(all, "dead") || !slices.Contains(all, "gone") {
		t.Errorf("of those who were there lately are left %v", all)
	}
	s.drain(s.journal(slow(time.Millisecond)), p.take)
	all := s.names()
	for ; slices.Contains(all, "dead") || slices.Contains(all, "gone"); issued++ {
		s.issue(issued, 1)
		p.waitNumber(t, int64(issued+1))
		all = s.names()
	}
	if !slices.Contains(all, "holding") {
		t.Fatalf("the recorders are %v", all)
	}
	// What it had is taken over.
	s.drain(s.journal(func(o *redis.JournalOptions) { o.Idle = 10 * time.Millisecond }), p.take)
	p.waitNumber(t, 3)
}

func TestACampaignThatIsOverHasNoRecordersAndGetsThemAgain(t *testing.T) {
	s := newSeason(t)
	s.issue(0, 10)
	s.recorded(revision(2), 10)
	s.at(closing)
	s.record() // in the place of one who reads once more what it just finished
	s.costsNothing("closed", revision(2))
	if names := s.names(); len(names) > 0 {
		t.Errorf("its recorders are %v", names)
	}
	s.closesAt(3, closing.Add(time.Hour))
	s.at(closing.Add(time.Minute))
	s.issue(10, 10)
	s.recorded(revision(3), 20)
	if names := s.names(); len(names) != 1 {
		t.Errorf("its recorders are %v", names)
	}
}
