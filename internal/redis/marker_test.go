package redis_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/flow"
	"github.com/firstcome/firstcome/internal/redis"
	"github.com/firstcome/firstcome/test/services"
)

// of has a gate decide for a ledger, that calls all its campaigns the same.
func of(ledger, marker string) func(*redis.Options) {
	return func(o *redis.Options) {
		o.Ledger = func() string { return ledger }
		o.Marker = func(context.Context, firstcome.CampaignID) (string, error) { return ledger + "." + marker, nil }
	}
}

// twoLedgers returns the shop of a ledger that issued ten coupons, and that of another one
// which has the same campaign.
func twoLedgers(t *testing.T) (one, other *shop) {
	t.Helper()
	url := services.Redis.Database(t)
	one = newShop(t, url, 100, of("one", "1"))
	one.issue(0, 10)
	other = &shop{t: t, url: url, gate: open(t, url, of("other", "1")), client: one.client, alarms: make(chan error, 100)}
	return one, other
}

// mismatched expects that an error says that the campaign is another ledger's, and what to do.
func mismatched(t *testing.T, what string, err error) {
	t.Helper()
	if !errors.Is(err, firstcome.ErrGateMismatch) || !strings.Contains(err.Error(), "give each ledger a Redis") {
		t.Errorf("%s got %v", what, err)
	}
}

// calls are what a node asks a gate about the campaign c, but to forget it; c has no other change
// than its first, and coupons in force.
func calls(ctx context.Context, g *redis.Gate) map[string]func() error {
	return map[string]func() error{
		"a claim":                func() error { _, err := g.Claim(ctx, "c", crowd(0, 20)); return err },
		"the change of a making": func() error { _, err := g.Apply(ctx, first); return err },
		"a pause": func() error {
			_, err := g.Apply(ctx, firstcome.Change{Campaign: "c", Version: 2, Kind: firstcome.ChangePause})
			return err
		},
		"a void": func() error {
			_, err := g.Apply(ctx, firstcome.Change{Campaign: "c", Version: 2, Kind: firstcome.ChangeVoid, Number: 1, User: "user-0"})
			return err
		},
		"who looks for a coupon":        func() error { _, err := g.CouponOf(ctx, "c", "user-0"); return err },
		"who looks for nobody's coupon": func() error { _, err := g.CouponOf(ctx, "c", "nobody"); return err },
		"who reads the holders":         func() error { _, err := g.Holders(ctx, "c", func(firstcome.UserID) {}); return err },
		"who reads the state":           func() error { _, err := g.State(ctx, "c"); return err },
		"who reads what is settled":     func() error { _, err := g.SettledThrough(ctx, "c", nil); return err },
		"who asks whose a number is": func() error {
			_, err := g.Has(ctx, "c", []firstcome.Coupon{{Number: 1, User: "user-0"}})
			return err
		},
		"who notes how far its ledger is": func() error { return g.Settle(ctx, "c", flow.Settled{Through: 9, Epoch: 1}) },
	}
}

func TestF32ANodeOfAnotherLedgerDecidesNothing(t *testing.T) {
	one, other := twoLedgers(t)
	before := one.state()
	g, ctx := other.gate, t.Context()
	for what, do := range calls(ctx, g) {
		mismatched(t, what, do())
	}
	if lag, err := g.Lag(ctx, revisions("c")); err != nil || len(lag) > 0 {
		t.Errorf("the other ledger lags behind by %v, %v", lag, err)
	}
	after := one.state()
	before.Now, after.Now = time.Time{}, time.Time{}
	if before != after {
		t.Errorf("the campaign was %+v and is %+v", before, after)
	}
	one.want(one.gate, crowd(0, 1), "already_issued:1")
}

func TestTheFirstChangeMakesTheCampaignOfItsOwnMarker(t *testing.T) {
	one, other := twoLedgers(t)
	change := first
	change.Marker = "one.1"
	if refused, err := other.gate.Apply(t.Context(), change); err != nil || refused {
		t.Errorf("change 1 again got %v", err)
	}
	change.Marker = "one.2"
	_, err := one.gate.Apply(t.Context(), change)
	mismatched(t, "change 1 of a later copy", err)
}

