package main

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/flow"
	"github.com/firstcome/firstcome/internal/ledger"
	"github.com/firstcome/firstcome/internal/redis"
	"github.com/firstcome/firstcome/test/services"
	"github.com/firstcome/firstcome/test/stage"
)

// A desk is a ledger and a gate, and what recorders and operators do there by hand.
type desk struct {
	*node
	t *testing.T
}

// newDeskOn returns a desk with a ledger and campaigns.
func newDeskOn(t *testing.T, name string, campaigns ...firstcome.CampaignID) *desk {
	t.Helper()
	return newDeskAt(t, services.Redis.Database(t), name, campaigns...)
}

// newDeskAt returns a desk of a node at a Redis, and makes campaigns.
func newDeskAt(t *testing.T, url, name string, campaigns ...firstcome.CampaignID) *desk {
	t.Helper()
	secret, err := firstcome.NewSecret([]byte(strings.Repeat("s", firstcome.MinSecret)))
	stage.Must(t, err)
	d := &desk{node: &node{}, t: t}
	d.ledger, err = ledger.Open(t.Context(), name, ledger.Options{Secret: secret})
	stage.Must(t, err)
	gate, err := redis.Open(t.Context(), redis.Options{
		URL: url, Secret: secret,
		Ledger: d.ledger.Identity, Marker: d.marker, Missing: d.missing,
	})
	stage.Must(t, err)
	t.Cleanup(gate.Close)
	d.remote = &remoteGate{gate: gate}
	d.ledger.UseGate(gate.Name())
	ctx, stop := context.WithCancel(context.Background())
	ran := make(chan error, 1)
	go func() { ran <- d.ledger.Run(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := <-ran; err != nil {
			t.Error(err)
		}
		if err := d.ledger.Close(); err != nil {
			t.Error(err)
		}
	})
	terms := firstcome.Terms{Name: "Test", Quantity: 100, Answer: firstcome.Recorded, Benefit: []byte(`{}`)}
	for _, id := range campaigns {
		stage.Must(t, stage.Err(d.ledger.Create(t.Context(), "test", id, terms)))
		stage.Must(t, flow.NewChanger(d.ledger, gate, nil).Finish(t.Context(), id, 1))
	}
	return d
}

// issue returns the coupons of a campaign's new users.
func (d *desk) issue(id firstcome.CampaignID, users ...firstcome.UserID) (coupons []firstcome.Coupon) {
	d.t.Helper()
	decisions, err := d.remote.gate.Claim(d.t.Context(), id, users)
	stage.Must(d.t, err)
	for _, one := range decisions {
		coupons = append(coupons, one.Coupon)
	}
	return coupons
}

// batch returns coupons of the campaign c as a recorder has them.
func batch(coupons ...firstcome.Coupon) flow.Batch {
	return flow.Batch{Campaign: "c", Epoch: 1, Coupons: coupons}
}

func (d *desk) record(coupons ...firstcome.Coupon) flow.Drained {
	d.t.Helper()
	return d.must(d.ledger.Record(d.t.Context(), batch(coupons...)))
}

func (d *desk) bury(coupons ...firstcome.Coupon) flow.Drained {
	d.t.Helper()
	return d.must(d.ledger.Bury(d.t.Context(), batch(coupons...), "a trial"))
}

func (d *desk) must(drained flow.Drained, err error) flow.Drained {
	d.t.Helper()
	stage.Must(d.t, err)
	return drained
}

// letter returns the first open dead letter.
func (d *desk) letter() int64 {
	d.t.Helper()
	open, err := d.ledger.DeadLetters(d.t.Context(), ledger.Letters{Limit: 1})
	if err != nil || len(open) == 0 {
		d.t.Fatal("no dead letter", err)
	}
	return open[0].ID
}

// replay replays the first open dead letter.
func (d *desk) replay() {
	d.t.Helper()
	stage.Must(d.t, d.ledger.Replay(d.t.Context(), "op", d.letter()))
}

// void voids the first open dead letter, at the gate too.
func (d *desk) void() {
	d.t.Helper()
	id, err := d.ledger.VoidLetter(d.t.Context(), "op", d.letter(), "a trial")
	if err == nil {
		err = flow.NewChanger(d.ledger, d.remote.gate, nil).Finish(d.t.Context(), id, 0)
	}
	stage.Must(d.t, err)
}

// settle tells the gate what became of entries, and is done with them.
func (d *desk) settle(drained flow.Drained, entries ...string) {
	d.t.Helper()
	stage.Must(d.t, stage.Err(d.remote.gate.Settle(d.t.Context(), "c", drained, entries...)))
}

// A rewind is a desk whose gate can be taken back to what it was.
type rewind struct {
	*desk
	url    string // of Redis
	client rueidis.Client
	waiter *flow.Waiter
	alarms chan error
	keys   []string // those of the campaign c: hash, holders, journal
}

