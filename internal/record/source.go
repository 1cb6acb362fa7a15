package record

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/gate"
)

// A Source returns the coupons that gates have issued, at least once each. For each campaign, one recorder at a time sees its coupons, in the order
// of issue. A batch is returned again, here or at another node, until it is acknowledged.
type Source interface {
	// Watch calls ready with campaigns that may have a batch, until ctx ends. It returns an error only if the source as a whole fails.
	Watch(ctx context.Context, ready func(firstcome.CampaignID)) error
	// Next returns a campaign's next batch, and a receipt, which is nil if there is no batch. The source keeps the batch from other recorders until
	// ctx ends. A batch may be empty: then the gate must be told how far the campaign is drained. Only one goroutine at a time calls Next for a
	// campaign. The error may be a HoleError, or ErrSource.
	Next(ctx context.Context, id firstcome.CampaignID) (b Batch, receipt any, err error)
	// Ack acknowledges the batch of a receipt, and reports the ledger's answer to the gate. It returns the number up to which the gate knew the
	// campaign to be drained before, or 0 if the gate got no report. After a MissedLettersError the batch may be acknowledged again.
	Ack(ctx context.Context, receipt any, drained Result) (before int64, err error)
	// Lag returns how far the ledger lags behind the gate, for each active campaign whose ledger does. ErrUnaged may come with lags.
	Lag(ctx context.Context, active []gate.Revision) ([]Lag, error)
}

// Holes finds the coupons that a gate has issued and its journal has lost.
type Holes interface {
	// Missing returns the coupons in force that the gate does not know to be drained, as one batch. gate.ErrUnverified means that the gate's holders
	// may be those of an earlier state, and that a rebuild must decide which coupons count.
	Missing(ctx context.Context, id firstcome.CampaignID) (Batch, error)
	// Settle reports the ledger's answer about them to the gate: see Source.Ack.
	Settle(ctx context.Context, id firstcome.CampaignID, uid string, drained Result, entries ...string) (before int64, err error)
}

// A HoleError is why numbers of a campaign are permanently missing from a Source.
type HoleError string

func (e HoleError) Error() string { return string(e) }

// ErrSource means that a source as a whole does not answer. No single campaign is at fault.
var ErrSource = errors.New("the journal does not answer")

// A Sink returns nil only when all of a batch is durable in the ledger, as coupons or as dead letters. Taking a batch twice has the effect of taking
// it once. After an error the source returns the batch again. firstcome.ErrGateMismatch means that another node must take the batch, and ErrRowLocked
// and ErrRebuilding that no node can now.
type Sink func(ctx context.Context, b Batch) (Result, error)

// A Lag is how far the ledger lags behind the gate, for one campaign.
type Lag struct {
	Campaign firstcome.CampaignID
	Numbers  int64         // numbers that are issued and not drained
	Oldest   time.Duration // age of the oldest entry of the journal
}

// ErrUnaged means that the ages of the lags returned with it are unknown.
var ErrUnaged = errors.New("the age of the backlog is unknown")

// An Undrained describes a campaign at a gate whose numbers the ledger may lack, or may have without the gate knowing it.
type Undrained struct {
	Campaign      firstcome.CampaignID
	Entries       int64 // entries of the gate's own journal
	Last, Drained int64 // the last number issued, and the number up to which the campaign is drained
	Epoch         int64
}

// A Batch is the coupons that a source returns at once. All are of one campaign and one epoch.
type Batch struct {
	Campaign    firstcome.CampaignID
	Epoch       int64              // the epoch in which the gate issued the coupons
	Attempt     int64              // the attempt at a rebuild that returns the batch; 0 if none does
	CampaignUID string             // the UID of the coupons' campaign: see firstcome.Change; empty if unknown
	Coupons     []firstcome.Coupon // in number order; Recorded is false
	// LettersKnownThrough is a number: the recorder knows that the gate has heard of every dead letter up to it.
	LettersKnownThrough int64
	Line                gate.LineReport
	Garbage             []Garbage
}

// Garbage is an entry of a source that cannot be read.
type Garbage struct {
	Source  string // a unique name of the entry, the same at each reading
	Payload string
	Cause   string
}

// Result is the ledger's answer to a batch: how far the campaign's numbers have left the journal, and what happened to the batch.
type Result struct {
	// Through is the highest number such that every number up to it is a coupon in the ledger, a dead letter or lost. It is lower if there are more
	// dead letters below it than one answer holds.
	Through int64
	// Letters has two kinds of dead letters: those coupons of the batch that are dead letters and not in the ledger, and every dead letter of the
	// campaign with a number above LettersKnownThrough and up to Through. Only number and user are set in the second kind.
	Letters []firstcome.Coupon
	// LettersKnownThrough is the number up to which the gate knew all dead letters when it made the batch. It is copied from the batch.
	LettersKnownThrough int64
	// Twice means that the ledger has a different coupon under a number of Letters: the gate issued the number twice.
	Twice bool
	// Lost is how many coupons of the batch are of an earlier epoch and have numbers that a rebuild declared lost. The ledger does not have them and
	// never takes them.
	Lost int64
	Grant
}

// A MissedLettersError means that the gate refused a Result, because the gate would miss dead letters. It has heard of all dead letters up to the
// error's Through, but the Letters of the Result begin above a higher number, its LettersKnownThrough. The gate would never hear of those between Through and LettersKnownThrough.
// So the ledger must be asked again, by a batch whose LettersKnownThrough is the error's Through.
type MissedLettersError struct{ Through int64 }

func (e *MissedLettersError) Error() string {
	return fmt.Sprintf("the gate knows of dead letters up to number %d only", e.Through)
}

// A Grant is the ledger's permission to a gate to issue numbers in an epoch. A gate ignores a Grant of another epoch.
type Grant struct {
	Epoch   int64
	Ceiling int64 // the highest number that the gate may issue
}

// ErrRowLocked means that another transaction has locked a campaign's row in the ledger, or another row that a call needs, for longer than the call
// waits. The ledger is well: only that campaign waits, while the row stays locked.
var ErrRowLocked = errors.New("another transaction keeps it locked in the ledger")

// ErrRebuilding means that a campaign's gate is being rebuilt, and that only the owner of the rebuild may record new coupons.
var ErrRebuilding = errors.New("its gate is being rebuilt")

// errTwice means that a gate lost its latest decisions and continued to issue.
var errTwice = errors.New("the gate issued numbers again that are other coupons in the ledger, so it has lost its latest decisions: its dead letters list them, and firstcome gate rebuild with the campaign rebuilds it")

// ErrRefused means that the ledger will never take some coupon of a batch, so repeating the same batch is of no use.
var ErrRefused = errors.New("the ledger refuses it")
