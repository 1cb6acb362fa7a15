// Package line serves waiting lines as fast as their pace allows, and copies the places that users are told into a log.
package line

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/gate"
	"github.com/firstcome/firstcome/internal/point"
	"github.com/firstcome/firstcome/internal/wait"
)

// Options bound a Dispatcher. The zero value of a field means its default.
type Options struct {
	Batch int           // the most people that one call serves; default 512
	Calls int           // calls of gate.Line.Serve at once; default 8
	Gate  time.Duration // how long a call may take; default 5s
	// OnServe, if not nil, is called after each call of gate.Line.Serve.
	OnServe func(id firstcome.CampaignID, served gate.Served, took time.Duration, err error)
	// OnLook, if not nil, gets the error of each failed search for lines.
	OnLook func(error)
}

const (
	// serveEvery is the pause between two calls for a busy line. A pace of 500 a second has 10 turns due by then. A full bucket holds five times as
	// many turns, so a call that is late by less than that loses none.
	serveEvery = 20 * time.Millisecond
	// restEvery is the longest pause of a node whose calls find nothing due because another node serves the line. It is short enough that the node
	// takes over before the bucket is full.
	restEvery = 50 * time.Millisecond
	// lookEvery is how often a node searches for lines that it does not know. It is also, plus at most a quarter, its longest pause for a line that
	// cannot be served for an unknown time.
	lookEvery = time.Second
	// A call that fails is repeated after firstFail, and then after twice as long each time, up to longestFail.
	firstFail   = 50 * time.Millisecond
	longestFail = 5 * time.Second
	// defaultCalls is two thirds of a node's 12 connections to a database server: claims that join a line need the others.
	defaultCalls = 8
)

// A Dispatcher serves the waiting lines of a gate: it issues coupons to the next users in line as fast as the pace allows. Any number of nodes may
// have one, without a leader or a lock between them: each call of gate.Line.Serve is one transaction, which also keeps the pace. Make one with
// NewDispatcher.
//
// A campaign has a goroutine here while users are in its line:
//
//	        Joined, Changed, a search            the line is empty
//	(none) ────────────────────────▶ serving ────────────────────▶ (none)
//	                                  │   ▲
//	                  nothing is due  ▼   │ it is due, or Changed, or a second has passed
//	                                 waiting
type Dispatcher struct {
	line    gate.Line
	options Options
	calls   chan struct{} // a semaphore of calls under way
	wake    chan struct{} // users joined a line that no goroutine here serves

	mu    sync.Mutex // guards what follows
	lines map[firstcome.CampaignID]*dispatch

	served, ended, failed atomic.Int64
}

// A dispatch is a line that a Dispatcher knows.
type dispatch struct {
	id      firstcome.CampaignID
	running bool          // a goroutine here serves it
	more    bool          // a user may have joined since the last call began
	changed chan struct{} // has room for one signal
	waiting int64         // users in line after the last call
}

// Stats are a Dispatcher's counters since its start, and its current state.
type Stats struct {
	Served int64 // coupons that this node issued to users in line
	Ended  int64 // generations that ended with one of this node's calls
	Failed int64 // calls that failed
	// Lines and Waiting count the lines that are not empty, and the users in them, as of the last call for each.
	Lines, Waiting int64
}

// NewDispatcher returns a Dispatcher of the lines of a gate.
func NewDispatcher(line gate.Line, options Options) *Dispatcher {
	if options.Batch <= 0 {
		options.Batch = gate.DefaultBatch
	}
	if options.Calls <= 0 {
		options.Calls = defaultCalls
	}
	if options.Gate <= 0 {
		options.Gate = gate.DefaultTimeout
	}
	return &Dispatcher{
		line: line, options: options, calls: make(chan struct{}, options.Calls), wake: make(chan struct{}, 1),
		lines: map[firstcome.CampaignID]*dispatch{},
	}
}

// Joined notes that a user is in a campaign's line. It does not wait.
func (d *Dispatcher) Joined(id firstcome.CampaignID) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.of(id).more = true
}

// Changed notes that an operator changed a campaign, so its line may be due sooner. It does not wait.
func (d *Dispatcher) Changed(id firstcome.CampaignID) {
	d.mu.Lock()
	defer d.mu.Unlock()
	one := d.of(id)
	one.more = true
	wait.Wake(one.changed)
}

// of returns a line's dispatch, and makes Run start a goroutine for it if none runs. mu is held.
func (d *Dispatcher) of(id firstcome.CampaignID) *dispatch {
	one := d.lines[id]
	if one == nil {
		one = &dispatch{id: id, changed: make(chan struct{}, 1)}
		d.lines[id] = one
	}
	if !one.running {
		wait.Wake(d.wake)
	}
	return one
}

// Stats returns the counters.
func (d *Dispatcher) Stats() Stats {
	s := Stats{Served: d.served.Load(), Ended: d.ended.Load(), Failed: d.failed.Load()}
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, one := range d.lines {
		if one.waiting > 0 {
			s.Lines++
			s.Waiting += one.waiting
		}
	}
	return s
}