func newRewind(t *testing.T) *rewind {
	t.Helper()
	url := services.Redis.Database(t)
	option, err := rueidis.ParseURL(url)
	stage.Must(t, err)
	option.DisableCache, option.ForceSingleClient = true, true
	client, err := rueidis.NewClient(option)
	stage.Must(t, err)
	t.Cleanup(client.Close)
	r := &rewind{url: url, desk: newDeskAt(t, url, t.TempDir()+"/firstcome.db", "c"), client: client, alarms: make(chan error, 100)}
	r.waiter = flow.NewWaiter(&flow.Over{RemoteGate: r.remote.gate, Book: r.ledger})
	runUntilTheEnd(t, r.waiter.Run)
	made, err := r.do("KEYS", "firstcome:{c:*}:campaign").AsStrSlice()
	if err != nil || len(made) != 1 {
		t.Fatalf("Redis has the campaign under %q, %v", made, err)
	}
	for _, name := range []string{"campaign", "holders", "journal"} {
		r.keys = append(r.keys, strings.TrimSuffix(made[0], "campaign")+name)
	}
	return r
}

func (r *rewind) do(words ...string) rueidis.RedisResult {
	r.t.Helper()
	answer := r.client.Do(r.t.Context(), r.client.B().Arbitrary(words...).Build())
	stage.Must(r.t, answer.Error())
	return answer
}

// keep keeps the gate's keys as they are.
func (r *rewind) keep() {
	for _, key := range r.keys {
		r.do("COPY", key, "kept:"+key, "REPLACE")
	}
}

// back takes the gate back to what was kept, as one whose append-only file lost its tail.
func (r *rewind) back() {
	for _, key := range r.keys {
		r.do("DEL", key)
		r.do("COPY", "kept:"+key, key)
	}
}

// drain records what is in the journal until the end of the test, and returns when that is done.
func (r *rewind) drain() {
	r.t.Helper()
	r.drainInto(r.ledger)
	r.emptied()
}

// drainInto is drain with another keeper, and does not wait.
func (r *rewind) drainInto(keeper flow.Keeper) {
	journal := r.remote.gate.Journal(redis.JournalOptions{
		Active: r.ledger.Active, Sweep: 10 * time.Millisecond, Idle: 60 * time.Millisecond,
		OnAlarm: func(_ firstcome.CampaignID, err error) {
			select {
			case r.alarms <- err:
			default:
			}
		},
	})
	runUntilTheEnd(r.t, flow.NewRecorder(journal, keeper, flow.RecorderLimits{}).Run)
}

func (r *rewind) emptied() {
	r.t.Helper()
	for entries := int64(1); entries > 0; {
		var err error
		if entries, err = r.do("XLEN", r.keys[2]).AsInt64(); err != nil {
			r.t.Fatal(err)
		}
	}
}

// settleByHand is done with what is in the journal, as a recorder.
func (r *rewind) settleByHand(drained flow.Drained) {
	r.t.Helper()
	r.settle(drained, r.entries()...)
}

// entries returns the ids of the entries of the journal.
func (r *rewind) entries() (ids []string) {
	r.t.Helper()
	entries, err := r.do("XRANGE", r.keys[2], "-", "+").AsXRange()
	stage.Must(r.t, err)
	for _, e := range entries {
		ids = append(ids, e.ID)
	}
	return ids
}

// waitFor returns what who waits for a coupon is told.
func (r *rewind) waitFor(c firstcome.Coupon) error {
	ctx, cancel := context.WithTimeout(r.t.Context(), 30*time.Second)
	defer cancel()
	return r.waiter.Wait(ctx, c)
}

// wait expects what who waits for a coupon is told.
func (r *rewind) wait(c firstcome.Coupon, want error) {
	r.t.Helper()
	if err := r.waitFor(c); !errors.Is(err, want) {
		r.t.Errorf("who waits for number %d of %s is told %v, want %v", c.Number, c.User, err, want)
	}
}

// truth expects that these coupons are in the ledger, or that they are not: who waits is told so.
func (r *rewind) truth(what string, recorded bool, coupons ...firstcome.Coupon) {
	r.t.Helper()
	for _, c := range coupons {
		want := flow.ErrUnrecorded
		if recorded {
			want = nil
		}
		if err := r.waitFor(c); !errors.Is(err, want) {
			r.t.Errorf("%s: who waits for number %d of %s is told %v, want %v", what, c.Number, c.User, err, want)
		}
		if !recorded {
			r.truthAtGate(c)
		}
	}
}

// truthAtGate expects that the gate does not say of coupons that they are recorded.
func (r *rewind) truthAtGate(coupons ...firstcome.Coupon) {
	r.t.Helper()
	has, err := r.remote.gate.Has(r.t.Context(), "c", coupons)
	stage.Must(r.t, err)
	for n, c := range coupons {
		again, err := r.remote.gate.CouponOf(r.t.Context(), "c", c.User)
		read := err == nil && again.Number == c.Number && again.Recorded
		decisions, err := r.remote.gate.Claim(r.t.Context(), "c", []firstcome.UserID{c.User})
		claimed := err == nil && decisions[0].Coupon.Number == c.Number && decisions[0].Coupon.Recorded
		if has[n] || read || claimed {
			r.t.Errorf("number %d is recorded for who asks %v, who reads %v, who claims again %v", c.Number, has[n], read, claimed)
		}
	}
}

// comes waits until something is so.
func (r *rewind) comes(what string, is func() bool) {
	r.t.Helper()
	for end := time.Now().Add(30 * time.Second); !is(); {
		if time.Now().After(end) {
			r.t.Fatalf("%s never came", what)
		}
	}
}
