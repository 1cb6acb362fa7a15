package record_test

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/gate"
	"github.com/firstcome/firstcome/internal/record"
	"github.com/firstcome/firstcome/test/stage"
)

// TestAGateThatHasLostDeadLettersIsToldAllOfThem makes a gate forget dead letters that its recorder reported.
func TestAGateThatHasLostDeadLettersIsToldAllOfThem(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j, p := &stage.Journal{}, stage.NewLedger("c")
		p.Refuses = func(c firstcome.Coupon) bool { return c.Number == 2 || c.Number == 5 }
		var told []record.Result
		j.Took = func(d record.Result) error {
			if told = append(told, d); len(told) == 2 {
				return &record.MissedLettersError{Through: 0}
			}
			return nil
		}
		for from := int64(1); from < 7; from += 3 {
			j.Add(record.Batch{Campaign: "c", Coupons: stage.Coupons("c", from, from+2)})
		}
		recordAll(t, j, p, record.Options{})
		if len(told) != 3 || told[1].LettersKnownThrough != 3 || told[2].LettersKnownThrough != 0 || told[2].Through != 6 {
			t.Fatalf("the gate was told %+v", told)
		}
		numbers := map[int64]bool{}
		for _, c := range told[2].Letters {
			numbers[c.Number] = true
		}
		if !numbers[2] || !numbers[5] {
			t.Errorf("in the end the gate was told of the dead letters %v", told[2].Letters)
		}
	})
}

// An ahead is a journal whose gate is drained further than the ledger answers.
type ahead struct {
	*stage.Journal
	through int64
}

func (a ahead) Ack(ctx context.Context, receipt any, d record.Result) (int64, error) {
	_, err := a.Journal.Ack(ctx, receipt, d)
	return a.through, err
}

func TestALedgerThatLacksWhatTheGateWasToldIsAnAlarm(t *testing.T) {
	for through, want := range map[int64]error{3: nil, 4: gate.ErrLedgerRolledBack} {
		synctest.Test(t, func(t *testing.T) {
			j, p, alarms := ahead{&stage.Journal{}, through}, stage.NewLedger("c"), make(stage.Alarms, 9)
			j.Add(record.Batch{Campaign: "c", Coupons: stage.Coupons("c", 1, 3)})
			runFor(t, record.NewRecorder(j, p, record.Options{OnAlarm: alarms.Raise}), time.Minute)
			var told error
			if len(alarms) > 0 {
				told = <-alarms
			}
			if !errors.Is(told, want) {
				t.Errorf("the gate knows %d to be drained: told %v", through, told)
			}
		})
	}
}

// A leaky journal has lost its first coupons, and may report that.
type leaky struct {
	*stage.Journal
	says  atomic.Bool
	asked atomic.Int64 // calls of Missing
	told  atomic.Int64 // how far the gate knows that the campaign is drained
}

func (l *leaky) Next(ctx context.Context, id firstcome.CampaignID) (record.Batch, any, error) {
	if l.says.Swap(false) {
		return record.Batch{}, nil, record.HoleError("somebody deleted it")
	}
	return l.Journal.Next(ctx, id)
}

// Missing implements record.Holes.
func (l *leaky) Missing(context.Context, firstcome.CampaignID) (record.Batch, error) {
	l.asked.Add(1)
	return record.Batch{Campaign: "c", Epoch: 1, Coupons: stage.Coupons("c", 1, 3)}, nil
}

// Settle implements record.Holes.
func (l *leaky) Settle(_ context.Context, _ firstcome.CampaignID, _ string, d record.Result, _ ...string) (int64, error) {
	return l.told.Swap(d.Through), nil
}

// TestF43WhatASourceHasLostIsRecordedFromTheHolders covers a source that reports a loss, and one that does not know about it, whose first numbers
// never come. Soon after that, nothing is recorded from the holders again. A relay never records from them.
func TestF43WhatASourceHasLostIsRecordedFromTheHolders(t *testing.T) {
	for name, test := range map[string]struct {
		says, relay bool
		recorded    int
		told        string
	}{
		"it says so":          {says: true, recorded: 9, told: "somebody deleted it; 3 coupons from number 1 on are recorded from the gate's holders"},
		"numbers do not come": {recorded: 9, told: "numbers are missing; 3 coupons from number 1 on"},
		"a relay":             {says: true, relay: true, recorded: 6, told: "somebody deleted it"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l, p, alarms := &leaky{Journal: &stage.Journal{}}, stage.NewLedger("c"), make(stage.Alarms, 9)
				limits := record.Options{OnAlarm: alarms.Raise, Holes: l}
				if test.relay {
					limits.Holes = nil
				}
				stage.Run(t, record.NewRecorder(l, p, limits).Run)
				for n := range int64(6) {
					l.says.Store(test.says)
					l.Add(record.Batch{Campaign: "c", Epoch: 1, Coupons: stage.Coupons("c", 4+n, 4+n)})
					time.Sleep(3 * time.Second) // all of them are longer than the patience
				}
				stage.Same(t, "recorded", test.recorded, len(p.Coupons("c")))
				if len(alarms) != 1 {
					t.Fatalf("there were %d alarms", len(alarms))
				}
				if err := <-alarms; !strings.Contains(err.Error(), test.told) {
					t.Errorf("the alarm says %v", err)
				}
				if asked, told := l.asked.Load(), l.told.Load(); asked == 1 == test.relay || told == 0 != test.relay {
					t.Errorf("the gate was asked %d times for what is missing, and told of %d", asked, told)
				}
			})
		})
	}
}

// A clinging journal says that it has removed batches, and returns them again.
type clinging struct{ *stage.Journal }

func (clinging) Ack(context.Context, any, record.Result) (int64, error) { return 0, nil }

// TestF50ABatchThatComesAgainAndAgainRestsAndIsAnAlarm counts the calls of the ledger in a minute.
func TestF50ABatchThatComesAgainAndAgainRestsAndIsAnAlarm(t *testing.T) {
	for name, b := range map[string]record.Batch{
		"coupons": {Campaign: "c", Epoch: 1, Coupons: stage.Coupons("c", 1, 3)},
		"garbage": {Campaign: "c", Garbage: []record.Garbage{{Source: "journal/1", Payload: "?", Cause: "?"}}},
		"a line":  {Campaign: "c", Epoch: 1, Line: gate.LineReport{Line: firstcome.Line{Generation: 1, LastTicket: 1}}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				j, p, alarms := clinging{&stage.Journal{}}, stage.NewLedger("c"), make(stage.Alarms, 9)
				calls := 0
				p.Before = func(record.Batch) error {
					if calls++; calls > 1000 {
						return errors.New("too many calls") // so that the test ends
					}
					return nil
				}
				j.Add(b)
				runFor(t, record.NewRecorder(j, p, record.Options{OnAlarm: alarms.Raise}), time.Minute)
				if calls < 10 || calls > 100 { // it rests for 1 to 3 seconds
					t.Errorf("in a minute the ledger was called %d times", calls)
				}
				if len(alarms) == 0 {
					t.Fatal("there is no alarm")
				}
				if err := <-alarms; !strings.Contains(err.Error(), "the same entries again") {
					t.Errorf("the alarm is %v", err)
				}
			})
		})
	}
}
