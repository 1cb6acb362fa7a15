package record

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/sony/gobreaker/v2"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/point"
)

// recordAndSettle records a batch, and reports the ledger's answer to the gate through settle. The answer leaves out dead letters that the gate has already heard
// of. If the gate has not heard of some of them, recordAndSettle asks the ledger for those, too, and reports again.
func (r *Recorder) recordAndSettle(ctx context.Context, c *campaignState, b Batch, settle func(Result) (before int64, err error)) error {
	if b.LettersKnownThrough = c.lettersKnownThrough; len(b.Coupons) > 0 {
		point.Reach(point.Taken)
	}
	result, err := r.recordBatch(ctx, b)
	if err != nil {
		return err
	}
	if len(b.Coupons) > 0 && r.options.Holes != nil {
		c.follow(b.Coupons[0].Number, result.Through, r.options.Patience)
	}
	if result.Twice {
		_ = r.alarm(b.Campaign, errTwice)
	}
	for {
		before, err := settle(result)
		var knows *MissedLettersError
		switch {
		case err != nil && !errors.As(err, &knows):
			return r.alarm(b.Campaign, err)
		case err == nil:
			c.lettersKnownThrough = max(c.lettersKnownThrough, result.Through)
			point.Reach(point.Settled)
			return r.agrees(ctx, b, before, result.Through)
		}
		c.lettersKnownThrough = knows.Through
		more, err := r.recordBatch(ctx, Batch{Campaign: b.Campaign, CampaignUID: b.CampaignUID, LettersKnownThrough: c.lettersKnownThrough})
		if err != nil {
			return err
		}
		more.Letters = append(more.Letters, result.Letters...)
		result = more
	}
}

// agrees checks that the ledger still has what the gate was told to be drained. before is the number up to which the gate was told
// so. It may exceed through: another recorder may have got a later answer of the ledger, and told the gate first. If the ledger lacks those numbers
// now, it was rolled back.
func (r *Recorder) agrees(ctx context.Context, b Batch, before, through int64) error {
	if before <= through {
		return nil
	}
	now, err := r.recordBatch(ctx, Batch{Campaign: b.Campaign, CampaignUID: b.CampaignUID, LettersKnownThrough: before})
	if err == nil && now.Through < before {
		_ = r.alarm(b.Campaign, errOlder)
	}
	return err
}

// recordBatch records a batch, whose unreadable entries it buries. It raises an alarm if another node must take the batch, or if the campaign's row is
// locked.
func (r *Recorder) recordBatch(ctx context.Context, b Batch) (result Result, err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("record %d coupons of %s: %w", len(b.Coupons), b.Campaign, err)
		}
		if errors.Is(err, firstcome.ErrGateMismatch) || errors.Is(err, ErrRowLocked) {
			_ = r.alarm(b.Campaign, err)
		}
	}()
	garbage := Batch{Campaign: b.Campaign, Epoch: b.Epoch, Attempt: b.Attempt, CampaignUID: b.CampaignUID, LettersKnownThrough: b.LettersKnownThrough, Garbage: b.Garbage}
	if b.Garbage = nil; len(garbage.Garbage) > 0 {
		if result, err = r.bury(ctx, garbage, ""); err != nil {
			return Result{}, err
		}
	}
	if len(b.Coupons) > 0 || len(garbage.Garbage) == 0 || !b.Line.Empty() {
		if err := r.throttle(ctx, b.Campaign, len(b.Coupons)); err != nil {
			return Result{}, err
		}
		if result, err = r.recordHalving(ctx, b); err != nil {
			r.credit(b.Campaign, len(b.Coupons))
			return Result{}, err
		}
	}
	r.stats.batches.Add(1)
	return result, nil
}

