package load

import (
	"context"
	"math"
	"sync"
	"sync/atomic"
	"time"
)

// An Ask claims for the user with an index, and waits a limited time for the answer.
type Ask func(user int) Answer

// A record is a claim and its times, since the start of the run.
type record struct {
	user     uint32
	due      time.Duration // when it should have been sent, from which latency counts
	sent     time.Duration
	received time.Duration
	answer   Answer
}

// A driver runs the workers through the plan.
type driver struct {
	Options
	order   []uint32
	start   time.Time
	next    atomic.Int64 // index into order of the next claim to be sent
	stopped atomic.Bool  // ctx ended
	sent    atomic.Int64 // claims, without repeats
	cut     atomic.Bool  // more were left to send when ctx ended
}

// grace is how much later than Duration a claim may be sent that was due before: as much as timers on a busy machine need. Otherwise a server that
// does not keep up would be asked until it has answered all claims that were ever due.
const grace = time.Second

// Drive sends claims with c.Concurrency workers, each with an Ask of its own from worker, and returns the figures. c must be complete. When ctx ends,
// no more claims are sent.
func Drive(ctx context.Context, c Options, worker func() Ask) *Result {
	d := &driver{Options: c, order: plan(c)}
	defer context.AfterFunc(ctx, func() { d.stopped.Store(true) })()
	workers := min(c.Concurrency, len(d.order))
	records := make([][]record, workers)
	for n := range records {
		// Workers get about the same number of claims, so a quarter more is usually enough.
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

// unsent returns how many claims of the open loop were due within Duration and never sent, because no worker was free.
func (d *driver) unsent() int64 {
	if d.Rate == 0 || d.Duration == 0 || d.cut.Load() {
		return 0
	}
	due := math.Ceil(d.Rate * d.Duration.Seconds())
	return max(0, int64(min(due, float64(len(d.order))))-d.sent.Load())
}

// endless is longer than any run. Later times would overflow a Duration.
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
			// It is due at its own time: if no worker is free by then, its latency already counts.
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

// claim sends a claim, repeats it while its outcome is unknown, and records every attempt.
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

// late reports whether it is too late to send a claim.
func (d *driver) late() bool { return d.Duration > 0 && time.Since(d.start) > d.Duration+grace }

// until waits for a time of the run, and reports whether it came before ctx ended. Go's timers fire up to a millisecond late on an idle machine, and
// the latency includes that. Sleeping in the kernel for each claim was tried: the median becomes more exact by that, and the generator takes half as
// much again from the server's cores.
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

// report calls Progress with the number of claims sent, until over is closed.
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
