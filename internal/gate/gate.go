// Package gate is what a gate beside the ledger is to the others: small interfaces, each for those who need it, and its errors. A Router
// brings each call to the gate, or to the ledger where that answers.
package gate

import (
	"context"
	"errors"
	"time"

	"github.com/firstcome/firstcome"
)

// A Decider decides claims: atomically, for good, in the order given. It may be
// called from many goroutines.
type Decider interface {
	// Claim decides one claim by each of users, in order, and returns a decision
	// for each. If it issues, the coupons are in the gate's journal or ledger when
	// it returns. firstcome.ErrNoCampaign, ErrGateMismatch and ErrBusy say that
	// nothing was decided; any other error means that the outcome of every claim is
	// unknown. Claiming again is safe. A decision with the outcome 0 means that this claim
	// alone was not decided, and Undecided is why: the gate or the line is full, and still knows its holders.
	Claim(ctx context.Context, id firstcome.CampaignID, users []firstcome.UserID) ([]firstcome.Decision, error)

	// Issue decides one claim by each of users as Claim does, but as if there were no line: it takes stock and no
	// turn of the pace. It also issues before the campaign opens and while it is paused: see firstcome.Campaign.Direct. The
	// tickets of those who hold a coupon afterwards have ended. Each decision says how many people are in line after it. The
	// audit log has each order that issued a coupon, and how many people waited: in the same transaction, or, of a gate
	// beside the ledger, right after it (see Router).
	Issue(ctx context.Context, order Order, id firstcome.CampaignID, users []firstcome.UserID) ([]firstcome.Decision, error)

	// Holders calls each with every user who holds a coupon in force of the
	// campaign at one instant, and returns the campaign's version at that instant. It may
	// read a copy that lags: a caller who needs all of them compares their number with a decision's InForce.
	Holders(ctx context.Context, id firstcome.CampaignID, each func(firstcome.UserID)) (version int64, err error)
}

// A Gate is a gate that is not the ledger: what it issues reaches the
// ledger through a journal, and changes reach it from the ledger.
type Gate interface {
	Decider
	Line
	Places
	Coupons
	Applier
	Drains
	Counters
	Epochs
}

// Epochs are those in which a gate decides.
type Epochs interface {
	// Decides returns nil if the gate decides claims of a campaign now, in this very epoch.
	Decides(ctx context.Context, id firstcome.CampaignID, epoch int64) error
}

// Counters are those of campaigns.
type Counters interface {
	// State returns the campaign's counters at the gate.
	State(ctx context.Context, id firstcome.CampaignID) (State, error)
}

// An Applier applies the changes that the ledger numbered.
type Applier interface {
	// Apply applies a change, if the campaign's version at the gate is the one before
	// it. Applying a change again does nothing. refused tells that the gate refused it, now or earlier,
	// because the quantity would be below what is in force: its version is used up and nothing else
	// changed. ErrGap says that the gate lacks earlier changes, ErrLost that the gate should know the
	// campaign and does not, or not all of it.
	Apply(ctx context.Context, change firstcome.Change) (refused bool, err error)
}

// Drains tell how far campaigns are drained, and which coupons are recorded.
type Drains interface {
	// DrainedThrough returns the number up to which every number of the campaign has left the journal.
	DrainedThrough(ctx context.Context, id firstcome.CampaignID) (int64, error)

	// Has tells for each coupon whether it is surely in the ledger under its number: the number is
	// drained, not as a dead letter, and its user holds it here. A coupon for which it says no may still
	// be in the ledger: it was voided since, an operator replayed it, or the gate lost its latest
	// decisions.
	Has(ctx context.Context, id firstcome.CampaignID, coupons []firstcome.Coupon) ([]bool, error)

	// WatchDrained calls each with how far any campaign is drained, soon after recorders
	// said so, until ctx ends or the connection is lost, which is an error. each may
	// be called from more than one goroutine, and must not wait.
	// ready is called once, when each will hear of everything drained from then on.
	WatchDrained(ctx context.Context, ready func(), each func(id firstcome.CampaignID, through int64)) error
}

// IsFatal tells whether a gate repeats an error until an operator acts.
func IsFatal(err error) bool {
	var operator interface{ Fatal() bool }
	return errors.As(err, &operator) && operator.Fatal()
}

// Coupons finds the coupon that a user holds: a Gate, or the ledger where it decides.
type Coupons interface {
	// CouponOf returns the coupon in force that a user holds, firstcome.ErrNoCoupon, or ErrLost if the gate cannot say.
	CouponOf(ctx context.Context, id firstcome.CampaignID, user firstcome.UserID) (firstcome.Coupon, error)
}

// A Revision is a campaign as of its last numbered change, its gate's epoch and how far it
// is drained. While the ledger says the same revision, none of these has changed.
type Revision struct {
	Campaign firstcome.CampaignID
	Version  int64 // of the last numbered change
	Epoch    int64
	Marker   string // of the campaign: see firstcome.Change; empty: neither it nor what follows is known
	Drained  int64  // the Through of the ledger's Drained
	// Rebuilding tells that an attempt at a rebuild was begun and has not ended, perhaps because its owner died.
	Rebuilding bool
	// Reconciling tells that a reconcile was begun and has not ended: see recovery.Machine.
	Reconciling bool
	// Unmade tells that the gate does not have the campaign yet.
	Unmade bool
	// Open tells that claims may win now, as far as the terms say.
	Open bool
}

// A State is a campaign's counters at a remote gate at one instant.
type State struct {
	Version    int64
	Epoch      int64
	InForce    int64
	Issued     int64 // coupons ever issued
	LastNumber int64
	// DrainedThrough is the number up to which every number has left the journal, as a coupon in the
	// ledger, a dead letter or lost.
	DrainedThrough int64
	Now            time.Time // the gate's time
	// Lost tells that part of what the gate had is gone, so it decides nothing: see ErrLost.
	Lost bool
	// Unverified reports that its server restarted, or is another one, and that no node has looked yet: see ErrUnverified. It decides nothing for
	// a moment, and may have lost nothing.
	Unverified bool
	// Frozen tells that it is frozen for a rebuild.
	Frozen bool
	// Ahead reports whether the ledger is older than the gate, as this node knows, and Behind whether the gate is older than the ledger:
	// see LedgerRolledBackError and StaleEpochError. Only Router says so.
	Ahead, Behind bool
	Waiting       int64 // people in line
	firstcome.Instants
}

// Errors of Apply.
var (
	ErrGap = errors.New("the gate lacks earlier changes")
	// ErrLost is also the error for a campaign that the gate has lost in part: what is left is
	// inconsistent, so the gate decides nothing.
	ErrLost = errors.New("the gate has lost the campaign")
)

// ErrForgotten says that a gate has, or had, a campaign that its ledger made and does not know any more, as after a restored backup. People may
// hold its coupons, so nobody makes another one under its id: their codes would be the same.
var ErrForgotten = errors.New("this ledger made a campaign with this id before and has forgotten it, as after a restored backup; people may hold its coupons, and a new one's would have the same codes: use another id")

// ErrRetired says that a campaign has long been over and its gate has forgotten it:
// the ledger answers.
var ErrRetired = errors.New("the campaign is over and its gate has forgotten it")
