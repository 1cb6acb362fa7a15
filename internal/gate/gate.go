// Package gate defines a gate beside the ledger for its callers: small interfaces and its errors. A Router sends each call to the gate, or to the
// ledger if the ledger answers.
package gate

import (
	"context"
	"errors"
	"time"

	"github.com/firstcome/firstcome"
)

// A Decider decides claims atomically, permanently, and in the order given. Its methods may be called from many goroutines.
type Decider interface {
	// Claim decides one claim by each of users, in order, and returns a decision for each. The coupons that it issues are in the gate's journal or
	// ledger when it returns. firstcome.ErrNoCampaign, ErrGateMismatch and ErrBusy mean that nothing was decided; any other error means that the
	// outcome of every claim is unknown. Claiming again is safe. A decision with the outcome 0 means that only this claim was not decided, for the
	// reason in Undecided: the gate or the line is full, but still knows its holders.
	Claim(ctx context.Context, id firstcome.CampaignID, users []firstcome.UserID) ([]firstcome.Decision, error)

	// Issue decides one claim by each of users like Claim, but bypasses the line: it takes stock, and no turn of the pace. It also issues before the
	// campaign opens and while it is paused: see firstcome.Campaign.Direct. The tickets of users who hold a coupon afterwards have ended. Each
	// decision has the number of people in line after it. The audit log notes each order that issued a coupon, with the number of people in line: in
	// the same transaction or, for a gate beside the ledger, right after it (see Router).
	Issue(ctx context.Context, order Order, id firstcome.CampaignID, users []firstcome.UserID) ([]firstcome.Decision, error)

	// Holders calls each with every user who holds a coupon in force of the campaign, from one snapshot, and returns the campaign's version in it. It
	// may read a replica that lags: a caller who needs all holders must compare their number with a decision's InForce.
	Holders(ctx context.Context, id firstcome.CampaignID, each func(firstcome.UserID)) (version int64, err error)
}

// A Gate is a gate beside the ledger: coupons that it issues reach the ledger through a journal, and changes reach it from the ledger.
type Gate interface {
	Decider
	Line
	Places
	Coupons
	Applier
	Progress
	Counters
	Epochs
}

// Epochs reports in which epoch a gate decides.
type Epochs interface {
	// Decides returns nil if the gate now decides claims of a campaign in exactly this epoch.
	Decides(ctx context.Context, id firstcome.CampaignID, epoch int64) error
}

// Counters returns the counters of campaigns.
type Counters interface {
	// State returns the campaign's counters at the gate.
	State(ctx context.Context, id firstcome.CampaignID) (State, error)
}

// An Applier applies changes that the ledger has numbered.
type Applier interface {
	// Apply applies a change, if the campaign's version at the gate is the one before it. Applying a change again does nothing. refused means that
	// the gate refused the change, now or earlier, because the quantity would be below the coupons in force, or because prizes would move after it has
	// given a number: then only the version advances. ErrGap
	// means that the gate lacks earlier changes. ErrGone means that the gate should have the campaign, and lacks all or part of it.
	Apply(ctx context.Context, change firstcome.Change) (refused bool, err error)
}

// Progress reports how far campaigns are drained, and which coupons are recorded.
type Progress interface {
	// DrainedThrough returns the number up to which every number of the campaign has left the journal.
	DrainedThrough(ctx context.Context, id firstcome.CampaignID) (int64, error)

	// Has reports for each coupon whether it is certainly in the ledger under its number: the number is drained, not as a dead letter, and its user
	// holds it at the gate. A coupon for which it reports false may still be in the ledger: it may have been voided since, an operator may have
	// replayed it, or the gate may have lost its latest decisions.
	Has(ctx context.Context, id firstcome.CampaignID, coupons []firstcome.Coupon) ([]bool, error)

	// WatchDrained calls each with how far a campaign is drained, soon after a recorder has reported it, until ctx ends or the connection is lost,
	// which is an error. each may be called from several goroutines, and must not block. ready is called once, when each will get every later report.
	WatchDrained(ctx context.Context, ready func(), each func(id firstcome.CampaignID, through int64)) error
}

// IsFatal reports whether a gate will return an error until an operator acts.
func IsFatal(err error) bool {
	var operator interface{ Fatal() bool }
	return errors.As(err, &operator) && operator.Fatal()
}

