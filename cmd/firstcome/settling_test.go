//go:build !check

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
	"github.com/firstcome/firstcome/internal/gate"
	"github.com/firstcome/firstcome/internal/issue"
	"github.com/firstcome/firstcome/internal/ledger"
	"github.com/firstcome/firstcome/internal/record"
	"github.com/firstcome/firstcome/internal/redis"
	"github.com/firstcome/firstcome/test/seed"
	"github.com/firstcome/firstcome/test/services"
	"github.com/firstcome/firstcome/test/stage"
)

// A trial is a campaign with two nodes, and the events that a seed chooses for it.
type trial struct {
	t       *testing.T
	mail    *mail
	random  *rand.Rand
	nodes   []*desk
	waiters []*issue.Waiter
	last    firstcome.Coupon
	waited  map[int64]firstcome.Coupon // coupons for which a caller waited, by number
	// known are the numbers of replayed dead letters.
	known   sync.Map
	waiting sync.WaitGroup
	answers [2]atomic.Int64 // recorded, unrecorded
}

func newTrial(t *testing.T) *trial {
	url, name := services.Redis.Database(t), services.MariaDB.Database(t)
	r := &trial{
		t: t, random: seed.Rand(t, "what happens"), mail: &mail{random: seed.Rand(t, "mail")},
		nodes: []*desk{newDesk(t, url, name, nil, "c"), newDesk(t, url, name, nil)}, waited: map[int64]firstcome.Coupon{},
	}
	var runs []func(context.Context) error
	for _, d := range r.nodes {
		waiter := issue.NewWaiter(&gate.Router{Gate: dull{d.remote.gate.Gate, r.mail}, Retired: d.ledger.Gate, Ledger: d.ledger.Recorder})
		journal := d.far.Journal.Consumer(redis.ConsumerOptions{
			Active: d.ledger.Recorder.Active, Coupons: 7, Sweep: 10 * time.Millisecond, Idle: 60 * time.Millisecond, Slow: 30 * time.Millisecond,
		})
		recorder := record.NewRecorder(crashing{journal, r.mail}, picky{d.ledger.Recorder, r.mail}, record.Options{Holes: d.remote.gate.journal, Wait: 20 * time.Millisecond, Probe: 20 * time.Millisecond})
		r.waiters = append(r.waiters, waiter)
		runs = append(runs, waiter.Run, recorder.Run)
	}
	stage.Run(t, runs...)
	return r
}

func (r *trial) node() *desk { return r.nodes[r.random.IntN(len(r.nodes))] }

