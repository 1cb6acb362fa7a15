package load

import (
	"context"
	"math"
	"sync"
	"sync/atomic"
	"time"
)

// An Ask claims for the user of an index and waits for the answer, for a bounded time.
type Ask func(user int) Answer

// A record is a claim and when it was made, since the start of the run.
type record struct {
	user     uint32
	due      time.Duration // when it should have been sent: latency counts from here
	sent     time.Duration
	received time.Duration
	answer   Answer
}

// A driver runs the workers through the plan.
type driver struct {
	Config
	order   []uint32
	start   time.Time
	next    atomic.Int64 // index into order of the next claim to be sent
	stopped atomic.Bool  // ctx ended
	sent    atomic.Int64 // claims, without those asked again
	cut     atomic.Bool  // there were more to send when ctx ended
}

// grace is how much later than the duration a claim may be sent that was due before: what a timer
// and a busy machine take. A server that does not keep up with the rate would else be asked until it
// has answered all that was ever due.
const grace = time.Second

// Drive asks by as many workers as c.Concurrency, each with an Ask of its own that
// worker makes, and returns the figures. c must be complete. When ctx ends, no more
// claims are sent.
func Drive(ctx context.Context, c Config, worker func() Ask) *Result {
	d := &driver{Config: c, order: plan(c)}
	defer context.AfterFunc(ctx, func() { d.stopped.Store(true) })()
	workers := min(c.Concurrency, len(d.order))
	records := make([][]record, workers)
	for n := range records {
		// Workers get about the same number of claims; a quarter more seldom grows.
		records[n] = make([]record, 0, len(d.order)/workers*5/4+16)
	}
	over := make(chan struct{})
	var reporting, working sync.WaitGroup
	d.start = time.Now()
	if c.Progress != nil {
		reporting.Go(func() { d.report(over) })
	}
	for n := range workers {
		working.Go(func() { records[n] = d.work(ctx, worker(), records[n]) })
	}
	working.Wait()
	close(over)
	reporting.Wait()
	r := figures(c, d.start, records)
	r.Interrupted, r.Unsent = d.cut.Load(), d.unsent()
	r.Thresholds, r.Warnings = thresholds(c, r), warnings(r)
	return r
}

// unsent returns how many claims of the open loop were due in the duration and never sent, because
// no worker was free.
func (d *driver) unsent() int64 {
	if d.Rate == 0 || d.Duration == 0 || d.cut.Load() {
		return 0
	}
	due := math.Ceil(d.Rate * d.Duration.Seconds())
	return max(0, int64(min(due, float64(len(d.order))))-d.sent.Load())
}

// endless is longer than any run; what is due later has no room in a Duration.
const endless = 100 * 365 * 24 * time.Hour

// work sends claims until none is left.
func (d *driver) work(ctx context.Context, ask Ask, records []record) []record {
	pause := time.NewTimer(0)
	defer pause.Stop()
	for {
		n := d.next.Add(1) - 1
		if n >= int64(len(d.order)) {
			break
		}
		if d.stopped.Load() {
			d.cut.Store(true)
			break
		}
		due := time.Since(d.start)
		switch {
		case d.Due != nil:
			due = d.Due(n)
		case d.Rate > 0:
			// Due at its own instant: if no worker was free by then, its clock runs.
			due = time.Duration(min(float64(n)/d.Rate, endless.Seconds()) * float64(time.Second))
		}
		if d.Duration > 0 && due >= d.Duration {
			break
		}
		if !d.until(ctx, pause, due) {
			d.cut.Store(true)
			break
		}
		if d.late() {
			break
		}
		d.sent.Add(1)
		records = d.claim(ctx, ask, pause, record{user: d.order[n], due: due}, records)
	}
	return records
}

// claim sends a claim, again while its outcome is unknown, and records every sending.
func (d *driver) claim(ctx context.Context, ask Ask, pause *time.Timer, r record, records []record) []record {
	const first, longest = 50 * time.Millisecond, time.Second
	for again, wait := 0, first; ; again++ {
		r.sent = time.Since(d.start)
		r.answer = ask(int(r.user))
		r.received = time.Since(d.start)
		records = append(records, r)
		if r.answer.Outcome != 0 || again >= d.Again || !d.until(ctx, pause, r.received+wait) || d.late() {
			return records
		}
		wait = min(2*wait, longest)
	}
}

// late tells whether it is too late to send anything.
func (d *driver) late() bool { return d.Duration > 0 && time.Since(d.start) > d.Duration+grace }

// until waits for an instant of the run. It tells whether it came before ctx ended.
// Go's timers ring up to a millisecond late when little else goes on, which the
// latency has in it. Sleeping in the kernel for each claim was tried: the median is
// truer by that, and the generator takes half as much again from the server's cores.
func (d *driver) until(ctx context.Context, pause *time.Timer, at time.Duration) bool {
	wait := at - time.Since(d.start)
	if wait <= 0 {
		return true
	}
	pause.Reset(wait)
	select {
	case <-pause.C:
		return true
	case <-ctx.Done():
		return false
	}
}

const reportEvery = 100 * time.Millisecond

// report tells Progress how many claims were sent, until over is closed.
func (d *driver) report(over <-chan struct{}) {
	ticks := time.NewTicker(reportEvery)
	defer ticks.Stop()
	total := int64(len(d.order))
	for {
		d.Progress(min(d.next.Load(), total), total)
		select {
		case <-ticks.C:
		case <-over:
			d.Progress(min(d.next.Load(), total), total)
			return
		}
	}
}
