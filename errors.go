package firstcome

import (
	"errors"
	"fmt"
	"time"
)

// Errors that say for certain that nothing was decided or changed.
var (
	ErrNoCampaign     = errors.New("no such campaign")
	ErrNoCoupon       = errors.New("no such coupon")
	ErrCampaignExists = errors.New("a campaign with this id exists")
	ErrBelowInForce   = errors.New("the quantity is below the number of coupons in force")
	ErrClosed         = errors.New("the campaign was closed by an operator")
	ErrAlreadyVoided  = errors.New("the coupon was voided before")
	ErrStale          = errors.New("the campaign has changed since it was read")
	ErrPending        = errors.New("an earlier change of the campaign has not reached the gate yet")
	ErrNotRecorded    = errors.New("the ledger does not have this number yet: the gate may have issued it")
	ErrNoDeadLetter   = errors.New("no such dead letter")
	ErrNoTicket       = errors.New("the user never joined the campaign's waiting line, or is there no longer")
	ErrLineLogLost    = errors.New("the log of the campaign's waiting line lacks records, or is another topic")
	ErrLineLogAway    = errors.New("the log of waiting lines does not answer")
	ErrServed         = errors.New("the user holds a coupon, and waits no longer")
	ErrResolvedLetter = errors.New("the dead letter was replayed or voided before")
	ErrGateMismatch   = errors.New("this node has another gate, code secret or ledger than the campaign, or is too old for it")
)

// ErrBusy is every error that means for certain that nothing was decided, and that asking again is safe and may
// succeed soon. CauseOf reports which of its causes an error has.
var ErrBusy = errors.New("nothing was decided")

// The causes of ErrBusy.
var (
	ErrTooMany         = fmt.Errorf("%w: too many claims are waiting", ErrBusy)
	ErrGateUnavailable = fmt.Errorf("%w: the gate cannot decide now", ErrBusy)
	ErrGateFull        = fmt.Errorf("%w: the gate is full", ErrBusy)
	ErrLineFull        = fmt.Errorf("%w: the waiting line is full", ErrBusy)
	ErrStopping        = fmt.Errorf("%w: the node is stopping", ErrBusy)
)

// A Cause is the word for why nothing was decided. HTTP, metrics and figures share it.
type Cause string

// The causes. Busy is ErrTooMany, and every ErrBusy that is no other cause.
const (
	Busy            Cause = "busy"
	GateUnavailable Cause = "gate_unavailable"
	GateFull        Cause = "gate_full"
	LineFull        Cause = "line_full"
	Stopping        Cause = "stopping"
)

// CauseOf returns the cause of an ErrBusy, or "" if the error is none.
func CauseOf(err error) Cause {
	switch {
	case errors.Is(err, ErrGateFull):
		return GateFull
	case errors.Is(err, ErrLineFull):
		return LineFull
	case errors.Is(err, ErrStopping):
		return Stopping
	case errors.Is(err, ErrGateUnavailable):
		return GateUnavailable
	case errors.Is(err, ErrBusy):
		return Busy
	}
	return ""
}

// A FieldError says what is wrong with one field of a campaign's terms.
type FieldError struct {
	Field  string // as HTTP spells it: coupon.valid_for
	Reason string
}

func (e *FieldError) Error() string { return e.Field + ": " + e.Reason }

// Limits of terms.
const (
	MaxName    = 200       // bytes
	MaxReason  = 500       // characters, of the reason for a void
	MaxBenefit = 16 * 1024 // bytes of JSON
	maxValid   = 100 * 365 * 24 * time.Hour
)

// Check returns nil if the terms are allowed, otherwise every FieldError, joined.
func (t Terms) Check() error {
	var errs []error
	refuse := func(field, reason string, args ...any) {
		errs = append(errs, &FieldError{field, fmt.Sprintf(reason, args...)})
	}
	if t.Name == "" || len(t.Name) > MaxName {
		refuse("name", "must have 1 to %d bytes", MaxName)
	}
	if t.Quantity < 0 || t.Quantity > MaxQuantity && t.Quantity != Unlimited {
		refuse("quantity", "must be 0 to %d, or null for no limit", MaxQuantity)
	}
	instant := func(field string, at time.Time) {
		// Gates and columns count from 1970, and after 9999 texts do not sort as instants do.
		if year := at.UTC().Year(); !at.IsZero() && (year < 1970 || year > 9999) {
			refuse(field, "must be in the years 1970 to 9999 in UTC")
		}
	}
	instant("opens_at", t.OpensAt)
	instant("closes_at", t.ClosesAt)
	instant("coupon.valid_until", t.ValidUntil)
	if !t.OpensAt.IsZero() && !t.ClosesAt.IsZero() && !t.OpensAt.Before(t.ClosesAt) {
		refuse("closes_at", "must be after opens_at")
	}
	if t.Answer != Recorded && t.Answer != Decided {
		refuse("answer", `must be "recorded" or "decided"`)
	}
	if len(t.Benefit) > MaxBenefit {
		refuse("coupon.benefit", "must have at most %d bytes", MaxBenefit)
	}
	if t.ValidFor < 0 || t.ValidFor > maxValid {
		refuse("coupon.valid_for", "must be positive and at most %v", maxValid)
	}
	if t.ValidFor != 0 && !t.ValidUntil.IsZero() {
		refuse("coupon.valid_for", "cannot stand beside coupon.valid_until")
	}
	if t.Pace != nil && (t.Pace.PerSecond < 0 || t.Pace.PerSecond > MaxPace) {
		refuse("pace.per_second", "must be 1 to %d, or left out for as fast as the gate takes them", MaxPace)
	}
	if t.Waitlist && t.Pace == nil {
		refuse("waitlist", "needs a pace: without one nobody waits")
	}
	return errors.Join(errs...)
}
