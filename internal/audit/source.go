package audit

import (
	"context"
	"errors"
	"time"

	"github.com/firstcome/firstcome"
)

// ErrUnreadable says that something of a campaign is there and cannot be read. It is
// a breach of that campaign and ends its audit, and no other's.
var ErrUnreadable = errors.New("it cannot be read")

// A Source is a ledger to audit. [Gate] calls only what it needs.
type Source struct {
	// Each calls each with every row of a query: its columns, and their values as text, empty for NULL. It may be called from two goroutines.
	Each func(ctx context.Context, query string, args []any, each func(columns, values []string)) error
	// Campaign is firstcome.ErrNoCampaign if there is no row of it.
	Campaign func(context.Context, firstcome.CampaignID) (Campaign, error)
	// Changes calls each with every change in the order of their versions.
	Changes List[Change]
	// Coupons calls each with every coupon in number order, voided ones too.
	Coupons List[firstcome.Coupon]
	// Past calls each with every generation of the waiting line that ended, in their order.
	Past List[PastLine]
	// Letters calls each with every dead letter of the campaign, resolved ones too, OtherLetters with those of no campaign,
	// and Lost with every range of lost numbers.
	Letters      List[Letter]
	OtherLetters func(ctx context.Context, each func(Letter)) error
	Lost         List[Range]
}

// A List calls each with every row of one kind that there is about a campaign.
type List[V any] func(ctx context.Context, id firstcome.CampaignID, each func(V)) error

// A Campaign is a campaign with the counters of its row.
type Campaign struct {
	firstcome.Campaign
	Line       firstcome.Line // but for Due
	LastNumber int64
	Position   int64 // of the last fact
	// Remote tells that another gate than the ledger decides: coupons reach the ledger
	// later, and not always in number order.
	Remote  bool
	Drained int64 // of a remote gate: every number up to it is a coupon, a dead letter or lost
	Applied int64 // the last change that the gate has
	Epoch   int64
	Secret  string // fingerprint of the code secret; empty: not known
}

// A Change is a change of a campaign, as it is kept.
type Change struct {
	firstcome.Change
	Refused bool
	// The columns beside the payload that has the terms.
	Quantity          int64
	OpensAt, ClosesAt time.Time
	Wrong             error // why what it holds cannot be read; nil: it can
}

// A Letter is a dead letter.
type Letter struct {
	ID     int64
	Number int64 // 0: there is no coupon in it
	User   firstcome.UserID
	Open   bool // no operator has replayed or voided it
	Voided bool // by an operator
	// Generation and Ticket are those of its coupon; 0: it was issued without a line, or is not in the ledger's hands.
	Generation int64
	Ticket     int64
	Wrong      string // how its columns contradict each other; empty: they do not
}

// A Range is Count numbers from First on.
type Range struct{ First, Count int64 }

// last returns the highest number of a range.
func (r Range) last() int64 { return r.First + r.Count - 1 }

// A LineView is what is told of a campaign's line.
type LineView struct {
	Line firstcome.Line // but for Due
	Past []PastLine     // the last ones that ended, in any order
}

// A PastLine is a generation of a line that ended.
type PastLine struct {
	firstcome.Line // as it was, but for Due
	Reason         string
	EndedAt        time.Time
}

// A place is what a coupon says of its ticket.
type place struct{ generation, ticket, number int64 }

// before tells whether a ticket is before another's.
func (p place) before(o place) bool {
	return p.generation < o.generation || p.generation == o.generation && p.ticket < o.ticket
}
