package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/flow"
	"github.com/firstcome/firstcome/internal/ledger"
	"github.com/firstcome/firstcome/internal/redis"
	"github.com/firstcome/firstcome/test/seed"
	"github.com/firstcome/firstcome/test/services"
)

// A trial is two nodes of one campaign and all that happens to it, by a seed.
type trial struct {
	t        *testing.T
	mail     *mail
	random   *rand.Rand
	nodes    []*desk
	recorded []*flow.Recorded
	last     firstcome.Coupon
	waited   map[int64]firstcome.Coupon // for which somebody waited, by number
	// known are the numbers of replayed dead letters of which the gate was told.
	known   sync.Map
	waiting sync.WaitGroup
	answers [2]atomic.Int64 // recorded, unrecorded
}

func newTrial(t *testing.T) *trial {
	url, name := services.Redis.Database(t), services.MariaDB.Database(t)
	r := &trial{
		t: t, random: seed.Rand(t, "what happens"), mail: &mail{random: seed.Rand(t, "mail")},
		nodes: []*desk{newDeskAt(t, url, name, "c"), newDeskAt(t, url, name)}, waited: map[int64]firstcome.Coupon{},
	}
	var runs []func(context.Context) error
	for _, d := range r.nodes {
		recorded := flow.NewRecorded(&flow.Over{RemoteGate: dull{d.remote.gate, r.mail}, Book: d.ledger})
		journal := d.remote.gate.Journal(redis.JournalOptions{
			Active: d.ledger.Active, Coupons: 7, Sweep: 10 * time.Millisecond, Idle: 60 * time.Millisecond, Slow: 30 * time.Millisecond,
		})
		recorder := flow.NewRecorder(crashing{journal, r.mail}, picky{d.ledger, r.mail}, flow.RecorderLimits{Wait: 20 * time.Millisecond, Probe: 20 * time.Millisecond})
		r.recorded = append(r.recorded, recorded)
		runs = append(runs, recorded.Run, recorder.Run)
	}
	runUntilTheEnd(t, runs...)
	return r
}

func (r *trial) node() *desk { return r.nodes[r.random.IntN(len(r.nodes))] }

// claim has some users claim, and each wait at a node for what it was given. It tells
// whether the campaign is open.
func (r *trial) claim() (open bool) {
	var users []firstcome.UserID
	for range 1 + r.random.IntN(5) {
		if user := firstcome.UserID(fmt.Sprint("user-", r.random.IntN(400))); !slices.Contains(users, user) {
			users = append(users, user)
		}
	}
	d := r.node()
	decisions, err := d.remote.gate.Claim(r.t.Context(), "c", users)
	if err != nil {
		r.t.Fatal(err)
	}
	for _, one := range decisions {
		open = open || one.Outcome != firstcome.Closed && one.Outcome != firstcome.AlreadyIssued
		switch c := one.Coupon; {
		case c.Number == 0:
		case c.Recorded:
			r.isCoupon(d, c)
		default:
			if c.Number > r.last.Number {
				r.last = c
			}
			r.waited[c.Number] = c
			at := r.random.IntN(len(r.nodes))
			r.waiting.Go(func() { r.wait(at, c) })
		}
	}
	return open
}

// wait waits for a coupon at a node, and looks whether the answer is true.
func (r *trial) wait(at int, c firstcome.Coupon) {
	_, told := r.known.Load(c.Number)
	ctx, cancel := context.WithTimeout(context.Background(), 60*time.Second)
	defer cancel()
	err := r.recorded[at].Wait(ctx, c)
	switch d := r.nodes[at]; {
	case err == nil:
		r.answers[0].Add(1)
		r.isCoupon(d, c)
	case !errors.Is(err, flow.ErrUnrecorded):
		r.t.Errorf("who waits for number %d got no answer: %v", c.Number, err)
	case told:
		r.t.Errorf("number %d is unrecorded after the gate was told that it was replayed", c.Number)
	default:
		r.answers[1].Add(1)
		if all := r.letters(ledger.Letters{Settled: true}); !slices.ContainsFunc(all, func(l ledger.DeadLetter) bool { return l.Number == c.Number }) {
			r.t.Errorf("number %d was said to be a dead letter", c.Number)
		}
	}
}

var errFound = errors.New("found")

// isCoupon expects that the ledger has a coupon, voided or not.
func (r *trial) isCoupon(d *desk, c firstcome.Coupon) {
	err := d.ledger.Coupons(context.Background(), "c", ledger.Page{After: c.Number - 1, Limit: 1, Voided: true}, func(known firstcome.Coupon) error {
		if known.Number == c.Number && known.User == c.User && known.Code == c.Code {
			return errFound
		}
		return nil
	})
	if !errors.Is(err, errFound) {
		r.t.Errorf("number %d of %s was said to be recorded: %v", c.Number, c.User, err)
	}
}

func (r *trial) letters(p ledger.Letters) []ledger.DeadLetter {
	all, err := r.nodes[0].ledger.DeadLetters(context.Background(), p)
	if err != nil {
		r.t.Error(err)
	}
	return all
}

// replay replays an open dead letter, and tells the gate now, or later, or never. Once it
// is told, who waited for the number asks again, at every node.
func (r *trial) replay(l ledger.DeadLetter) {
	d := r.node()
	settled, err := d.ledger.Replay(r.t.Context(), "op", l.ID)
	if errors.Is(err, flow.ErrRefused) {
		return // the user holds another by now, say
	}
	if err != nil {
		r.t.Fatal(err)
	}
	r.mail.post(settled)
	if r.mail.chance(3) {
		return
	}
	r.settle(d, settled)
	r.known.Store(l.Number, true)
	if c, ok := r.waited[l.Number]; ok {
		for at := range r.nodes {
			r.waiting.Go(func() { r.wait(at, c) })
		}
	}
}

