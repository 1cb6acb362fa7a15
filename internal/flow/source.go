package flow

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/gate"
)

// A Source hands out what gates have issued, at least once. One recorder sees
// each campaign's coupons in the order of issue. A batch comes again until it is
// acknowledged, here or at another node.
type Source interface {
	// Watch calls ready with campaigns that may have a batch, until ctx ends. An error is of the source as a whole.
	Watch(ctx context.Context, ready func(firstcome.CampaignID)) error
	// Next returns a campaign's next batch, and a receipt; nil: there is none. Until ctx ends the source keeps the batch from other
	// recorders. The batch may be empty: then the gate has to be told how far the campaign is drained. A campaign is asked about by one
	// goroutine at a time. The error may be a HoleError, or ErrSource.
	Next(ctx context.Context, id firstcome.CampaignID) (b Batch, receipt any, err error)
	// Ack is done with the batch of a receipt, and tells the gate what the ledger said of it. It returns how far the gate knew the campaign
	// to be drained before; 0: it was told nothing. After a ToldError the batch may be acknowledged again.
	Ack(ctx context.Context, receipt any, drained Drained) (before int64, err error)
	// Lag returns how far the ledger is behind, of those of the active campaigns of which it is. ErrUnaged may come with lags.
	Lag(ctx context.Context, active []gate.Revision) ([]Lag, error)
}

// Holes are the numbers that a gate has issued and its journal has lost.
type Holes interface {
	// Missing returns the coupons in force that the gate does not know to be drained, as one batch. gate.ErrUnverified says that its holders may
	// be those of an older state: a rebuild decides what is theirs.
	Missing(ctx context.Context, id firstcome.CampaignID) (Batch, error)
	// Settle tells the gate what the ledger said of them: see Source.Ack.
	Settle(ctx context.Context, id firstcome.CampaignID, marker string, drained Drained, entries ...string) (before int64, err error)
}

// A HoleError says why numbers of a campaign are missing from a Source for good.
type HoleError string

func (e HoleError) Error() string { return string(e) }

// ErrSource says that a source as a whole does not answer: it is no single campaign's trouble.
var ErrSource = errors.New("the journal does not answer")

// A Sink returns nil only when all of a batch is durable in the ledger, as coupons or
// as dead letters. Taking a batch twice is the same as taking it once. After an error the source gives it again.
// firstcome.ErrGateMismatch says that another node has to take the batch, ErrRowLocked and ErrRebuilding that
// nobody can at present.
type Sink func(ctx context.Context, b Batch) (Drained, error)

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

// A Batch is what a source hands out at once. It is of one campaign and one epoch.
type Batch struct {
	Campaign firstcome.CampaignID
	Epoch    int64              // in which the gate issued the coupons
	Attempt  int64              // the rebuild of the gate that hands it out; 0: none
	Marker   string             // of the campaign that issued them: see firstcome.Change; empty: not said
	Coupons  []firstcome.Coupon // in number order; Recorded is false
	// Told is the number up to which the gate knows of all dead letters, as far as the source knows.
	Told    int64
	Line    gate.LineReport
	Garbage []Garbage
}

// Garbage is a source's entry that cannot be read.
type Garbage struct {
	Source  string // names the entry among all, and is the same each time it comes
	Payload string
	Cause   string
}

// Drained says how far a campaign's numbers have left the journal, and what became of a batch.
type Drained struct {
	// Through is the number up to which each is a coupon in the ledger, a dead letter or lost; or a lower one, if more dead letters are
	// below it than are told at once.
	Through int64
	// Letters are the batch's coupons that are dead letters, resolved or not, and not in the ledger; and all dead letters of the campaign
	// with numbers above Told, up to Through. Of these only number and user are said.
	Letters []firstcome.Coupon
	Told    int64 // the batch's
	// Twice tells that the ledger has another coupon under a number of Letters: the gate gave it twice.
	Twice bool
	// Lost is how many coupons of the batch are of an earlier epoch and have numbers that a rebuild said to be lost. The ledger
	// does not have them and never takes them.
	Lost int64
	Grant
}

// A ToldError says that a gate may not know of dead letters with numbers above one, so that it did not take what a sink said of others
// above a higher one.
type ToldError struct{ Through int64 }

func (e *ToldError) Error() string {
	return fmt.Sprintf("the gate knows of dead letters up to number %d only", e.Through)
}

// A Grant says how far a gate may go in an epoch. A gate takes no other epoch's.
type Grant struct {
	Epoch   int64
	Ceiling int64 // the highest number that the gate may give
}

// ErrRowLocked says that somebody has kept a campaign's row in the ledger, or another row that
// it needs, locked for longer than a call waits. The ledger is well: only that campaign is in
// trouble, while the row stays locked.
var ErrRowLocked = errors.New("somebody else keeps it locked in the ledger")

// ErrRebuilding says that a campaign's gate is rebuilt, and that only whoever rebuilds it may record new coupons.
var ErrRebuilding = errors.New("its gate is being rebuilt")

// ErrTwice says that a gate lost its latest decisions and went on.
var ErrTwice = errors.New("the gate gave numbers again that are other coupons in the ledger, so it has lost its latest decisions: its dead letters say which, and firstcome gate rebuild with the campaign makes it anew")

// ErrRefused says that the ledger will never take part of what it was given, so
// giving it the same again is of no use.
var ErrRefused = errors.New("the ledger refuses it")