// TestOfTwoLedgersThatMakeACampaignAtOnceOneHasIt has the second made exactly where the
// first has asked its ledger and not made it yet, and both at any instant.
func TestOfTwoLedgersThatMakeACampaignAtOnceOneHasIt(t *testing.T) {
	url := services.Redis.Database(t)
	quick := open(t, url, of("quick", "1"))
	slow := open(t, url, of("slow", "1"), func(o *redis.Options) {
		o.Missing = func(ctx context.Context, _ firstcome.CampaignID) error {
			if _, err := quick.Apply(ctx, first); err != nil {
				t.Error(err)
			}
			return firstcome.ErrBusy
		}
	})
	_, err := slow.Apply(t.Context(), first)
	mismatched(t, "the slower", err)
	client, gates := connect(t, url), []*redis.Gate{open(t, url, of("one", "1")), open(t, url, of("other", "1"))}
	for range 50 {
		var errs [2]error
		client.Do(t.Context(), client.B().Del().Key(keysOf...).Build())
		var making sync.WaitGroup
		for n, g := range gates {
			making.Go(func() { _, errs[n] = g.Apply(t.Context(), first) })
		}
		making.Wait()
		if (errs[0] == nil) == (errs[1] == nil) {
			t.Fatalf("two ledgers made the campaign: %v, %v", errs[0], errs[1])
		}
		mismatched(t, "the slower", errors.Join(errs[:]...))
	}
}

func TestARecorderLeavesAnotherLedgersJournalAlone(t *testing.T) {
	one, other := twoLedgers(t)
	other.drainOnce(other.journal(), func(context.Context, flow.Batch) (flow.Settled, error) {
		t.Error("the sink of the other ledger is given coupons")
		return flow.Settled{Through: 10, Epoch: 1}, nil
	})
	mismatched(t, "the recorder", other.told())
	one.issue(10, 1)
	pending, err := other.do("XPENDING", keysOf[2], "recorders").ToArray()
	if err != nil || len(pending) == 0 {
		t.Fatal(err)
	}
	if n, err := pending[0].AsInt64(); err != nil || n != 0 {
		t.Errorf("the other ledger's recorder has %d entries, %v", n, err)
	}
	p := newPage()
	one.drain(one.journal(), p.take)
	p.waitFor(t, 11)
	one.settled(11)
	for number, c := range p.coupons {
		if c.Marker != "one.1" {
			t.Errorf("number %d has the marker %q", number, c.Marker)
		}
	}
}

// replace deletes what Redis has of the campaign, and has another ledger make it and issue.
func (s *shop) replace(by *shop, coupons int) {
	s.t.Helper()
	s.do("DEL", keysOf[0], keysOf[1], keysOf[2], keysOf[3])
	by.apply(first)
	by.issue(0, coupons)
}

func TestARecorderWhoseCampaignIsReplacedMeanwhileIsDoneWithNothingOfTheNewOne(t *testing.T) {
	one, other := twoLedgers(t)
	p := newPage()
	var once sync.Once
	p.before = func(flow.Batch) error {
		once.Do(func() {
			ids, err := one.do("XRANGE", keysOf[2], "-", "+").AsXRange()
			if err != nil {
				t.Error(err)
				return
			}
			one.replace(other, 1)
			// The entry of the new campaign has the id of the one that is with this recorder.
			entries, err := one.do("XRANGE", keysOf[2], "-", "+").AsXRange()
			if err != nil || len(entries) != 1 {
				t.Errorf("%d entries, %v", len(entries), err)
				return
			}
			one.do("DEL", keysOf[2])
			words := []string{"XADD", keysOf[2], ids[0].ID}
			for field, value := range entries[0].FieldValues {
				words = append(words, field, value)
			}
			one.do(words...)
			one.do("XGROUP", "CREATE", keysOf[2], "recorders", "0")
		})
		return nil
	}
	one.drainOnce(one.journal(), p.take)
	mismatched(t, "the recorder", one.told())
	entries, err := one.do("XLEN", keysOf[2]).AsInt64()
	if state := other.state(); err != nil || state.Settled != 0 || entries != 1 {
		t.Errorf("the new campaign is settled through %d, with %d entries left, %v", state.Settled, entries, err)
	}
	q := newPage()
	other.drain(other.journal(), q.take)
	q.waitFor(t, 1)
	other.settled(1)
}

// TestAnEntryOfAnotherLedgerIsNeverGivenToTheSink has it in a journal whose campaign is lost,
// so that nothing but the entry says whose it is.
func TestAnEntryOfAnotherLedgerIsNeverGivenToTheSink(t *testing.T) {
	one, other := twoLedgers(t)
	one.do("DEL", keysOf[0])
	other.drainOnce(other.journal(), func(context.Context, flow.Batch) (flow.Settled, error) {
		t.Error("the sink of the other ledger is given coupons")
		return flow.Settled{}, nil
	})
	if err := other.told(); !errors.Is(err, firstcome.ErrGateMismatch) {
		t.Errorf("it was told %v", err)
	}
	p := newPage()
	one.drain(one.journal(), p.take)
	p.waitFor(t, 10)
}

