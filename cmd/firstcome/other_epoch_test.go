//go:build !check

package main

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

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

// A counting keeper counts its calls, and ends the test's context after too many.
type counting struct {
	record.Keeper
	calls atomic.Int64
	most  int64
	end   context.CancelCauseFunc
}

func (c *counting) Record(ctx context.Context, b record.Batch) (record.Result, error) {
	c.count()
	return c.Keeper.Record(ctx, b)
}

func (c *counting) Bury(ctx context.Context, b record.Batch, cause string) (record.Result, error) {
	c.count()
	return c.Keeper.Bury(ctx, b, cause)
}

func (c *counting) count() {
	if n := c.calls.Add(1); n > c.most {
		c.end(fmt.Errorf("the recorder has called the ledger %d times", n))
	}
}

// forge appends an entry of an epoch that issues a number to a user.
func (d *desk) forge(epoch, number int64, user firstcome.UserID) {
	d.t.Helper()
	d.do("XADD", d.key("journal"), "*", "format", "1", "epoch", fmt.Sprint(epoch), "at", fmt.Sprint(time.Now().UnixMicro()), "terms", "1", "first", fmt.Sprint(number), "users", string(user))
}

// TestF50EntriesOfOtherEpochsAreDeadLettersAndTheRestIsRecorded puts entries of the epoch before, of this one and of the next among good ones. Some
// name numbers of other users: before the rebuild, since then, and later. Two are copies of entries that are recorded or whose numbers are lost.
func TestF50EntriesOfOtherEpochsAreDeadLettersAndTheRestIsRecorded(t *testing.T) {
	ledgers(t, func(t *testing.T, name string) {
		d := newDesk(t, services.Redis.Database(t), name, nil, "c")
		copies := d.issue("c", people("user-", 3)...)
		written := d.do("XRANGE", d.key("journal"), "-", "+")
		entry, err := written.AsXRange()
		stage.Must(t, err)
		d.settle(d.record(copies...), d.journalled()...)
		d.do("DEL", d.key("campaign")) // so that the rest of the quantity is lost
		stage.Same(t, "the epoch", int64(2), d.rebuilt(d.rebuilder()).Epoch)

		var coupons []firstcome.Coupon
		issue2 := func(user firstcome.UserID) { coupons = append(coupons, d.issue("c", user)...) }
		issue2("a") // 101
		words := []string{"XADD", d.key("journal"), "*"}
		for field, value := range entry[0].FieldValues {
			words = append(words, field, value)
		}
		d.do(words...)
		d.forge(1, 2, "taken-before")
		d.forge(1, 50, "lost")
		issue2("b") // 102
		d.forge(1, 101, "taken-since")
		d.forge(3, 102, "taken-since-too")
		d.forge(1, 103, "taken-later")
		d.forge(3, 103, "taken-later-too")
		issue2("c") // 103
		d.do("XADD", d.key("journal"), "*", "epoch", "1", "garbage", "")
		d.forge(1, 104, "never-taken")
		d.forge(3, 1<<40, "above")
		issue2("d") // 104
		first, last := coupons[0].Number, coupons[3].Number
		stage.Same(t, "the numbers", []int64{101, 104}, []int64{first, last})

		ctx, end := context.WithCancelCause(t.Context())
		keeper := &counting{Keeper: recovery.New(d.ledger.Recorder, d.ledger.Epochs, d.far.Recovery, recovery.NewWatch(nil), nil).Guard(d.ledger.Recorder), most: 60, end: end}
		alarms := make(stage.Alarms, 100)
		var looks atomic.Int64
		active := func(ctx context.Context) ([]gate.Revision, error) {
			looks.Add(1)
			return d.ledger.Recorder.Active(ctx)
		}
		journal := d.far.Journal.Consumer(redis.ConsumerOptions{Active: active, Sweep: 10 * time.Millisecond, Idle: 60 * time.Millisecond, OnAlarm: alarms.Raise})
		waiter := issue.NewWaiter(&gate.Router{Gate: d.remote.gate, Retired: d.ledger.Gate, Ledger: d.ledger.Recorder})
		stage.Run(t, waiter.Run, record.NewRecorder(journal, keeper, record.Options{Holes: d.remote.gate.journal, OnAlarm: alarms.Raise}).Run)
		for _, c := range coupons {
			stage.Same(t, fmt.Sprint("who waits for number ", c.Number), nil, waiter.Wait(ctx, nil, c))
			stage.Must(t, context.Cause(ctx))
		}
		stage.Await(t, "the end of the journal", 0, func() int { return len(d.journalled()) })
		calls, before := keeper.calls.Load(), looks.Load()
		stage.Await(t, "more looks", true, func() bool { return looks.Load() >= before+10 })
		if again := keeper.calls.Load(); again > calls+1 { // one more may tell the gate how far the campaign is drained
			t.Errorf("the ledger was called %d times, and then %d times more", calls, again-calls)
		}
		if len(alarms) > 0 {
			t.Errorf("an alarm: %v", <-alarms)
		}

		letters, err := d.ledger.Reads.DeadLetters(t.Context(), ledger.Letters{})
		stage.Must(t, err)
		causes := map[firstcome.UserID]string{}
		for _, l := range letters {
			causes[l.User] = l.CauseCode
			if l.Number != 0 {
				t.Errorf("a dead letter has number %d: %+v", l.Number, l)
			}
			if err := d.ledger.Recorder.Replay(t.Context(), "op", l.ID); err == nil || !strings.Contains(err.Error(), "it can only be voided") {
				t.Errorf("it is replayed: %v", err)
			}
		}
		stage.Same(t, "the causes", map[firstcome.UserID]string{
			"taken-before": "number_taken", "taken-since": "number_taken", "taken-since-too": "number_taken", "taken-later": "other_epoch", "taken-later-too": "other_epoch",
			"never-taken": "other_epoch", "above": "other_epoch", "": "unreadable",
		}, causes)
		found, err := d.ledger.Reads.AuditLog(t.Context(), ledger.LogFilter{Campaign: "c", User: "lost", Limit: 10})
		if err != nil || len(found) != 1 || found[0].Action != ledger.CouponLost || found[0].Number != 50 {
			t.Errorf("of the lost number the audit log has %+v, %v", found, err)
		}
		d.sound()
		stage.Same(t, "in force", int64(7), d.status().InForce)

		for _, l := range letters {
			stage.Must(t, d.ledger.Recorder.VoidLetter(t.Context(), "op", l.ID, "not ours"))
		}
		d.sound()
		stage.Same(t, "in force after the voids", int64(7), d.status().InForce)
		stage.Same(t, "their users claim, and number 102's user asks", []string{"issued:105", "issued:106", "already_issued:102"}, d.claims("never-taken", "taken-later", "b"))
		stage.Must(t, stage.Err(recovered(t, waiter, d, "taken-later")))
		d.sound()
	})
}

// recovered waits until a user's coupon is recorded.
func recovered(t *testing.T, waiter *issue.Waiter, d *desk, user firstcome.UserID) (firstcome.Coupon, error) {
	c, err := d.remote.gate.CouponOf(t.Context(), "c", user)
	stage.Must(t, err)
	return c, recorded(t, waiter, c)
}
