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

// A rewind is a desk whose gate can be taken back to what it was.
type rewind struct {
	*desk
	url      string // of Redis
	client   rueidis.Client
	recorded *flow.Recorded
	alarms   chan error
	keys     []string // those of the campaign c: hash, holders, journal, unrecorded
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
	r.recorded = flow.NewRecorded(&flow.Over{RemoteGate: r.remote.gate, Book: r.ledger})
	runUntilTheEnd(t, r.recorded.Run)
	made, err := r.do("KEYS", "firstcome:{c:*}:campaign").AsStrSlice()
	if err != nil || len(made) != 1 {
		t.Fatalf("Redis has the campaign under %q, %v", made, err)
	}
	for _, name := range []string{"campaign", "holders", "journal", "unrecorded"} {
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

// drain records what is in the journal until the end of the test, and returns when that is settled.
func (r *rewind) drain() {
	journal := r.remote.gate.Journal(redis.JournalOptions{
		Active: r.ledger.Active, Sweep: 10 * time.Millisecond,
		OnAlarm: func(_ firstcome.CampaignID, err error) {
			select {
			case r.alarms <- err:
			default:
			}
		},
	})
	runUntilTheEnd(r.t, flow.NewRecorder(journal, r.ledger, flow.RecorderLimits{}).Run)
	r.emptied()
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
func (r *rewind) settleByHand(settled flow.Settled) {
	r.settle(settled)
	r.do("XTRIM", r.keys[2], "MAXLEN", "0")
}

// wait expects what who waits for a coupon is told.
func (r *rewind) wait(c firstcome.Coupon, want error) {
	r.t.Helper()
	ctx, cancel := context.WithTimeout(r.t.Context(), 30*time.Second)
	defer cancel()
	if err := r.recorded.Wait(ctx, c); !errors.Is(err, want) {
		r.t.Errorf("who waits for number %d of %s is told %v, want %v", c.Number, c.User, err, want)
	}
}

// TestANumberThatWasGivenTwiceIsRecordedForTheOneOnlyWhoseCouponTheLedgerHas takes the gate back
// behind numbers 2 and 3, and has somebody else be given number 2.
func TestANumberThatWasGivenTwiceIsRecordedForTheOneOnlyWhoseCouponTheLedgerHas(t *testing.T) {
	for name, steps := range map[string]func(r *rewind, first []firstcome.Coupon, settled flow.Settled){
		"the recorder finds out first": func(r *rewind, _ []firstcome.Coupon, _ flow.Settled) {
			second := r.issue("c", "user-4")[0]
			r.drain()
			r.wait(second, flow.ErrUnrecorded)
		},
		"the gate is told late how far the ledger was": func(r *rewind, first []firstcome.Coupon, settled flow.Settled) {
			second := r.issue("c", "user-4")[0]
			r.settle(settled)
			r.wait(second, flow.ErrUnrecorded)
			r.wait(first[1], nil) // it is in the ledger, whatever the gate has forgotten
		},
		"what was issued behind it is recorded first": func(r *rewind, _ []firstcome.Coupon, _ flow.Settled) {
			second := r.issue("c", "user-4")[0]
			behind := r.issue("c", "user-5", "user-6")
			r.settle(r.record(behind[1]))
			r.wait(second, flow.ErrUnrecorded)
			r.wait(behind[1], nil)
		},
		"the node knows how far it was": func(r *rewind, first []firstcome.Coupon, settled flow.Settled) {
			ctx, cancel := context.WithCancel(r.t.Context())
			left := make(chan error)
			go func() { left <- r.recorded.Wait(ctx, firstcome.Coupon{Campaign: "c", Number: 100}) }()
			for calls := 0; calls == 0; calls, _ = r.recorded.Waiting() {
				continue
			}
			r.settle(settled)
			r.wait(first[1], nil) // so the node has heard of it
			r.back()
			second := r.issue("c", "user-4")[0]
			r.wait(second, flow.ErrUnrecorded)
			cancel()
			<-left
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRewind(t)
			first := r.issue("c", "user-1")
			r.settleByHand(r.record(first...))
			r.keep()
			first = append(first, r.issue("c", "user-2", "user-3")...)
			settled := r.record(first...)
			r.settleByHand(settled)
			r.wait(first[1], nil)
			r.back()
			steps(r, first, settled)
		})
	}
}

// TestWhoseCouponIsLostIsNotToldThatItIsRecorded loses a coupon before the ledger has it, and
// gives its number to somebody else.
func TestWhoseCouponIsLostIsNotToldThatItIsRecorded(t *testing.T) {
	r := newRewind(t)
	r.keep()
	lost := r.issue("c", "user-1")[0]
	r.back()
	given := r.issue("c", "user-2")[0]
	if lost.Number != given.Number {
		t.Fatalf("the numbers are %d and %d", lost.Number, given.Number)
	}
	again := r.issue("c", "user-1")[0]
	r.drain()
	r.wait(lost, flow.ErrUnrecorded)
	r.wait(given, nil)
	r.wait(again, nil)
}

// TestWhoHoldsANumberThatIsSomebodyElsesIsNeverToldThatItIsRecorded asks the gate again, before
// and after a recorder found out.
func TestWhoHoldsANumberThatIsSomebodyElsesIsNeverToldThatItIsRecorded(t *testing.T) {
	r := newRewind(t)
	r.keep()
	r.settleByHand(r.record(r.issue("c", "user-1", "user-2")...))
	r.back()
	r.issue("c", "user-3", "user-4", "user-5")
	again := func(when string) {
		t.Helper()
		for _, c := range r.issue("c", "user-3", "user-4") {
			if c.Recorded || c.Number == 0 {
				t.Errorf("%s %s is answered %+v", when, c.User, c)
			}
			held, err := r.remote.gate.CouponOf(t.Context(), "c", c.User)
			if err != nil || held.Recorded {
				t.Errorf("%s the coupon is read as %+v, %v", when, held, err)
			}
		}
	}
	r.settle(r.record())
	again("before")
	r.drain()
	again("afterwards")
	if c := r.issue("c", "user-5")[0]; !c.Recorded {
		t.Errorf("a number that was given once is %+v", c)
	}
	select {
	case err := <-r.alarms:
		t.Log(err)
	default:
		t.Error("nobody is told that numbers were given twice")
	}
	open, err := r.ledger.DeadLetters(t.Context(), ledger.Letters{})
	if err != nil || len(open) != 2 {
		t.Errorf("the dead letters are %+v, %v", open, err)
	}
}