func TestRetiringLeavesAnotherLedgersKeys(t *testing.T) {
	one, other := twoLedgers(t)
	for range 2 {
		if err := other.gate.Retire(t.Context(), "c"); err != nil {
			t.Error(err)
		}
	}
	one.want(one.gate, crowd(9, 2), "already_issued:10", "issued:11")
	one.do("DEL", keysOf[0])
	if err := other.gate.Retire(t.Context(), "c"); err != nil {
		t.Error(err)
	}
	if n, err := one.do("EXISTS", keysOf[1], keysOf[2]).AsInt64(); err != nil || n != 2 {
		t.Errorf("of the lost campaign there are %d keys, %v", n, err)
	}
}

func TestACampaignThatIsOverIsNotAnotherLedgersOfItsID(t *testing.T) {
	one, _ := twoLedgers(t)
	over := open(t, one.url, of("over", "1"), func(o *redis.Options) {
		o.Missing = func(context.Context, firstcome.CampaignID) error { return flow.ErrRetired }
	})
	if _, err := over.Claim(t.Context(), "c", crowd(0, 1)); !errors.Is(err, flow.ErrRetired) {
		t.Errorf("a claim got %v", err)
	}
	if _, err := over.CouponOf(t.Context(), "c", "user-0"); !errors.Is(err, flow.ErrRetired) {
		t.Errorf("who looks for a coupon got %v", err)
	}
}

func TestKeysThatSayNoLedgerDecideNothing(t *testing.T) {
	one, _ := twoLedgers(t)
	one.do("HDEL", keysOf[0], "marker")
	_, err := one.gate.Claim(t.Context(), "c", crowd(0, 1))
	if !errors.Is(err, firstcome.ErrGateMismatch) || !strings.Contains(err.Error(), "make it anew under another id") {
		t.Errorf("a claim got %v", err)
	}
	if err := one.gate.Retire(t.Context(), "c"); err != nil {
		t.Error(err)
	}
	if n, err := one.do("EXISTS", keysOf[0]).AsInt64(); err != nil || n != 1 {
		t.Errorf("it was deleted: %d, %v", n, err)
	}
}

// TestANodeWhoseLedgerIsReplacedAsksItAgain has the ledger call the campaign otherwise than before.
func TestANodeWhoseLedgerIsReplacedAsksItAgain(t *testing.T) {
	var asked int
	marker := "one.1"
	s := newShop(t, services.Redis.Database(t), 100, func(o *redis.Options) {
		o.Marker = func(context.Context, firstcome.CampaignID) (string, error) {
			asked++
			return marker, nil
		}
	})
	s.issue(0, 1)
	s.issue(1, 1)
	if asked != 1 {
		t.Errorf("the ledger was asked %d times", asked)
	}
	marker = "one.2"
	s.do("HSET", keysOf[0], "marker", marker)
	_, err := s.gate.Claim(t.Context(), "c", crowd(0, 1))
	mismatched(t, "the first claim", err)
	s.want(s.gate, crowd(0, 1), "already_issued:1")
}

func TestWhatACopyOfTheLedgerSettlesIsNotHeard(t *testing.T) {
	url := services.Redis.Database(t)
	s := newShop(t, url, 100, of("one", "1"))
	copied := open(t, url, of("one", "2"))
	s.issue(0, 10)
	heard := make(chan flow.Settled, 10)
	ctx, stop := context.WithCancel(t.Context())
	ready, ended := make(chan struct{}), make(chan error)
	go func() {
		ended <- s.gate.WatchSettled(ctx, func() { close(ready) }, func(_ firstcome.CampaignID, settled flow.Settled) { heard <- settled })
	}()
	<-ready
	s.do("HSET", keysOf[0], "marker", "one.2")
	if err := copied.Settle(t.Context(), "c", flow.Settled{Through: 9, Epoch: 1}); err != nil {
		t.Fatal(err)
	}
	s.do("HSET", keysOf[0], "marker", "one.1", "settled", "0")
	if err := s.gate.Settle(t.Context(), "c", flow.Settled{Through: 5, Epoch: 1}); err != nil {
		t.Fatal(err)
	}
	if settled := <-heard; settled.Through != 5 {
		t.Errorf("heard %+v", settled)
	}
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

func TestAnIDThatAnotherLedgerHasIsTaken(t *testing.T) {
	one, other := twoLedgers(t)
	knows := false
	g := open(t, one.url, of("other", "1"), func(o *redis.Options) {
		o.Marker = func(context.Context, firstcome.CampaignID) (string, error) {
			if knows {
				return "other.1", nil
			}
			return "", firstcome.ErrNoCampaign
		}
	})
	mismatched(t, "who wants the id", g.Taken(t.Context(), "c"))
	if err := errors.Join(g.Taken(t.Context(), "d"), one.gate.Taken(t.Context(), "c"), other.gate.Taken(t.Context(), "d")); err != nil {
		t.Errorf("an id that nobody has, or the ledger itself: %v", err)
	}
	knows = true
	if err := g.Taken(t.Context(), "c"); err != nil {
		t.Errorf("who has the campaign already is told by the ledger, not with %v", err)
	}
}
