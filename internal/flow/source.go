package flow

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/firstcome/firstcome"
)

// A Source hands out what gates have issued, at least once. One recorder sees
// each campaign's coupons in the order of issue. A batch comes again until the
// sink takes it, here or at another node.
type Source interface {
	// Drain hands batches to a sink until ctx ends, many campaigns at once and each
	// campaign's one after the other. A batch for which the sink returned nil is done:
	// it does not come again. A campaign that fails, in the sink or in the source, rests for as long as again
	// says, and the others go on. An error is of the source as a whole.
	Drain(ctx context.Context, to Sink, again *Retries) error
}

// A Sink returns nil only when all of a batch is durable in the ledger, as coupons or
// as dead letters. Taking a batch twice is the same as taking it once. After an error the source gives it again.
// firstcome.ErrGateMismatch says that another node has to take the batch, ErrRowLocked and ErrRebuilding that
// nobody can at present.
type Sink func(ctx context.Context, b Batch) (Drained, error)

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

// A Batch is what a source hands out at once. It is of one campaign and one epoch.
type Batch struct {
	Campaign firstcome.CampaignID
	Epoch    int64              // in which the gate issued the coupons
	Attempt  int64              // the rebuild of the gate that hands it out; 0: none
	Marker   string             // of the campaign that issued them: see firstcome.Change; empty: not said
	Coupons  []firstcome.Coupon // in number order; Recorded is false
	// Told is the number up to which the gate knows of all dead letters, as far as the source knows.
	Told    int64
	Line    LineReport
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

// Settle gives to a gate, by settle, what a sink said of a batch. If the gate has not been told of earlier dead letters, it asks the
// sink for these. told is what the source knows of that; Settle raises it.
func Settle(ctx context.Context, b Batch, drained Drained, to Sink, told *int64, settle func(Drained) error) error {
	for {
		err := settle(drained)
		var knows *ToldError
		if !errors.As(err, &knows) {
			if err == nil {
				*told = max(*told, drained.Through)
			}
			return err
		}
		*told = knows.Through
		more, err := to(ctx, Batch{Campaign: b.Campaign, Marker: b.Marker, Told: *told})
		if err != nil {
			return err
		}
		more.Letters = append(more.Letters, drained.Letters...)
		drained = more
	}
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

// Outlasting returns a context that ends so much later than its parent: for a batch under way when a Drain has to end.
func Outlasting(parent context.Context, by time.Duration) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(parent))
	stop := context.AfterFunc(parent, func() { time.AfterFunc(by, cancel) })
	return ctx, func() {
		stop()
		cancel()
	}
}
