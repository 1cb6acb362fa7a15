//go:build !check

package main

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/gate"
	"github.com/firstcome/firstcome/internal/issue"
	"github.com/firstcome/firstcome/internal/ledger"
	"github.com/firstcome/firstcome/internal/record"
	"github.com/firstcome/firstcome/internal/recovery"
	"github.com/firstcome/firstcome/internal/redis"
	"github.com/firstcome/firstcome/test/services"
	"github.com/firstcome/firstcome/test/stage"
)

// A desk is a ledger and a gate. Its methods act as recorders and operators.
type desk struct {
	*node
	t     *testing.T
	url   string // of Redis
	name  string // of the ledger
	clock func() time.Time
	far   *redis.Redis // the remote gate
	limit int64        // the most coupons of a campaign that may wait for the ledger, or 0 for the default
}

// newDesk returns a desk of a node at a Redis, and creates campaigns. The clock is for ledger and gate, which use their own if it is nil.
func newDesk(t *testing.T, url, name string, clock func() time.Time, campaigns ...firstcome.CampaignID) *desk {
	t.Helper()
	return (&desk{t: t, url: url, name: name, clock: clock}).open(campaigns...)
}

// open opens the desk for newDesk.
func (d *desk) open(campaigns ...firstcome.CampaignID) *desk {
	t, url := d.t, d.url
	t.Helper()
	d.node = &node{base: &base{flags: &serveCmd{}, log: slog.New(slog.DiscardHandler)}}
	var err error
	d.ledger, err = ledger.Open(t.Context(), d.name, ledger.Options{Secret: stage.Secret(), Clock: d.clock, Backlog: d.limit})
	stage.Must(t, err)
	d.far = d.opened(url)
	d.remote = newRemoteGate(d.base, links{gate: servingRedis(d.far)}, recovery.NewWatch(nil))
	stage.Must(t, d.ledger.UseGate(t.Context(), ledger.RemoteGate{Gate: d.far.Name()}))
	stage.Serve(t, d.ledger)
	for _, id := range campaigns {
		d.reaches(id, d.ledger.Campaigns.Create(t.Context(), "test", id, stage.Terms(100)))
	}
	return d
}

// opened returns a gate of the desk's ledger at a Redis.
func (d *desk) opened(url string) *redis.Redis {
	d.t.Helper()
	gate, err := redis.Open(d.t.Context(), d.options(url))
	stage.Must(d.t, err)
	d.t.Cleanup(gate.Close)
	return gate
}

// options are those of a gate of the desk's ledger.
func (d *desk) options(url string) redis.Options {
	return redis.Options{
		URL: url, Secret: stage.Secret(), Clock: d.clock, Backlog: d.limit, Ledger: d.ledger.Identity, CampaignUID: d.campaignUID, OnUnknown: d.missing,
	}
}