// claim claims for some users, and each waits at a node for the recording of the coupon. It reports whether the campaign is open.
func (r *trial) claim() (open bool) {
	var users []firstcome.UserID
	for range 1 + r.random.IntN(5) {
		if user := firstcome.UserID(fmt.Sprint("user-", r.random.IntN(400))); !slices.Contains(users, user) {
			users = append(users, user)
		}
	}
	d := r.node()
	decisions, err := d.remote.gate.Claim(r.t.Context(), "c", users)
	stage.Must(r.t, err)
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

// wait waits for a coupon at a node, and checks whether the answer is true.
func (r *trial) wait(at int, c firstcome.Coupon) {
	_, told := r.known.Load(c.Number)
	ctx, cancel := context.WithTimeout(context.Background(), 60*time.Second)
	defer cancel()
	err := r.waiters[at].Wait(ctx, nil, c)
	switch d := r.nodes[at]; {
	case err == nil:
		r.answers[0].Add(1)
		r.isCoupon(d, c)
	case !errors.Is(err, issue.ErrUnrecorded):
		r.t.Errorf("who waits for number %d got no answer: %v", c.Number, err)
	case told:
		r.t.Errorf("number %d is unrecorded after it was replayed", c.Number)
	default:
		r.answers[1].Add(1)
		if all := r.letters(ledger.Letters{Resolved: true}); !slices.ContainsFunc(all, func(l ledger.DeadLetter) bool { return l.Number == c.Number }) {
			r.t.Errorf("number %d was said to be a dead letter", c.Number)
		}
	}
}

var errFound = errors.New("found")

// isCoupon expects that the ledger has a coupon, voided or not.
func (r *trial) isCoupon(d *desk, c firstcome.Coupon) {
	err := d.ledger.Reads.Coupons(context.Background(), "c", ledger.Page{After: c.Number - 1, Limit: 1, Voided: true}, func(known firstcome.Coupon) error {
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
	all, err := r.nodes[0].ledger.Reads.DeadLetters(context.Background(), p)
	if err != nil {
		r.t.Error(err)
	}
	return all
}

// replay replays an open dead letter. Each caller who waited for the number asks again, at every node.
func (r *trial) replay(l ledger.DeadLetter) {
	err := r.node().ledger.Recorder.Replay(r.t.Context(), "op", l.ID)
	if errors.Is(err, record.ErrRefused) {
		return // for example because the user holds another coupon by now
	}
	stage.Must(r.t, err)
	r.known.Store(l.Number, true)
	if c, ok := r.waited[l.Number]; ok {
		for at := range r.nodes {
			r.waiting.Go(func() { r.wait(at, c) })
		}
	}
}

// change makes a numbered change at a node and applies it at the gate.
func (r *trial) change(do func(*desk) error) {
	d := r.node()
	err := gate.NewChanger(d.ledger.Campaigns, d.remote.gate, nil).Do(r.t.Context(), "c", func() (int64, error) { return 0, do(d) })
	for _, fine := range []error{firstcome.ErrNoCoupon, firstcome.ErrAlreadyVoided, firstcome.ErrNotRecorded, firstcome.ErrResolvedLetter} {
		if errors.Is(err, fine) {
			return
		}
	}
	stage.Must(r.t, err)
}

// step does one thing.
func (r *trial) step() {
	ctx := r.t.Context()
	open := r.letters(ledger.Letters{})
	switch what := r.random.IntN(20); {
	case what < 10:
		r.claim()
	case what < 13:
		if late, ok := r.mail.one(); ok {
			r.node().settle(late)
		}
	case what < 15 && len(open) > 0:
		r.replay(open[r.random.IntN(len(open))])
	case what < 16 && len(open) > 0:
		l := open[r.random.IntN(len(open))]
		r.change(func(d *desk) error { return d.ledger.Recorder.VoidLetter(ctx, "op", l.ID, "a trial") })
	case what < 18 && r.last.Number > 0:
		number := 1 + r.random.Int64N(r.last.Number)
		r.change(func(d *desk) error {
			_, err := d.ledger.Campaigns.Void(ctx, "op", "c", number, "a trial")
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

// close sets the closing time of the campaign, or none.
func (r *trial) close(at time.Time) {
	r.change(func(d *desk) error {
		_, err := d.ledger.Campaigns.SetTerms(r.t.Context(), "op", "c", 0, func(terms *firstcome.Terms) {
			terms.ClosesAt = at
		})
		return err
	})
}

// end waits until all work has ended, and compares the gate with the ledger.
func (r *trial) end() {
	r.mail.mu.Lock()
	r.mail.fair = true
	r.mail.mu.Unlock()
	r.waiting.Wait()
	d := r.nodes[0]
	ctx, cancel := context.WithTimeout(r.t.Context(), 60*time.Second)
	defer cancel()
	for lag := []record.Lag{{}}; len(lag) > 0; {
		active, err := d.ledger.Recorder.Active(ctx)
		if err == nil {
			lag, err = d.remote.gate.journal.Lag(ctx, active)
		}
		if err != nil {
			r.t.Fatalf("%v: %+v", err, lag)
		}
	}
	r.agree()
	for range 50 {
		if late, ok := r.mail.one(); ok {
			r.node().settle(late)
		}
	}
	r.agree()
}

// agree expects that every number has left the journal, as a coupon or a dead letter, and that the gate reports only coupons as certainly recorded.
func (r *trial) agree() {
	through, err := r.nodes[1].remote.gate.DrainedThrough(r.t.Context(), "c")
	if err != nil || through != r.last.Number {
		r.t.Errorf("the gate is drained through %d of %d, %v", through, r.last.Number, err)
	}
	coupons := map[int64]bool{}
	if err := r.nodes[0].ledger.Reads.Coupons(r.t.Context(), "c", ledger.Page{Voided: true}, func(c firstcome.Coupon) error {
		coupons[c.Number] = true
		return nil
	}); err != nil {
		r.t.Fatal(err)
	}
	letters := 0
	for _, l := range r.letters(ledger.Letters{Resolved: true}) {
		if coupons[l.Number] {
			continue
		}
		letters++
		c := r.waited[l.Number]
		if has, err := r.nodes[1].remote.gate.Has(r.t.Context(), "c", []firstcome.Coupon{c}); err != nil || has[0] {
			r.t.Errorf("the gate calls number %d recorded, %v", c.Number, err)
		}
	}
	if len(coupons)+letters != int(r.last.Number) {
		r.t.Errorf("%d coupons and %d dead letters of %d numbers", len(coupons), letters, r.last.Number)
	}
}

// TestF18F23WhatIsAnsweredOfANumberIsTrueWhateverBecomesOfItsSettling acts, by a seed, as callers, recorders and operators of two nodes. Recorders die
// between the ledger and the gate, and their reports reach the gate late, twice, or never.
func TestF18F23WhatIsAnsweredOfANumberIsTrueWhateverBecomesOfItsSettling(t *testing.T) {
	r := newTrial(t)
	for range 400 {
		r.step()
	}
	r.end()
	t.Logf("%d numbers, %d answers of recorded, %d of unrecorded", r.last.Number, r.answers[0].Load(), r.answers[1].Load())
}