// Lines returns the campaigns whose lines are not empty, as Stats counts them.
func (d *Dispatcher) Lines() (ids []firstcome.CampaignID) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for id, one := range d.lines {
		if one.waiting > 0 {
			ids = append(ids, id)
		}
	}
	return ids
}

// Run serves until ctx ends. Then it waits for the calls under way, which take no longer than options.Gate. A call is one transaction, so no user is
// left half served.
func (d *Dispatcher) Run(ctx context.Context) error {
	var all sync.WaitGroup
	defer all.Wait()
	look := time.NewTimer(0)
	defer look.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-d.wake:
		case <-look.C:
			all.Go(func() { // beside the select: the gate may not answer
				d.look(ctx)
				look.Reset(lookEvery + wait.Jitter(lookEvery/8))
			})
		}
		d.mu.Lock()
		for _, one := range d.lines {
			if !one.running {
				one.running = true
				all.Go(func() { d.serve(ctx, one) })
			}
		}
		d.mu.Unlock()
	}
}

// look finds the campaigns whose lines are not empty.
func (d *Dispatcher) look(ctx context.Context) {
	bounded, cancel := context.WithTimeout(ctx, d.options.Gate)
	defer cancel()
	var found []firstcome.CampaignID
	err := d.line.Lines(bounded, func(id firstcome.CampaignID) { found = append(found, id) })
	if err != nil && ctx.Err() == nil {
		d.failed.Add(1)
		if d.options.OnLook != nil {
			d.options.OnLook(err)
		}
	}
	for _, id := range found {
		d.Joined(id)
	}
}

// serve serves a line until it is empty or ctx ends.
func (d *Dispatcher) serve(ctx context.Context, one *dispatch) {
	failures := wait.NewBackoff(firstFail, longestFail)
	rest := serveEvery
	for {
		served, err := d.call(ctx, one)
		if ctx.Err() != nil {
			return
		}
		var idle time.Duration
		switch {
		case errors.Is(err, firstcome.ErrNoCampaign), errors.Is(err, firstcome.ErrGateMismatch):
			if d.leave(one) { // this node has no such line, or cannot serve it
				return
			}
		case err != nil:
			idle = failures.NextBackOff()
		case served.Waiting == 0 && d.leave(one):
			return
		default:
			failures.Reset()
			idle, rest = d.pause(served, rest)
		}
		if !d.rest(ctx, one, idle) {
			return
		}
	}
}

// pause returns how long to wait after a call, and the next value of rest. It waits at least serveEvery, so that turns that become due one by one are
// served together. A node that finds nothing due, because another node is quicker, calls less often. But it calls once a second in any case: another
// node may have moved the due time, such as the opening, and ended before it served.
func (d *Dispatcher) pause(served gate.Served, rest time.Duration) (idle, next time.Duration) {
	longest := lookEvery + wait.Jitter(lookEvery/8)
	switch {
	case served.Waiting == 0, len(served.Coupons) >= d.options.Batch: // a user joined during the call; or more turns may be due
		return 0, serveEvery
	case served.Again == 0:
		return longest, serveEvery
	case len(served.Coupons) > 0:
		return min(longest, max(served.Again, serveEvery)), serveEvery
	}
	return min(longest, max(served.Again, rest)), min(2*rest, restEvery)
}

// rest waits for a duration, or until an operator changes the campaign. It returns false if ctx ends.
func (d *Dispatcher) rest(ctx context.Context, one *dispatch, wait time.Duration) bool {
	if wait == 0 {
		return true
	}
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
	case <-one.changed:
	}
	return true
}

// call serves a line once. At most options.Calls calls run at a time; the others wait in order.
func (d *Dispatcher) call(ctx context.Context, one *dispatch) (gate.Served, error) {
	select {
	case d.calls <- struct{}{}:
		defer func() { <-d.calls }()
	case <-ctx.Done():
		return gate.Served{}, ctx.Err()
	}
	d.mu.Lock()
	one.more = false
	d.mu.Unlock()
	bounded, cancel := context.WithTimeout(context.WithoutCancel(ctx), d.options.Gate)
	defer cancel()
	started := time.Now()
	served, err := d.line.Serve(bounded, one.id, d.options.Batch)
	if d.options.OnServe != nil {
		d.options.OnServe(one.id, served, time.Since(started), err)
	}
	if err != nil {
		if !errors.Is(err, firstcome.ErrNoCampaign) {
			d.failed.Add(1)
		}
		return served, err
	}
	if len(served.Coupons) > 0 {
		point.Reach(point.Served)
	}
	d.served.Add(int64(len(served.Coupons)))
	if served.Ended != "" {
		d.ended.Add(1)
	}
	d.mu.Lock()
	one.waiting = served.Waiting
	d.mu.Unlock()
	return served, nil
}

// leave forgets an empty line, unless a user may have joined since the last call began.
func (d *Dispatcher) leave(one *dispatch) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if one.more {
		return false
	}
	delete(d.lines, one.id)
	return true
}
