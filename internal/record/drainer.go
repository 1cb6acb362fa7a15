package record

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/gate"
)

const (
	defaultWorkers  = 4
	defaultPatience = 10 * time.Second
	// finishing is how long a batch under way may continue after a Recorder was told to stop: a hundred times what a batch takes, and less than
	// callers wait for its coupons.
	finishing = 2 * time.Second
	// refillEvery is the shortest time between two times at which a campaign's missing numbers are recorded from the gate's holders. refillAtOnce is
	// how many of them are recorded in one call.
	refillEvery  = time.Minute
	refillAtOnce = 2000
)

// errGap means that numbers below recorded numbers have been missing for longer than Options.Patience.
const errGap = HoleError("numbers between recorded numbers are missing")

// errOlder means that the ledger was rolled back.
var errOlder = fmt.Errorf("%w: the gate was told that numbers are recorded which the ledger does not have, so the ledger is older than it was: firstcome gate reconcile with the campaign copies the gate's coupons into the ledger", gate.ErrLedgerRolledBack)

// errStuck means that a source does not let go of a batch.
var errStuck = errors.New("the journal returned the same entries again after the ledger had taken them and the journal had removed them, so nothing else of the campaign is recorded: see that the gate and the ledger are in one epoch")

// Run records until ctx ends. Then it finishes the batches under way, for at most two seconds: otherwise callers who wait for their coupons would
// wait until another recorder takes the batches over.
func (r *Recorder) Run(ctx context.Context) error {
	for waits := r.again.waits(); ; {
		started := time.Now()
		r.drain(ctx)
		if ctx.Err() != nil {
			return nil
		}
		if time.Since(started) > r.options.Wait {
			waits.Reset()
		}
		r.stats.retries.Add(1)
		if waits.Pause(ctx) != nil {
			return nil
		}
	}
}

// drain drains many campaigns at the same time, until ctx ends or the source as a whole fails. It watches the source until the last batch is done.
func (r *Recorder) drain(ctx context.Context) {
	working, stop := context.WithCancel(ctx)
	watching, unwatch := context.WithCancel(context.WithoutCancel(ctx))
	on := newAgenda(r.again.shelf)
	var work, watch sync.WaitGroup
	watch.Go(func() {
		defer stop()
		_ = r.source.Watch(watching, on.add) // the source itself reports its error to an operator
	})
	for of, workers := range [shelves]int{free: r.options.Workers, failing: r.options.Workers, locked: 1} {
		for range workers {
			work.Go(func() {
				defer stop()
				r.work(working, on, shelf(of))
			})
		}
	}
	work.Wait()
	unwatch()
	watch.Wait()
}

// work drains the campaigns of a shelf in turn, one batch of each, until ctx ends or the source as a whole fails. A campaign that fails rests.
func (r *Recorder) work(ctx context.Context, on *agenda, of shelf) {
	for {
		id, ok := on.next(ctx, of)
		if !ok {
			return
		}
		longer, done := outlasting(ctx, finishing)
		more, err := r.drainBatch(longer, id)
		done()
		switch {
		case err == nil:
			r.again.succeeded(id)
			on.done(id, more)
		case errors.Is(err, ErrSource):
			return
		default:
			on.rest(id, r.again.failed(id, err))
		}
	}
}

// drainBatch drains one batch of a campaign, and records numbers that are known to be missing. more means that the campaign may have more to drain.
func (r *Recorder) drainBatch(ctx context.Context, id firstcome.CampaignID) (more bool, err error) {
	c := r.campaign(id)
	b, receipt, err := r.source.Next(ctx, id)
	var hole HoleError
	switch {
	case errors.As(err, &hole):
		c.lacks(hole)
	case err != nil || receipt == nil && c.hole == "":
		return false, r.alarm(id, err)
	case receipt != nil:
		err := r.recordAndSettle(ctx, c, b, func(d Result) (int64, error) { return r.source.Ack(ctx, receipt, d) })
		if err == nil {
			err = r.alarm(id, c.advances(b))
		}
		if err != nil {
			return false, err
		}
	}
	return true, r.fill(ctx, c, id)
}

// campaign returns the state of a campaign.
func (r *Recorder) campaign(id firstcome.CampaignID) *campaignState {
	r.mu.Lock()
	defer r.mu.Unlock()
	c := r.campaigns[id]
	if c == nil {
		c = &campaignState{}
		r.campaigns[id] = c
	}
	return c
}

// fill records missing numbers from the gate's holders, and raises an alarm.
func (r *Recorder) fill(ctx context.Context, c *campaignState, id firstcome.CampaignID) error {
	switch {
	case c.hole == "":
		return nil
	case r.options.Holes == nil:
		_ = r.alarm(id, c.hole)
		c.hole = ""
		return nil
	}
	missing, err := r.options.Holes.Missing(ctx, id)
	if err != nil {
		return r.alarm(id, err)
	}
	from := ""
	if len(missing.Coupons) > 0 {
		from = fmt.Sprintf(" from number %d on", missing.Coupons[0].Number)
	}
	_ = r.alarm(id, fmt.Errorf("%w; %d coupons%s are recorded from the gate's holders", c.hole, len(missing.Coupons), from))
	for some := range slices.Chunk(missing.Coupons, refillAtOnce) {
		b := missing
		b.Coupons = some
		err := r.recordAndSettle(ctx, c, b, func(d Result) (int64, error) { return r.options.Holes.Settle(ctx, id, b.CampaignUID, d) })
		if err != nil {
			return err
		}
	}
	c.hole, c.missing, c.filled = "", time.Time{}, time.Now()
	return nil
}

// outlasting returns a context that ends a duration after its parent.
func outlasting(parent context.Context, by time.Duration) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(parent))
	stop := context.AfterFunc(parent, func() { time.AfterFunc(by, cancel) })
	return ctx, func() {
		stop()
		cancel()
	}
}
