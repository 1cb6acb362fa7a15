// Package flow moves claims one way: from the callers through the Issuer, which
// gathers them into batches, to a Gate, which decides them.
//
// # The queue of a campaign
//
// A queue is idle until a claim arrives; then it drains: it takes what waits, in
// arrival order, as one batch to the gate, and while that batch is there the
// next claims gather. It is idle again when nothing waits. So there is one batch
// in flight per campaign, no timer, and no goroutine for an idle campaign.
//
// # What a node may answer by itself
//
// A gate's decision carries a lease: how long a node may repeat it. A node
// repeats a refusal only to users who, by the holders filter, surely hold no
// coupon, and a coupon only to its user. Every lease ends before a change of the
// campaign begins (Issuer.Change), so nobody is refused stock that came back.
//
// # The life of a number
//
// Where a remote gate decides, a number goes one way, and each arrow has one owner:
//
//	           Gate.Claim             Recorder                operator
//	(not given) ────▶ in the journal ────▶ recorded ◀────────────┐
//	                     │     │                        replayed │
//	                     │     └─────────▶ dead letter ──────────┤
//	                     │ the gate lost it              voided  │
//	                     └───────────────▶ lost                  ▼
//
// A recorder brings what is in the journal to the ledger, which records it or buries it as a dead
// letter. Then one script of the gate takes the entry out of the journal, flags every dead letter of which it has not heard at
// its holder, and raises drained_through: every number up to it has left the journal
// for good. So a user who holds a drained number without a flag has a recorded coupon. For any other
// drained number the ledger's answer is final: it alone knows what became of a dead letter, and a flag
// is never removed.
//
// # Who tries again
//
// A Recorder drains every Source, and its retries own all waits of what is drained: how long each is, and how often something failed. What
// fails decides who waits:
//
//	one campaign: its row is locked, another node must    the campaign rests, and the others go on
//	take it, the gate lost it, or the ledger failed at it
//	the source, such as Redis                             Watch ends, and begins again after a wait
//	the ledger, so often that its breaker is open         each campaign that failed waits its turn, with its batch in hand
//
// The breaker is no second back-off: it lets one call a second through to a ledger that is down. The calls after it do not
// become campaigns that rest, because a source would then read all their entries again and again, and other recorders would
// take them over, while nobody can record anything. A campaign that has not failed is let through an open breaker: a few with
// damaged rows may have opened it. Those that failed have workers of their own, so that their waits keep no worker from others.
package flow

import (
	"context"
	"errors"
	"time"

	"github.com/firstcome/firstcome"
)

// A Gate decides claims: atomically, for good, in the order given. It may be
// called from many goroutines.
type Gate interface {
	// Claim decides one claim by each of users, in order, and returns a decision
	// for each. If it issues, the coupons are in the gate's journal or ledger when
	// it returns. firstcome.ErrNoCampaign, ErrGateMismatch and ErrBusy say that
	// nothing was decided; any other error means that the outcome of every claim is
	// unknown. Claiming again is safe. A decision with the outcome 0 means that this claim
	// alone was not decided, and Undecided is why: the gate or the line is full, and still knows its holders.
	Claim(ctx context.Context, id firstcome.CampaignID, users []firstcome.UserID) ([]firstcome.Decision, error)

	// Holders calls each with every user who holds a coupon in force of the
	// campaign at one instant, and returns the campaign's version at that instant. It may
	// read a copy that lags: a caller who needs all of them compares their number with a decision's InForce.
	Holders(ctx context.Context, id firstcome.CampaignID, each func(firstcome.UserID)) (version int64, err error)
}

// A RemoteGate is a gate that is not the ledger: what it issues reaches the
// ledger through a journal, and changes reach it from the ledger.
type RemoteGate interface {
	Gate
	Line
	Places
	Direct
	Coupons
	Applier
	Drains

	// State returns the campaign's counters at the gate.
	State(ctx context.Context, id firstcome.CampaignID) (GateState, error)
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

// A GateState is a campaign's counters at a remote gate at one instant.
type GateState struct {
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
	// see LedgerRolledBackError and StaleEpochError. Only Over says so.
	Ahead, Behind bool
	Waiting       int64 // people in line
	firstcome.Instants
}

// A Lag says how far the ledger is behind the gate, for one campaign.
type Lag struct {
	Campaign firstcome.CampaignID
	Numbers  int64         // issued and not drained
	Oldest   time.Duration // how long the oldest entry has been in the journal
}

// ErrUnaged says of lags that come with it that how old they are is not known.
var ErrUnaged = errors.New("how long coupons have waited for the ledger is not known")

// An Undrained says what a gate has of a campaign that the ledger may not have, or may not have told it of.
type Undrained struct {
	Campaign      firstcome.CampaignID
	Entries       int64 // of the gate's own journal
	Last, Drained int64 // numbers
	Epoch         int64
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
