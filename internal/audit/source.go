package audit

import (
	"context"
	"errors"
	"time"

	"github.com/firstcome/firstcome"
)

// ErrUnreadable means that a row of a campaign exists and cannot be read. It is a breach of that campaign and ends its audit, but not that of others.
var ErrUnreadable = errors.New("it cannot be read")

// ErrNotMade means that the database answered a check with an error, such as of a number that is too large to add. The other checks go on.
var ErrNotMade = errors.New("the check was not made")

// A Source reads a ledger that is audited. [Gate] calls only some of its functions.
type Source struct {
	// Each calls each with every row of a query's result: its columns, and their values as text, "" for NULL. It may be called from two goroutines.
	Each func(ctx context.Context, query string, args []any, each func(columns, values []string)) error
	// Campaign returns a campaign, or firstcome.ErrNoCampaign if it has no row.
	Campaign func(context.Context, firstcome.CampaignID) (Campaign, error)
	// Changes lists the changes in the order of their versions.
	Changes List[Change]
	// Coupons lists the coupons in number order, also voided ones.
	Coupons List[firstcome.Coupon]
	// Past lists the ended generations of the waiting line, in order.
	Past List[firstcome.PastLine]
	// Letters lists the dead letters of the campaign, also resolved ones, OtherLetters those that belong to no campaign, and Lost the ranges of lost
	// numbers.
	Letters      List[Letter]
	OtherLetters func(ctx context.Context, each func(Letter)) error
	Lost         List[firstcome.Range]
}

// A List calls each with every row of one kind of a campaign.
type List[V any] func(ctx context.Context, id firstcome.CampaignID, each func(V)) error

// A Campaign is a campaign with the counters of its row.
type Campaign struct {
	firstcome.Campaign
	Line       firstcome.Line // without Due
	LastNumber int64
	Position   int64 // of the last fact
	// Remote means that another gate than the ledger decides: then coupons reach the ledger later, and not always in number order.
	Remote  bool
	Drained int64 // with a remote gate, every number up to it is a coupon, a dead letter or lost
	Applied int64 // version of the last change that the gate has
	// TermsVersion is the version of the terms in force.
	TermsVersion int64
	Epoch        int64
	Secret       string // fingerprint of the code secret; empty if unknown
}

// A Change is a change of a campaign in the ledger.
type Change struct {
	firstcome.Change
	Refused bool
	// Quantity, OpensAt and ClosesAt are the columns. The payload has the terms too.
	Quantity          int64
	OpensAt, ClosesAt time.Time
	Skipped           int64
	// Rebuilt has the last number of the epoch that a rebuild ended, and how many numbers it skipped, by its payload.
	Rebuilt struct{ Through, Skipped int64 }
	Behind  int64 // of a reconcile: the last version that the ledger has not forgotten
	Wrong   error // why the payload cannot be read; nil if it can
}

// A Letter is a dead letter.
type Letter struct {
	ID     int64
	Number int64 // 0 if it has no coupon
	User   firstcome.UserID
	Open   bool // not yet replayed or voided by an operator
	Voided bool // voided by an operator
	// Generation and Ticket are those of its coupon. They are 0 if the coupon was issued without a line, or is not known to the ledger.
	Generation int64
	Ticket     int64
	Wrong      string // how its columns contradict each other; empty if they agree
}

// A LineView is the state of a campaign's line at its gate.
type LineView struct {
	Line firstcome.Line       // without Due
	Past []firstcome.PastLine // the last ended generations, in any order
}

// A place is the ticket of a coupon.
type place struct {
	firstcome.Ticket
	number int64
}
