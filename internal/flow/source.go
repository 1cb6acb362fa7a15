package flow

import (
	"context"
	"errors"

	"github.com/firstcome/firstcome"
)

// A Source hands out what gates have issued, at least once, and of each campaign
// in the order of issue as far as one recorder sees it; a batch comes again until
// the sink takes it, here or at another node.
type Source interface {
	// Drain hands batches to a sink until ctx ends, of many campaigns side by side
	// and of one campaign one after the other. A batch for which the sink returned nil
	// is done: it does not come again.
	Drain(ctx context.Context, to Sink) error
}

// A Sink returns nil only when all of a batch is settled: durable in the ledger as
// coupons or as dead letters. Taking a batch twice is the same as taking it once.
// firstcome.ErrGateMismatch says that another node has to take the campaign's, ErrRowLocked that
// nobody can at present: a source goes on with the other campaigns and gives it again later.
type Sink func(ctx context.Context, b Batch) (Settled, error)

// A Revision is a campaign as of its last numbered change, its gate's epoch and what is settled of
// it. While the ledger says the same revision, none of these is another.
type Revision struct {
	Campaign firstcome.CampaignID
	Version  int64 // of the last numbered change
	Epoch    int64
	Marker   string // of the campaign: see firstcome.Change; empty: not said, nor what follows
	// Settled and Letters are Through and Order of what the ledger has settled.
	Settled, Letters int64
}

// A Batch is what a source hands out at once, of one campaign.
type Batch struct {
	Campaign firstcome.CampaignID
	Coupons  []firstcome.Coupon // in number order; Recorded is false and Epoch is set
	Garbage  []Garbage
}

// Garbage is an entry of a source that cannot be read.
type Garbage struct {
	Source  string // names the entry among all of them, and is the same each time it comes
	Payload string
	Cause   string
}

// Settled says how far a campaign is in the ledger.
type Settled struct {
	// Through is the number up to which each is a coupon in the ledger, a dead letter or lost.
	Through int64
	// Order is raised in the ledger by each transaction that changes which numbers are
	// unrecorded, that is dead letters and no coupons in the ledger. So of two that are
	// told in any order the one with the higher is the later.
	Order int64
	// Unrecorded are the numbers that became unrecorded since the order Since, and
	// Recorded those that were and are no more: to whoever knows which were unrecorded at
	// Since, or at any time from then to Order, they tell which are at Order. Since is 0
	// where they tell all. Some may be above Through.
	Since                int64
	Unrecorded, Recorded []int64
	// Twice are numbers that the gate gave and that are other coupons in the ledger, so that it
	// gave them twice: at the gate they are unrecorded for good.
	Twice []int64
	// Epoch is that of the campaign's gate by then; 0: not said. Numbers are lost
	// between epochs only, so one of an earlier epoch may be lost.
	Epoch int64
}

// ErrRowLocked says that somebody else has a campaign's row in the ledger, or another row that
// it needs, locked for longer than a call waits. The ledger is well: it is trouble of that
// campaign alone, for as long as whoever has the row keeps it.
var ErrRowLocked = errors.New("somebody else keeps it locked in the ledger")

// ErrRefused says that the ledger will never take something of what it was given:
// giving the same again is of no use.
var ErrRefused = errors.New("the ledger refuses it")