// Coupons finds the coupon that a user holds. A Gate implements it, and the ledger where it decides.
type Coupons interface {
	// CouponOf returns the coupon in force that a user holds, firstcome.ErrNoCoupon, or ErrGone if the gate has lost the campaign.
	CouponOf(ctx context.Context, id firstcome.CampaignID, user firstcome.UserID) (firstcome.Coupon, error)
}

// A Revision is a campaign's last numbered change, its gate's epoch, and how far it is drained, by the ledger. While the ledger returns the same
// Revision, none of these has changed.
type Revision struct {
	Campaign    firstcome.CampaignID
	Version     int64 // of the last numbered change
	Applied     int64 // version of the last change that the ledger has noted as applied at the gate
	Epoch       int64
	CampaignUID string // the campaign's UID: see firstcome.Change. If it is empty, the fields below are unknown too
	Drained     int64  // as Through of the ledger's record.Result
	// TermsVersion is the version of the terms in force, by the ledger. No gate refuses these terms.
	TermsVersion int64
	// Rebuilding means that an attempt at a rebuild has begun and not ended. Its owner may have died.
	Rebuilding bool
	// Reconciling means that a reconcile has begun and not ended: see recovery.Machine.
	Reconciling bool
	// Creating means that the campaign is still being created at the gate.
	Creating bool
	// Open means that claims may get a coupon now, by the terms.
	Open bool
}

// A Witness is the least that a gate must know of a campaign, because the gate or the ledger told a node so. A gate that knows less has forgotten:
// its keys were put back to an earlier state. Perhaps only this comparison shows it, because the earlier keys agree with each other.
type Witness struct {
	Epoch   int64 // the other fields count within it
	Version int64
	Number  int64            // the last number
	Ticket  firstcome.Ticket // the line's generation and its last ticket; zero if unknown
}

// Add raises a witness by another one. They may come in any order.
func (w *Witness) Add(o Witness) {
	if o.Epoch > w.Epoch {
		*w = o
	}
	if o.Epoch < w.Epoch {
		return
	}
	w.Version, w.Number = max(w.Version, o.Version), max(w.Number, o.Number)
	if w.Ticket.Before(o.Ticket) {
		w.Ticket = o.Ticket
	}
}

// Older reports whether a gate that knows w and no more has forgotten something of least.
func (w Witness) Older(least Witness) bool {
	if w.Epoch != least.Epoch {
		return w.Epoch < least.Epoch
	}
	return w.Version < least.Version || w.Number < least.Number || w.Ticket.Before(least.Ticket)
}

// A State is a snapshot of a campaign's counters at a remote gate.
type State struct {
	Version    int64
	Epoch      int64
	InForce    int64
	Issued     int64 // coupons ever issued
	LastNumber int64
	// DrainedThrough is the number up to which every number has left the journal, as a coupon in the ledger, a dead letter or lost.
	DrainedThrough int64
	Now            time.Time // the gate's time
	// Gone means that some of the campaign's keys are gone, so the gate decides nothing: see ErrGone.
	Gone bool
	// Unverified means that the gate's server restarted, or is another one, and that no node has checked it yet: see ErrUnverified. The gate decides
	// nothing until then, and may have lost nothing.
	Unverified bool
	// Frozen means that the gate is frozen for a rebuild.
	Frozen bool
	// LedgerRolledBack means that the ledger is older than the gate, as far as this node knows, and StaleEpoch that the gate is older than the ledger: see
	// LedgerRolledBackError and StaleEpochError. Only Router sets them.
	LedgerRolledBack, StaleEpoch bool
	Waiting                      int64 // people in line
	firstcome.Instants
}

// Errors of Apply.
var (
	ErrGap = errors.New("the gate lacks earlier changes")
	// ErrGone means that the gate has lost all or part of a campaign. A remaining part is inconsistent, so the gate decides nothing.
	ErrGone = errors.New("the gate has lost the campaign")
)

// ErrLedgerForgot means that the gate has, or once had, a campaign which its ledger created and no longer has, as after a restored backup. Users may
// hold its coupons, so no campaign may be created under its id: the new coupons would have the same codes.
var ErrLedgerForgot = errors.New("this ledger created a campaign with this id before and has forgotten it, as after a restored backup; users may hold its coupons, and a new campaign's would have the same codes: use another id")

// ErrRetired means that a campaign ended long ago and its gate has deleted it, so the ledger answers.
var ErrRetired = errors.New("the campaign is over and its gate has forgotten it")
