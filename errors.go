package firstcome

import (
	"errors"
	"fmt"
)

// Errors which mean that certainly nothing was decided or changed.
var (
	ErrNoCampaign     = errors.New("no such campaign")
	ErrNoCoupon       = errors.New("no such coupon")
	ErrCampaignExists = errors.New("a campaign with this id exists")
	ErrBelowInForce   = errors.New("the quantity is below the number of coupons in force")
	ErrPrizesFixed    = errors.New("the campaign has given a number: ids, order and quantities of its prizes stay from then on")
	ErrCodesMissing   = errors.New("lists of imported codes lack entries")
	ErrNoList         = errors.New("the campaign has no list of imported codes of this name")
	ErrImportRunning  = errors.New("another import into this list is running")
	ErrClosed         = errors.New("the campaign was closed by an operator")
	ErrAlreadyVoided  = errors.New("the coupon was voided before")
	ErrStale          = errors.New("the campaign has changed since it was read")
	ErrPending        = errors.New("an earlier change of the campaign has not reached the gate yet")
	ErrNotRecorded    = errors.New("the ledger does not have this number yet: the gate may have issued it")
	ErrNoDeadLetter   = errors.New("no such dead letter")
	ErrNoTicket       = errors.New("the user never joined the campaign's waiting line, or is there no longer")
	ErrLineLogGone    = errors.New("the log of the campaign's waiting line lacks records, or is another topic")
	ErrLineLogAway    = errors.New("the log of waiting lines does not answer")
	ErrServed         = errors.New("the user holds a coupon, and waits no longer")
	ErrResolvedLetter = errors.New("the dead letter was replayed or voided before")
	ErrGateMismatch   = errors.New("this node has another gate, code secret or ledger than the campaign, or is too old for it")
)

// ErrBusy matches every error which means that certainly nothing was decided, and that asking again is safe and may soon succeed. CauseOf reports
// which of its causes an error has.
var ErrBusy = errors.New("nothing was decided")

// The causes of ErrBusy.
var (
	ErrTooMany         = fmt.Errorf("%w: too many claims are waiting", ErrBusy)
	ErrGateUnavailable = fmt.Errorf("%w: the gate cannot decide now", ErrBusy)
	ErrGateFull        = fmt.Errorf("%w: the gate is full", ErrBusy)
	ErrLineFull        = fmt.Errorf("%w: the waiting line is full", ErrBusy)
	ErrStopping        = fmt.Errorf("%w: the node is stopping", ErrBusy)
)

// A Cause is the word for why a claim was not decided. HTTP, metrics and figures share it.
type Cause string

// The causes. Busy is ErrTooMany, and every ErrBusy that is no other cause.
const (
	Busy            Cause = "busy"
	GateUnavailable Cause = "gate_unavailable"
	GateFull        Cause = "gate_full"
	LineFull        Cause = "line_full"
	Stopping        Cause = "stopping"
)

// CauseOf returns the cause of an ErrBusy, or "" for any other error.
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
