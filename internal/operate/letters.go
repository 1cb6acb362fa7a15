package operate

import (
	"context"
	"errors"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/gate"
	"github.com/firstcome/firstcome/internal/ledger"
	"github.com/firstcome/firstcome/internal/record"
)

// MostLetters is the most dead letters that one call resolves. Each takes a transaction of its own and, if it is voided, a change at the gate. At 20
// ms each that is four seconds, within the time-out of a console page.
const MostLetters = 200

// Resolved is the result of ReplayLetters or VoidLetters.
type Resolved struct {
	Done    int     // letters that this call replayed or voided
	Refused []int64 // ids of letters that the ledger refuses as before, which stay open
	// After is the id up to which every letter was tried. To continue, call again with it as Letters.After.
	After int64
	// Remaining is how many open letters of the selection were above After when the call began.
	Remaining int64
	// Stopped is why the call ended early, or nil. gate.ErrUnfinished means that the letter After is voided in the ledger and not
	// yet at the gate. Any other error is about the next letter, which is unchanged.
	Stopped error
}

// Replay records the coupon of a dead letter, and returns the letter. The gate need not be told: see gate.Progress.Has.
func (o *Operator) Replay(ctx context.Context, actor string, letter int64) (ledger.DeadLetter, error) {
	return o.resolve(ctx, letter, o.replay(ctx, actor))
}

// VoidLetter resolves a dead letter permanently, and returns it: its coupon's stock returns, as with Void.
func (o *Operator) VoidLetter(ctx context.Context, actor string, letter int64, reason string) (ledger.DeadLetter, error) {
	return o.resolve(ctx, letter, o.voidLetter(ctx, actor, reason))
}

// ReplayLetters replays up to MostLetters open letters of a selection, oldest first. An error means that none was resolved, unless the ledger's
// answer was lost.
func (o *Operator) ReplayLetters(ctx context.Context, actor string, of ledger.Letters) (Resolved, error) {
	return o.resolveAll(ctx, of, o.replay(ctx, actor))
}

// VoidLetters voids up to MostLetters open letters of a selection, oldest first. An error means that none was resolved, unless the ledger's answer
// was lost.
func (o *Operator) VoidLetters(ctx context.Context, actor string, of ledger.Letters, reason string) (Resolved, error) {
	return o.resolveAll(ctx, of, o.voidLetter(ctx, actor, reason))
}

func (o *Operator) resolve(ctx context.Context, letter int64, do func(ledger.DeadLetter) error) (ledger.DeadLetter, error) {
	d, err := o.ledger.DeadLetter(ctx, letter)
	if err == nil {
		err = do(d)
	}
	if err != nil {
		return ledger.DeadLetter{}, err
	}
	return o.ledger.DeadLetter(ctx, letter)
}

func (o *Operator) resolveAll(ctx context.Context, of ledger.Letters, do func(ledger.DeadLetter) error) (Resolved, error) {
	of.Limit, of.Resolved = MostLetters, false
	letters, all, err := o.ledger.LettersToResolve(ctx, of)
	done := Resolved{After: of.After, Remaining: all}
	for n := 0; n < len(letters) && err == nil && done.Stopped == nil; n++ {
		d := letters[n]
		if err = ctx.Err(); err == nil {
			err = do(d)
		}
		switch {
		case err == nil:
			done.Done++
		case errors.Is(err, gate.ErrUnfinished) && !errors.Is(err, firstcome.ErrPending): // it is voided in the ledger
			done.Done++
			done.Stopped, err = err, nil
		case errors.Is(err, record.ErrRefused):
			done.Refused, err = append(done.Refused, d.ID), nil
		case errors.Is(err, firstcome.ErrResolvedLetter): // another operator was faster
			err = nil
		case n > 0:
			done.Stopped = err
			return done, nil
		default:
			return done, err
		}
		done.After = d.ID
		done.Remaining--
	}
	return done, err
}

func (o *Operator) replay(ctx context.Context, actor string) func(ledger.DeadLetter) error {
	return func(d ledger.DeadLetter) error {
		if err := o.newest(ctx, d.Campaign); err != nil {
			return err
		}
		return o.ledger.Replay(ctx, actor, d.ID)
	}
}

func (o *Operator) voidLetter(ctx context.Context, actor, reason string) func(ledger.DeadLetter) error {
	return func(d ledger.DeadLetter) error {
		void := func() (int64, error) { return 0, o.ledger.VoidLetter(ctx, actor, d.ID, reason) }
		if d.Number == 0 { // it has no coupon, so no campaign changes
			_, err := void()
			return err
		}
		return o.change(ctx, d.Campaign, void)
	}
}