// recordHalving records coupons in their order. If the ledger refuses a batch, recordHalving halves it until the refused coupon is alone, and buries that one.
func (r *Recorder) recordHalving(ctx context.Context, b Batch) (Result, error) {
	about := LedgerCall{Campaign: b.Campaign, Coupons: len(b.Coupons)}
	if len(b.Coupons) > 0 {
		about.Oldest = b.Coupons[0].IssuedAt
	}
	result, err := r.callLedger(ctx, about, func(ctx context.Context) (Result, error) { return r.keeper.Record(ctx, b) })
	switch {
	case err == nil:
		point.Reach(point.Committed)
		r.stats.coupons.Add(int64(len(b.Coupons)) - result.Lost)
		r.stats.late.Add(result.Lost)
		if r.options.OnRecorded != nil && result.Lost == 0 && len(result.Letters) == 0 {
			r.options.OnRecorded(b.Campaign, b.Coupons)
		}
		return result, nil
	case !errors.Is(err, ErrRefused) || len(b.Coupons) == 0 && b.Line.Empty():
		return Result{}, err
	case len(b.Coupons) <= 1:
		return r.bury(ctx, b, err.Error())
	}
	first, second := b, b
	first.Coupons, second.Coupons = b.Coupons[:len(b.Coupons)/2], b.Coupons[len(b.Coupons)/2:]
	before, err := r.recordHalving(ctx, first)
	if err != nil {
		return Result{}, err
	}
	second.LettersKnownThrough = max(b.LettersKnownThrough, before.Through) // the result of the first half has the letters up to there
	result, err = r.recordHalving(ctx, second)
	for _, c := range before.Letters {
		is := func(k firstcome.Coupon) bool { return k.Number == c.Number && k.User == c.User }
		if !slices.ContainsFunc(result.Letters, is) {
			result.Letters = append(result.Letters, c)
		}
	}
	result.Through, result.LettersKnownThrough = max(before.Through, result.Through), b.LettersKnownThrough
	result.Twice, result.Lost = before.Twice || result.Twice, before.Lost+result.Lost
	return result, err
}

func (r *Recorder) bury(ctx context.Context, b Batch, cause string) (Result, error) {
	letters := len(b.Coupons) + len(b.Garbage)
	result, err := r.callLedger(ctx, LedgerCall{Campaign: b.Campaign, Letters: letters}, func(ctx context.Context) (Result, error) {
		return r.keeper.Bury(ctx, b, cause)
	})
	if err == nil {
		r.stats.letters.Add(int64(letters))
	}
	return result, err
}

// callLedger calls the ledger through the breaker, with a time-out. While the breaker is open, a campaign that has failed waits and keeps its batch. If
// it gave the batch back, all campaigns' entries would be read repeatedly while nothing can be recorded. A campaign that has not failed calls the ledger
// although the breaker is open, because damaged rows of other campaigns may have opened it.
func (r *Recorder) callLedger(ctx context.Context, about LedgerCall, call func(context.Context) (Result, error)) (Result, error) {
	once := func() (Result, error) {
		ctx, cancel := context.WithTimeout(ctx, r.options.Ledger)
		defer cancel()
		started := time.Now()
		result, err := call(ctx)
		about.Took, about.Err, about.Late = time.Since(started), err, result.Lost
		if r.options.OnCall != nil {
			r.options.OnCall(about)
		}
		if err != nil && !errors.Is(err, ErrRefused) && !errors.Is(err, firstcome.ErrGateMismatch) {
			r.stats.retries.Add(1) // the source will return the batch again
		}
		return result, err
	}
	for waits := r.again.waits(); ; {
		result, err := r.breaker.Execute(once)
		if !errors.Is(err, gobreaker.ErrOpenState) && !errors.Is(err, gobreaker.ErrTooManyRequests) {
			return result, err
		}
		if r.again.shelf(about.Campaign) == free {
			return once()
		}
		if err := waits.Pause(ctx); err != nil {
			return Result{}, err
		}
	}
}

// throttle waits until the limit of Rows allows this many coupons of a campaign. Coupons that waited and were not recorded do not wait again:
// otherwise a campaign whose row is locked would use up the rate of all others.
func (r *Recorder) throttle(ctx context.Context, id firstcome.CampaignID, coupons int) error {
	if r.rows == nil {
		return nil
	}
	r.mu.Lock()
	coupons -= r.paid[id]
	delete(r.paid, id)
	r.mu.Unlock()
	for coupons > 0 {
		some := min(coupons, r.rows.Burst())
		if err := r.rows.WaitN(ctx, some); err != nil {
			return err
		}
		coupons -= some
	}
	return nil
}

// credit notes that coupons passed throttle and were not recorded.
func (r *Recorder) credit(id firstcome.CampaignID, coupons int) {
	if r.rows != nil {
		r.mu.Lock()
		r.paid[id] = coupons
		r.mu.Unlock()
	}
}

// alarm raises an alarm about an error of one campaign, and returns the error.
func (r *Recorder) alarm(id firstcome.CampaignID, err error) error {
	if err != nil && !errors.Is(err, ErrSource) {
		r.alarms.Raise(id, err)
	}
	return err
}

// NewSink returns a Sink into a keeper. It halves batches that the keeper refuses, and buries the refused coupons, as a Recorder does.
func NewSink(k Keeper) Sink { return NewRecorder(nil, k, Options{}).recordBatch }
