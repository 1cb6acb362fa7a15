package main

import (
	"context"
	"errors"
	"log/slog"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/flow"
	"github.com/firstcome/firstcome/internal/ledger"
	"github.com/firstcome/firstcome/internal/ops"
	"github.com/firstcome/firstcome/internal/redis"
	"github.com/firstcome/firstcome/test/services"
	"github.com/firstcome/firstcome/test/stage"
)

// A remoteNode is what a node wires beside HTTP where Redis decides, with a clock of its own.
type remoteNode struct {
	*node
	clock atomic.Int64
}

func newRemoteNode(t *testing.T, url string) *remoteNode {
	t.Helper()
	secret, err := firstcome.NewSecret([]byte(strings.Repeat("s", firstcome.MinSecret)))
	stage.Must(t, err)
	r := &remoteNode{node: &node{settings: settings{log: slog.New(slog.DiscardHandler), gate: gateFlags{Role: "all"}}, monitor: ops.New(slog.New(slog.DiscardHandler), "test", "test")}}
	r.clock.Store(time.Now().UnixNano())
	now := func() time.Time { return time.Unix(0, r.clock.Load()) }
	r.ledger, err = ledger.Open(t.Context(), filepath.Join(t.TempDir(), "firstcome.db"), ledger.Options{Secret: secret, Clock: now})
	stage.Must(t, err)
	gate, err := redis.Open(t.Context(), redis.Options{URL: url, Secret: secret, Clock: now, Ledger: r.ledger.Identity, Marker: r.marker, Missing: r.missing})
	stage.Must(t, err)
	t.Cleanup(gate.Close)
	r.remote = &remoteGate{gate: gate}
	r.ledger.UseGate(gate.Name())
	r.monitor.WatchLedger(r.ledger)
	r.join()
	r.start(t)
	return r
}

// start runs what a node runs, until the test ends.
func (r *remoteNode) start(t *testing.T) {
	ctx, stop := context.WithCancel(context.Background())
	writing, stopWriting := context.WithCancel(context.Background())
	var beside, ledgers sync.WaitGroup
	ledgers.Go(func() { _ = r.ledger.Run(writing) })
	for _, run := range r.remote.runs() {
		beside.Go(func() { _ = run(ctx) })
	}
	t.Cleanup(func() {
		stop()
		beside.Wait()
		stopWriting()
		ledgers.Wait()
		if err := r.ledger.Close(); err != nil {
			t.Error(err)
		}
	})
}

// claims returns what users' claims get.
func (r *remoteNode) claims(t *testing.T, users ...firstcome.UserID) (outcomes []firstcome.Outcome) {
	t.Helper()
	decisions, err := r.remote.over.Claim(t.Context(), "c", users)
	stage.Must(t, err)
	for _, d := range decisions {
		outcomes = append(outcomes, d.Outcome)
		if d.Outcome == firstcome.Issued {
			stage.Must(t, r.remote.waiter.Wait(t.Context(), d.Coupon))
		}
	}
	return outcomes
}

// keysOf returns how many keys Redis has of the campaign.
func keysOf(t *testing.T, url string) int {
	t.Helper()
	option, err := rueidis.ParseURL(url)
	stage.Must(t, err)
	option.DisableCache = true
	client, err := rueidis.NewClient(option)
	stage.Must(t, err)
	defer client.Close()
	keys, err := client.Do(t.Context(), client.B().Keys().Pattern("firstcome:{c:*}:*").Build()).AsStrSlice()
	stage.Must(t, err)
	return len(keys)
}

// step returns what expects a step of an operator to reach the gate.
func (r *remoteNode) step(t *testing.T) func(any, error) {
	return func(_ any, err error) {
		t.Helper()
		if err == nil {
			err = r.remote.changer.Finish(t.Context(), "c", 0)
		}
		stage.Must(t, err)
	}
}

