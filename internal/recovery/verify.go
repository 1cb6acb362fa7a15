package recovery

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/gate"
)

// A Standard is what the ledger says that a gate has to be in.
type Standard struct {
	firstcome.Campaign // with the terms, the pause and the close as of a version
	Applied            int64
	Epoch              int64
	LastNumber         int64
	DrainedThrough     int64
	IssuedAt           time.Time // of the coupon with the highest number that the ledger has; zero: it has none
}

// errDiffers says that a gate is not what it was, so that only a rebuild makes it whole.
var errDiffers = errors.New("it is not what the ledger says")

// errFrozen says that a rebuild has frozen a gate.
var errFrozen = fmt.Errorf("%w: a rebuild has begun", errDiffers)

// errUnseen says that nobody has looked yet how the gate's server syncs. It restarted behind the last look; the next one tells.
var errUnseen = fmt.Errorf("%w: the gate's server has just started", firstcome.ErrGateUnavailable)

// witnessTime is how long a gate whose server restarted is not verified, for nodes that know better: each looks once a second, and needs
// a moment to begin a rebuild, which ends a verification.
const witnessTime = 2 * runsEvery

// verify has the gate decide a campaign again in the same epoch after its server restarted, if that is sure to have brought everything
// back: both runs of the server are durable, what the gate has agrees with the ledger, and no node was told more. An error says why not.
func (r *Machine) verify(ctx context.Context, a gate.Revision) error {
	s, err := r.gate.Stopped(ctx, a)
	if err != nil {
		return err
	}
	switch {
	case s.Frozen:
		return errFrozen
	case s.LastNumber < s.Told:
		return fmt.Errorf("%w: number %d is the last, and it gave number %d", errDiffers, s.LastNumber, s.Told)
	case s.Was == s.Is:
		return nil // another node was faster
	}
	for _, run := range []string{s.Was, s.Is} {
		durable, seen, err := r.book.DurableRun(ctx, run)
		switch {
		case err != nil:
			return err
		case !seen && run == s.Is:
			return errUnseen
		case !durable:
			return fmt.Errorf("%w: the server did not sync before it answered, or had a replica", errDiffers)
		}
	}
	want, err := r.book.Standard(ctx, a.Campaign, s.Version)
	if err == nil {
		err = s.meets(want)
	}
	if err == nil {
		err = hasJournal(ctx, r.book, r.gate, a, s)
	}
	if err == nil {
		err = hasHolders(ctx, r.book, r.gate, a)
	}
	if err == nil && want.Answer == firstcome.Decided { // otherwise nobody is told more than the ledger knows
		err = sleep(ctx, time.Until(r.sight.from().Add(witnessTime)))
	}
	if err != nil {
		return err
	}
	return r.gate.Verified(ctx, a, s)
}

// meets compares the gate's terms and counters with the ledger's.
func (s *Stopped) meets(want Standard) error {
	switches := s.Paused == want.Paused && s.Closed == want.Closed
	terms := s.Quantity == want.Quantity && s.OpensAt.Equal(want.OpensAt) && s.ClosesAt.Equal(want.ClosesAt)
	switch {
	case s.Version != want.Applied && s.Version != want.Version || s.Epoch != want.Epoch:
		return fmt.Errorf("%w: version %d of epoch %d", errDiffers, s.Version, s.Epoch)
	case !switches || !terms || !s.lined(want.Terms):
		return fmt.Errorf("%w: other terms", errDiffers)
	case s.DecidedAt.Before(want.IssuedAt):
		return fmt.Errorf("%w: it decided last at %v, and the ledger has a coupon of %v", errDiffers, s.DecidedAt, want.IssuedAt)
	case s.LastNumber < want.LastNumber || s.LastNumber < want.DrainedThrough || s.DrainedThrough > want.DrainedThrough:
		return fmt.Errorf("%w: number %d is the last, and the ledger has %d", errDiffers, s.LastNumber, want.LastNumber)
	case s.Holders != s.InForce:
		return fmt.Errorf("%w: %d holders of %d coupons in force", errDiffers, s.Holders, s.InForce)
	}
	return nil
}

// lined tells whether the gate has the pace, the waitlist and the log of terms. A gate that never had a pace knows of none. Where the log is, a
// rebuild may have changed.
func (s *Stopped) lined(want firstcome.Terms) bool {
	if s.Line && (s.Log == nil) != (want.Log == nil) {
		return false
	}
	if s.Pace == nil || want.Pace == nil {
		return s.Pace == nil && want.Pace == nil
	}
	return *s.Pace == *want.Pace && s.Waitlist == want.Waitlist
}

// hasJournal holds that every number that the gate gave is in the ledger or in the journal.
func hasJournal(ctx context.Context, book Contents, gate Looks, r gate.Revision, s Stopped) error {
	missing := map[int64]bool{}
	for n := s.DrainedThrough + 1; n <= s.LastNumber; n++ {
		missing[n] = true
	}
	if len(missing) == 0 {
		return nil
	}
	// The journal comes first: what a recorder takes out of it meanwhile is in the ledger by then.
	err := gate.Unrecorded(ctx, r.Campaign, func(c firstcome.Coupon) error {
		delete(missing, c.Number)
		return nil
	})
	if err == nil {
		err = book.Numbered(ctx, string(r.Campaign), s.DrainedThrough, func(number int64) { delete(missing, number) })
	}
	if err == nil && len(missing) > 0 {
		err = fmt.Errorf("%w: %d numbers are neither in the journal nor in the ledger", errDiffers, len(missing))
	}
	return err
}

// hasHolders holds that everybody who has a coupon in force in the ledger, or an open dead letter, is a holder at the gate.
func hasHolders(ctx context.Context, book Contents, gate Holders, r gate.Revision) error {
	letters := map[firstcome.UserID]firstcome.Coupon{} // of whom no later coupon is in force
	var some []firstcome.Coupon
	absent := 0
	ask := func() error {
		held, err := gate.HoldsEach(ctx, r, some)
		for _, holds := range held {
			if !holds {
				absent++
			}
		}
		some = some[:0]
		return err
	}
	_, err := book.Refills(ctx, r.Campaign, func(c firstcome.Coupon) error {
		if !c.VoidedAt.IsZero() {
			return nil
		}
		if c.Buried {
			letters[c.User] = c
			return nil
		}
		delete(letters, c.User)
		if some = append(some, c); len(some) < 1000 {
			return nil
		}
		return ask()
	})
	for _, c := range letters {
		some = append(some, c)
	}
	if err == nil {
		err = ask()
	}
	if err == nil && absent > 0 {
		err = fmt.Errorf("%w: %d users who have coupons are no holders", errDiffers, absent)
	}
	return err
}