func (r *trial) settle(d *desk, settled flow.Settled) {
	if err := d.remote.gate.Settle(r.t.Context(), "c", settled); err != nil {
		r.t.Fatal(err)
	}
}

// change makes a numbered change at a node and brings it to the gate.
func (r *trial) change(do func(*desk) error) {
	d := r.node()
	err := flow.NewChanger(d.ledger, d.remote.gate, nil).Do(r.t.Context(), "c", func() (int64, error) { return 0, do(d) })
	for _, fine := range []error{firstcome.ErrNoCoupon, firstcome.ErrAlreadyVoided, firstcome.ErrNotRecorded, firstcome.ErrSettledLetter} {
		if errors.Is(err, fine) {
			return
		}
	}
	if err != nil {
		r.t.Fatal(err)
	}
}

// step does one thing.
func (r *trial) step() {
	ctx := r.t.Context()
	open := r.letters(ledger.Letters{})
	switch what := r.random.IntN(20); {
	case what < 10:
		r.claim()
	case what < 13:
		if settled, ok := r.mail.one(); ok {
			r.settle(r.node(), settled)
		}
	case what < 15 && len(open) > 0:
		r.replay(open[r.random.IntN(len(open))])
	case what < 16 && len(open) > 0:
		l := open[r.random.IntN(len(open))]
		r.change(func(d *desk) error {
			_, err := d.ledger.VoidLetter(ctx, "op", l.ID, "a trial")
			return err
		})
	case what < 18 && r.last.Number > 0:
		number := 1 + r.random.Int64N(r.last.Number)
		r.change(func(d *desk) error {
			_, err := d.ledger.Void(ctx, "op", "c", number, "a trial")
			return err
		})
	case what == 18 && r.random.IntN(6) == 0:
		r.close(time.Now().Add(-time.Hour))
		for range r.random.IntN(5) {
			r.claim()
		}
		r.close(time.Time{})
		for !r.claim() {
			continue // it stays closed for as long as a node may say that it is
		}
	default:
		r.claim()
	}
}

// close has the campaign close at an instant, or never.
func (r *trial) close(at time.Time) {
	r.change(func(d *desk) error {
		_, err := d.ledger.SetTerms(r.t.Context(), "op", "c", 0, func(terms *firstcome.Terms) {
			terms.ClosesAt = at
		})
		return err
	})
}

// end lets all that is under way come to its end, and holds the gate against the ledger.
func (r *trial) end() {
	r.mail.mu.Lock()
	r.mail.fair = true
	r.mail.mu.Unlock()
	r.waiting.Wait()
	d := r.nodes[0]
	ctx, cancel := context.WithTimeout(r.t.Context(), 60*time.Second)
	defer cancel()
	for lag := []flow.Lag{{}}; len(lag) > 0; {
		active, err := d.ledger.Active(ctx)
		if err == nil {
			lag, err = d.remote.gate.Lag(ctx, active)
		}
		if err != nil {
			r.t.Fatalf("%v: %+v", err, lag)
		}
	}
	again, err := d.ledger.Record(ctx, "c", nil) // as an operator does whose replay the gate did not hear of
	r.settle(d, d.must(again, err))
	r.agree()
	for range 50 {
		if settled, ok := r.mail.one(); ok {
			r.settle(r.node(), settled)
		}
	}
	r.agree()
}

// agree expects that the gate has as unrecorded what are dead letters and no coupons.
func (r *trial) agree() {
	var numbers, want []int64
	for n := range r.last.Number {
		numbers = append(numbers, n+1)
	}
	coupons := map[int64]bool{}
	if err := r.nodes[0].ledger.Coupons(r.t.Context(), "c", ledger.Page{Voided: true}, func(c firstcome.Coupon) error {
		coupons[c.Number] = true
		return nil
	}); err != nil {
		r.t.Fatal(err)
	}
	for _, l := range r.letters(ledger.Letters{Settled: true}) {
		if !coupons[l.Number] {
			want = append(want, l.Number)
		}
	}
	slices.Sort(want)
	got, err := r.nodes[1].remote.gate.SettledThrough(r.t.Context(), "c", numbers)
	slices.Sort(got.Unrecorded)
	if err != nil || got.Through != r.last.Number || !slices.Equal(got.Unrecorded, want) {
		r.t.Errorf("the gate is settled through %d of %d, %v are unrecorded, want %v, %v", got.Through, r.last.Number, got.Unrecorded, want, err)
	}
	if len(coupons)+len(want) != int(r.last.Number) {
		r.t.Errorf("%d coupons and %d dead letters of %d numbers", len(coupons), len(want), r.last.Number)
	}
}

// TestF18F23WhatIsAnsweredOfANumberIsTrueWhateverBecomesOfItsSettling does by a seed what
// callers, recorders and operators of two nodes do, while recorders die between the
// ledger and the gate, and what is settled comes to the gate late, twice, or never.
func TestF18F23WhatIsAnsweredOfANumberIsTrueWhateverBecomesOfItsSettling(t *testing.T) {
	r := newTrial(t)
	for range 400 {
		r.step()
	}
	r.end()
	t.Logf("%d numbers, %d answers of recorded, %d of unrecorded", r.last.Number, r.answers[0].Load(), r.answers[1].Load())
}
