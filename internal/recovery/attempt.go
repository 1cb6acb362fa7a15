package recovery

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/flow"
	"github.com/firstcome/firstcome/internal/point"
)

// rebuild makes one attempt at a campaign in an epoch, 0: whichever.
func (r *Machine) rebuild(ctx context.Context, actor string, id firstcome.CampaignID, why error, epoch int64) (Rebuilt, error) {
	attempt, err := r.book.BeginRebuild(ctx, actor, id, epoch)
	if err != nil {
		return Rebuilt{}, err
	}
	return r.attempt(ctx, attempt, why, nil)
}

// attempt goes on with an attempt that has begun. bring, if not nil, does what comes after the freeze, and returns the sink of the journal.
func (r *Machine) attempt(ctx context.Context, attempt Rebuild, why error, bring bring) (Rebuilt, error) {
	started, id := time.Now(), attempt.Campaign
	r.stats.begun.Add(1)
	r.note(id, errUnfinished)
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	last := r.signs(ctx, attempt, cancel)
	fill, loaded, err := r.steps(ctx, attempt, bring, last)
	if err != nil && ctx.Err() != nil {
		err = errors.Join(err, context.Cause(ctx))
	}
	done := Rebuilt{
		Campaign: id, Epoch: fill.Epoch, Lost: fill.Lost, Carried: loaded.People, LostPlaces: fill.LostPlaces,
		Took: time.Since(started), Why: why, Err: err,
	}
	if err != nil {
		r.stats.failed.Add(1)
		r.note(id, cmp.Or(why, flow.ErrUnverified)) // the next look finds what it is
		r.giveUp(ctx, attempt)
	} else {
		r.stats.finished.Add(1)
		r.stats.lost.Add(fill.Lost)
		r.note(id, nil)
		r.Refuse(id, nil)
	}
	if r.hears.Rebuilt != nil {
		r.hears.Rebuilt(done)
	}
	return done, err
}

// giveUp lets another attempt begin at once. If it fails, that happens a little later.
func (r *Machine) giveUp(ctx context.Context, attempt Rebuild) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), signEvery)
	defer cancel()
	_ = r.book.GiveUpRebuild(ctx, attempt)
}

// signs sends heartbeats until ctx ends, and ends the attempt when another has begun. last runs the act that ends the attempt in the
// ledger, and no heartbeat runs beside it. Once it succeeds, no heartbeat follows: it would find no attempt, and cut the switch off.
func (r *Machine) signs(ctx context.Context, attempt Rebuild, end func(error)) (last func(act func() error) error) {
	ctx, silence := context.WithCancel(ctx)
	turn := make(chan struct{}, 1) // full while a heartbeat or the last act runs
	go func() {
		defer silence()
		for sleep(ctx, signEvery) == nil {
			turn <- struct{}{}
			if ctx.Err() == nil {
				if err := r.book.GoesOn(ctx, attempt); errors.Is(err, ErrOutdone) {
					end(err)
				}
			}
			<-turn
		}
	}()
	return func(act func() error) error {
		turn <- struct{}{}
		defer func() { <-turn }()
		err := act()
		if err == nil {
			silence()
		}
		return err
	}
}

// A bring does what a reconcile does after the freeze, and returns the sink of the frozen journal.
type bring func(ctx context.Context, frozen *Frozen) (flow.Sink, error)

// steps are those of one attempt; last is that of signs.
func (r *Machine) steps(ctx context.Context, attempt Rebuild, bring bring, last func(func() error) error) (fill Refill, loaded Loaded, err error) {
	point.Reach(point.Begun)
	if err := r.gate.Room(ctx, attempt); err != nil {
		return fill, loaded, err
	}
	frozen, err := r.gate.Freeze(ctx, attempt)
	if err != nil {
		return fill, loaded, err
	}
	point.Reach(point.Frozen)
	at := time.Now()
	to := r.sink
	if bring != nil {
		to, err = bring(ctx, &frozen)
	} else {
		err = r.frozenAhead(ctx, attempt, frozen)
	}
	if err != nil {
		return fill, loaded, err
	}
	for range reloads {
		// The frozen journal stays as it is until the switch. A ledger that failed over since it was emptied gets it again.
		if err = r.gate.Empty(ctx, attempt, to); err != nil {
			return fill, loaded, err
		}
		point.Reach(point.Emptied)
		if loaded, err = r.load(ctx, attempt, frozen.Line); err != nil {
			return fill, loaded, err
		}
		point.Reach(point.Loaded)
		if err := sleep(ctx, time.Until(at.Add(leasesEnd))); err != nil {
			return fill, loaded, err
		}
		point.Reach(point.Waited)
		err = last(func() (err error) {
			fill, err = r.book.FinishRebuild(ctx, attempt, loaded, frozen)
			return err
		})
		if errors.Is(err, ErrMoved) {
			continue
		}
		if err != nil {
			return fill, loaded, err
		}
		if !frozen.OpenedAt.IsZero() && (fill.OpenedAt.IsZero() || frozen.OpenedAt.Before(fill.OpenedAt)) {
			fill.OpenedAt = frozen.OpenedAt
		}
		if !frozen.SoldOutAt.IsZero() {
			fill.SoldOutAt = frozen.SoldOutAt
		}
		point.Reach(point.Ended)
		if err = r.gate.Switch(ctx, attempt, frozen, loaded, fill); err == nil {
			point.Reach(point.Switched)
		}
		return fill, loaded, err
	}
	return fill, loaded, fmt.Errorf("%w, %d times: rebuild when fewer coupons are voided", ErrMoved, reloads)
}

// load loads what the ledger has, and who of the frozen gate's line is still in line by it. A generation that sent its people away, as the
// ledger knows, is over: a gate that does not know it is older.
func (r *Machine) load(ctx context.Context, attempt Rebuild, line firstcome.Line) (l Loaded, err error) {
	put, end, err := r.gate.Loading(ctx, attempt)
	if err != nil {
		return l, err
	}
	l.Mark, err = r.book.Refills(ctx, attempt.Campaign, func(c firstcome.Coupon) error {
		if c.VoidedAt.IsZero() {
			l.Most++
			if !c.Buried {
				l.Least++
			}
		}
		return put(c)
	})
	if err == nil {
		err = end()
	}
	if err == nil && line.Generation > l.Ended {
		l.Carried, err = r.gate.Carry(ctx, attempt, max(line.Generation, l.Generation)+1)
	}
	return l, err
}

// sleep waits for so long, or until ctx ends, whose error it then returns.
func sleep(ctx context.Context, long time.Duration) error {
	select {
	case <-time.After(long):
	case <-ctx.Done():
	}
	return ctx.Err()
}
