package recovery

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/gate"
	"github.com/firstcome/firstcome/internal/wait"
)

// A LedgerState is the state that a gate must have, by the ledger.
type LedgerState struct {
	firstcome.Campaign // with the terms, the pause and the close at the requested version
	Applied            int64
	Epoch              int64
	LastNumber         int64
	DrainedThrough     int64
	IssuedAt           time.Time // when the ledger's coupon with the highest number was issued; zero if it has no coupon
}

// errDiffers means that a gate has lost data, so it must be rebuilt.
var errDiffers = errors.New("the gate does not match the ledger")

// errFrozen means that a rebuild has frozen the gate.
var errFrozen = fmt.Errorf("%w: a rebuild has begun", errDiffers)

// errUnseen means that no node has checked yet how the gate's server syncs. The server restarted after the last check, and the next check reports it.
var errUnseen = fmt.Errorf("%w: the gate's server has just started", firstcome.ErrGateUnavailable)

// witnessTime is how old a server's run must be before its gate is verified. Each node checks the runs once a second. A node that was told a higher
// number or ticket than the gate now has begins a rebuild then, so that the gate is not verified.
const witnessTime = 2 * runsEvery

// verify makes the gate continue in the same epoch after its server restarted, if it has certainly lost nothing. Then both runs of the server are
// durable, the gate agrees with the ledger, and no node was told a higher number. An error reports why the gate was not verified.
func (m *Machine) verify(ctx context.Context, a gate.Revision) error {
	s, err := m.gate.GateState(ctx, a)
	if err != nil {
		return err
	}
	switch {
	case s.Frozen:
		return errFrozen
	case s.forgot():
		return fmt.Errorf("%w: it is in epoch %d at version %d with the last number %d and the last ticket %d of generation %d, and knew more before: %+v",
			errDiffers, s.Epoch, s.Version, s.LastNumber, s.Ticket.Number, s.Ticket.Generation, s.Witness)
	case s.Was == s.Is:
		return nil // another node was faster
	}
	for _, run := range []string{s.Was, s.Is} {
		durable, seen, err := m.ledger.DurableRun(ctx, run)
		switch {
		case err != nil:
			return err
		case !seen && run == s.Is:
			return errUnseen
		case !durable:
			return fmt.Errorf("%w: the server did not sync before it answered, or had a replica", errDiffers)
		}
	}
	want, err := m.ledger.LedgerState(ctx, a.Campaign, s.Version)
	if err == nil {
		err = s.meets(want)
	}
	if err == nil {
		err = hasJournal(ctx, m.ledger, m.gate, a, s)
	}
	if err == nil {
		err = hasHolders(ctx, m.ledger, m.gate, a)
	}
	// Another node may know a number that both gate and ledger lack, if users are answered before their coupons are recorded, or a ticket: give it time
	// to object.
	if err == nil && (want.Answer == firstcome.Decided || s.Line) {
		err = wait.Sleep(ctx, time.Until(m.reached.from().Add(witnessTime)))
	}
	if err != nil {
		return err
	}
	return m.gate.Verified(ctx, a, s)
}

// forgot reports whether the gate knows less than it or the ledger told this node.
func (s *GateState) forgot() bool {
	return gate.Witness{Epoch: s.Epoch, Version: s.Version, Number: s.LastNumber, Ticket: s.Ticket}.Older(s.Witness)
}

// meets compares the gate's terms and counters with the ledger's.
func (s *GateState) meets(want LedgerState) error {
	switches := s.Paused == want.Paused && s.Closed == want.Closed
	terms := s.Quantity == want.Quantity && s.OpensAt.Equal(want.OpensAt) && s.ClosesAt.Equal(want.ClosesAt)
	switch {
	case s.Version != want.Applied && s.Version != want.Version || s.Epoch != want.Epoch:
		return fmt.Errorf("%w: it is at version %d of epoch %d", errDiffers, s.Version, s.Epoch)
	case !switches || !terms || !s.lined(want.Terms):
		return fmt.Errorf("%w: its terms differ", errDiffers)
	case s.DecidedAt.Before(want.IssuedAt):
		return fmt.Errorf("%w: its last decision was at %v, but the ledger has a coupon issued at %v", errDiffers, s.DecidedAt, want.IssuedAt)
	case s.LastNumber < want.LastNumber || s.LastNumber < want.DrainedThrough || s.DrainedThrough > want.DrainedThrough:
		return fmt.Errorf("%w: its last number is %d, the ledger's is %d", errDiffers, s.LastNumber, want.LastNumber)
	case s.Holders != s.InForce:
		return fmt.Errorf("%w: it has %d holders of %d coupons in force", errDiffers, s.Holders, s.InForce)
	}
	return nil
}

// lined reports whether the gate has the pace, the waitlist and the log of the terms. A gate that never had a pace has none of the three. It does not
// compare where the log is, because a rebuild may have changed that.
func (s *GateState) lined(want firstcome.Terms) bool {
	if s.Line && (s.Log == nil) != (want.Log == nil) {
		return false
	}
	if s.Pace == nil || want.Pace == nil {
		return s.Pace == nil && want.Pace == nil
	}
	return *s.Pace == *want.Pace && s.Waitlist == want.Waitlist
}

// hasJournal checks that every number that the gate has issued is in the ledger or in the journal.
func hasJournal(ctx context.Context, book Ledger, gate Gate, r gate.Revision, s GateState) error {
	missing := map[int64]bool{}
	for n := s.DrainedThrough + 1; n <= s.LastNumber; n++ {
		missing[n] = true
	}
	if len(missing) == 0 {
		return nil
	}
	// Read the journal first: a coupon that a recorder removes from it after that is already in the ledger.
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

// hasHolders checks that every user with a coupon in force in the ledger, or with an open dead letter, is a holder at the gate.
func hasHolders(ctx context.Context, book Ledger, gate Gate, r gate.Revision) error {
	letters := map[firstcome.UserID]firstcome.Coupon{} // whose users have no later coupon in force
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
		err = fmt.Errorf("%w: %d users with coupons in the ledger are not holders at the gate", errDiffers, absent)
	}
	return err
}