// reaches applies an operator's changes in the ledger to the gate.
func (d *desk) reaches(id firstcome.CampaignID, did error) {
	d.t.Helper()
	stage.Must(d.t, did)
	stage.Must(d.t, gate.NewChanger(d.ledger.Campaigns, &gate.Router{Gate: d.remote.gate, Retired: d.ledger.Gate, Ledger: d.ledger.Recorder}, nil).Finish(d.t.Context(), id, 0))
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

// batch returns coupons of the campaign c as a recorder's batch.
func batch(coupons ...firstcome.Coupon) record.Batch {
	return record.Batch{Campaign: "c", Epoch: 1, Coupons: coupons}
}

func (d *desk) record(coupons ...firstcome.Coupon) record.Result {
	d.t.Helper()
	drained, err := d.ledger.Recorder.Record(d.t.Context(), batch(coupons...))
	stage.Must(d.t, err)
	return drained
}

func (d *desk) bury(coupons ...firstcome.Coupon) record.Result {
	d.t.Helper()
	drained, err := d.ledger.Recorder.Bury(d.t.Context(), batch(coupons...), "a trial")
	stage.Must(d.t, err)
	return drained
}

// letter returns the first open dead letter.
func (d *desk) letter() int64 {
	d.t.Helper()
	open, err := d.ledger.Reads.DeadLetters(d.t.Context(), ledger.Letters{Limit: 1})
	if err != nil || len(open) == 0 {
		d.t.Fatal("no dead letter", err)
	}
	return open[0].ID
}

// replay replays the first open dead letter.
func (d *desk) replay() {
	d.t.Helper()
	stage.Must(d.t, d.ledger.Recorder.Replay(d.t.Context(), "op", d.letter()))
}

// void voids the first open dead letter, at the gate too.
func (d *desk) void() {
	d.t.Helper()
	letter, err := d.ledger.Reads.DeadLetter(d.t.Context(), d.letter())
	stage.Must(d.t, err)
	d.reaches(letter.Campaign, d.ledger.Recorder.VoidLetter(d.t.Context(), "op", letter.ID, "a trial"))
}

// settle reports the ledger's answer about entries to the gate, and acknowledges the entries.
func (d *desk) settle(drained record.Result, entries ...string) {
	d.t.Helper()
	uid, err := d.campaignUID(d.t.Context(), "c")
	stage.Must(d.t, err)
	stage.Must(d.t, stage.Err(d.remote.gate.journal.Settle(d.t.Context(), "c", uid, drained, entries...)))
}

// do sends a command to Redis.
func (d *desk) do(words ...string) rueidis.RedisMessage {
	d.t.Helper()
	answer, err := askRedis(d.url, words...)
	stage.Must(d.t, err)
	return answer
}

// has changes fields of the hash of the campaign c at the gate.
func (d *desk) has(fields ...string) {
	d.t.Helper()
	d.do(append([]string{"HSET", d.key("campaign")}, fields...)...)
}

// askRedis sends a command to Redis.
func askRedis(url string, words ...string) (answer rueidis.RedisMessage, err error) {
	option, err := rueidis.ParseURL(url)
	if err != nil {
		return answer, err
	}
	option.DisableCache, option.ForceSingleClient = true, true
	client, err := rueidis.NewClient(option)
	if err != nil {
		return answer, err
	}
	defer client.Close()
	return client.Do(context.Background(), client.B().Arbitrary(words...).Build()).ToMessage()
}

// keys returns the names of a campaign's keys.
func (d *desk) keys(id firstcome.CampaignID) []string {
	d.t.Helper()
	found := d.do("KEYS", "firstcome:{"+string(id)+":*}:*")
	keys, err := found.AsStrSlice()
	stage.Must(d.t, err)
	return keys
}

// A rewind is a desk whose gate can be taken back to an earlier state.
type rewind struct {
	*desk
	waiter  *issue.Waiter
	alarms  stage.Alarms
	journal string // the key of the campaign c
	kept    []string
}

func newRewind(t *testing.T) *rewind {
	t.Helper()
	r := &rewind{desk: newDesk(t, services.Redis.Database(t), t.TempDir()+"/firstcome.db", nil, "c"), alarms: make(stage.Alarms, 100)}
	r.waiter = issue.NewWaiter(&gate.Router{Gate: r.remote.gate, Retired: r.ledger.Gate, Ledger: r.ledger.Recorder})
	stage.Run(t, r.waiter.Run)
	for _, key := range r.keys("c") {
		if of, made := strings.CutSuffix(key, "campaign"); made {
			r.journal = of + "journal"
		}
	}
	return r
}

// keep saves the gate's keys.
func (r *rewind) keep() {
	r.kept = r.keys("c")
	for _, key := range r.kept {
		r.do("COPY", key, "kept:"+key, "REPLACE")
	}
}

// back takes the gate back to the saved keys, like a Redis whose append-only file lost its tail. A new node then asks the gate: a node with answers from
// after keep would decide nothing there.
func (r *rewind) back() {
	r.far = r.opened(r.url)
	r.remote.gate = servingRedis(r.far)
	r.do(append([]string{"DEL"}, r.keys("c")...)...)
	for _, key := range r.kept {
		r.do("COPY", "kept:"+key, key)
	}
}

// drain runs a recorder until the end of the test, and returns when the journal is empty.
func (r *rewind) drain() {
	r.t.Helper()
	journal := r.far.Journal.Consumer(redis.ConsumerOptions{
		Active: r.ledger.Recorder.Active, Sweep: 10 * time.Millisecond, Idle: 60 * time.Millisecond,
		OnAlarm: r.alarms.Raise,
	})
	stage.Run(r.t, record.NewRecorder(journal, r.ledger.Recorder, record.Options{Holes: r.remote.gate.journal, OnAlarm: r.alarms.Raise}).Run)
	stage.Await(r.t, "the end of the journal", 0, func() int { return len(r.entries()) })
}

// settleByHand acknowledges the journal's entries, as a recorder does.
func (r *rewind) settleByHand(drained record.Result) {
	r.t.Helper()
	r.settle(drained, r.entries()...)
}

// entries returns the ids of the entries of the journal.
func (r *rewind) entries() (ids []string) {
	r.t.Helper()
	all := r.do("XRANGE", r.journal, "-", "+")
	entries, err := all.AsXRange()
	stage.Must(r.t, err)
	for _, e := range entries {
		ids = append(ids, e.ID)
	}
	return ids
}

// recorded waits until a coupon is recorded, and returns the waiter's answer.
func recorded(t *testing.T, waiter *issue.Waiter, c firstcome.Coupon) error {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	return waiter.Wait(ctx, nil, c)
}

// wait waits for a coupon, and expects an answer of the waiter.
func (r *rewind) wait(c firstcome.Coupon, want error) {
	r.t.Helper()
	if err := recorded(r.t, r.waiter, c); !errors.Is(err, want) {
		r.t.Errorf("who waits for number %d of %s is told %v, want %v", c.Number, c.User, err, want)
	}
}

// truth expects that waiting callers are told whether the ledger has these coupons.
func (r *rewind) truth(recorded bool, coupons ...firstcome.Coupon) {
	r.t.Helper()
	for _, c := range coupons {
		if recorded {
			r.wait(c, nil)
			continue
		}
		r.wait(c, issue.ErrUnrecorded)
		r.truthAtGate(c)
	}
}

// truthAtGate expects that the gate reports none of these coupons as recorded.
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