// TestACampaignThatIsOverLeavesRedisAndIsAnsweredForByTheLedger follows a campaign
// from its making to a void long after its end, through the parts that a node has.
func TestACampaignThatIsOverLeavesRedisAndIsAnsweredForByTheLedger(t *testing.T) {
	url := services.Redis.Database(t)
	r := newRemoteNode(t, url)
	ctx := t.Context()
	step := r.step(t)
	want := func(what string, got []firstcome.Outcome, outcomes ...firstcome.Outcome) {
		t.Helper()
		for n := range outcomes {
			if got[n] != outcomes[n] {
				t.Errorf("%s: claim %d got %v, want %v", what, n, got[n], outcomes[n])
			}
		}
	}
	step(r.ledger.Create(ctx, "test", "c", firstcome.Terms{Name: "Test", Quantity: 2, Answer: firstcome.Recorded, Benefit: []byte(`{}`)}))
	want("open", r.claims(t, "a", "b", "d"), firstcome.Issued, firstcome.Issued, firstcome.SoldOut)
	r.clock.Add(int64(time.Second))
	step(r.ledger.Switch(ctx, "test", "c", ledger.Close))
	for _, pause := range []time.Duration{flow.DefaultRetireAfter, time.Minute} {
		r.clock.Add(int64(pause))
		stage.Must(t, r.remote.retirer.Look(ctx))
		want("over", r.claims(t, "a", "d"), firstcome.AlreadyIssued, firstcome.Closed)
	}
	if n := keysOf(t, url); n != 0 {
		t.Errorf("Redis has %d keys of the campaign", n)
	}
	step(r.ledger.Void(ctx, "test", "c", 1, "a refund"))
	want("voided", r.claims(t, "a", "b"), firstcome.Closed, firstcome.AlreadyIssued)
	if c, err := r.remote.over.CouponOf(ctx, "c", "b"); err != nil || c.Number != 2 || !c.Recorded {
		t.Errorf("the coupon of b is %+v, %v", c, err)
	}
	if _, err := r.remote.over.CouponOf(ctx, "c", "a"); !errors.Is(err, firstcome.ErrNoCoupon) {
		t.Errorf("the voided coupon: %v", err)
	}
	state, err := r.remote.over.State(ctx, "c")
	if err != nil || state.InForce != 1 || state.LastNumber != 2 {
		t.Errorf("the state: %+v, %v", state, err)
	}
	if _, err := r.remote.over.Claim(ctx, "nowhere", []firstcome.UserID{"a"}); !errors.Is(err, firstcome.ErrNoCampaign) {
		t.Errorf("no campaign: %v", err)
	}
	if n := keysOf(t, url); n != 0 {
		t.Errorf("the campaign was made again: Redis has %d keys of it", n)
	}
}

// TestAClockThatGoesBackOpensNoCampaignThatIsMarked has it go back before the keys are deleted: whoever was issued a
// coupon then would lose it with them.
func TestAClockThatGoesBackOpensNoCampaignThatIsMarked(t *testing.T) {
	r := newRemoteNode(t, services.Redis.Database(t))
	closesAt := time.Unix(0, r.clock.Load()).Add(time.Hour).UTC()
	r.step(t)(r.ledger.Create(t.Context(), "test", "c", firstcome.Terms{
		Name: "Test", Quantity: 2, Answer: firstcome.Recorded, Benefit: []byte(`{}`), ClosesAt: closesAt,
	}))
	r.clock.Store(closesAt.Add(flow.DefaultRetireAfter).UnixNano())
	stage.Must(t, r.remote.retirer.Look(t.Context()))
	if c, err := r.ledger.Campaign(t.Context(), "c"); err != nil || c.RetiredAt.IsZero() {
		t.Fatalf("it is not marked: %+v, %v", c, err)
	}
	r.clock.Store(closesAt.Add(-time.Minute).UnixNano())
	if got, err := r.remote.over.Claim(t.Context(), "c", []firstcome.UserID{"a"}); err != nil || got[0].Outcome != firstcome.Closed {
		t.Errorf("a claim got %+v, %v", got, err)
	}
}
