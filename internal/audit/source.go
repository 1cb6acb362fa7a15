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

// ErrNotTold says that nobody can tell of a line, because the gate that keeps it is lost.
var ErrNotTold = errors.New("nobody can tell of the line")

// A Source is a ledger to audit. [Ledger] calls each of its functions once, in the order in which
// they stand here, and Campaign once more in the end; all of them have to tell of one instant: that of
// the first call of Campaign. [Gate] calls them at different instants.
type Source struct {
	// Campaign is firstcome.ErrNoCampaign if there is no row of it.
	Campaign func(context.Context, firstcome.CampaignID) (Campaign, error)
	// Changes calls each with every change in the order of their versions.
	Changes List[Change]
	// Log calls each with every line of the audit log about the campaign, in their order.
	// Nil: it is not audited.
	Log List[Line]
	// Coupons calls each with every coupon in number order, voided ones too.
	Coupons List[Coupon]
	// Past calls each with every generation of the waiting line that ended, in their order, and Tickets with every ticket,
	// in the order of generations and tickets. Nil: the line is not audited.
	Past    List[PastLine]
	Tickets List[Ticket]
	// Leavers calls each with everybody who left the line that a topic keeps. Nil: nobody says. Only [Gate] and [Feed] call it.
	Leavers List[Leaver]
	// Line returns what anybody is told of the line, later than the coupons, or ErrNotTold. Nil: it is not asked.
	Line func(ctx context.Context, id firstcome.CampaignID) (LineView, error)
	// Letters calls each with every dead letter of the campaign, resolved ones too,
	// and Lost with every range of lost numbers.
	Letters List[Letter]
	Lost    List[Range]
	// Runs calls each with every run of facts that is written, in position order.
	Runs List[Run]
}

// A List calls each with every row of one kind that there is about a campaign.
type List[V any] func(ctx context.Context, id firstcome.CampaignID, each func(V)) error

// A Campaign is a campaign with the counters of its row.
type Campaign struct {
	firstcome.Campaign // its quantity, window, pause and close are those of Row
	InForce            int64
	Issued             int64
	LastNumber         int64
	Position           int64 // of the last fact
	// Remote tells that another gate than the ledger decides: coupons reach the ledger
	// later, and not always in number order.
	Remote  bool
	Drained int64 // of a remote gate: every number up to it is a coupon, a dead letter or lost
	Applied int64 // the last change that the gate has
	Epoch   int64
	Secret  string // fingerprint of the code secret; empty: not known
	// Row is what the row says besides. Nil: it was not read, and quantity, window, pause
	// and close are not known either.
	Row *Row
}

// A Row is what a campaign's row says that clients are not told.
type Row struct {
	TermsVersion int64
	DecidedAt    time.Time // the last instant of the gate's clock
	RetiredAt    time.Time // zero: it is not
	ForgottenAt  time.Time // by its gate; zero: it is not
	Line         firstcome.Line
	Letters      int64 // dead letters with a number
}

// A Change is a change of a campaign, as it is kept.
type Change struct {
	firstcome.Change
	Refused bool
	Logged  string // what its line in the audit log has to say of it; empty: of a void
	Wrong   error  // why what it holds cannot be read; nil: it can
}

// A Line is a line of the audit log.
type Line struct {
	ID     int64
	At     time.Time
	Action string
	User   firstcome.UserID
	Number int64
	Detail string
	About
}

// About is what a line's detail says.
type About struct {
	Reason string         `json:"reason"`      // of a void
	Letter int64          `json:"dead_letter"` // id of the dead letter
	Key    string         `json:"key"`         // id of the key
	Name   string         `json:"name"`        // of a new key
	Role   firstcome.Role `json:"role"`
	// A direct issue has these: how many coupons it issued, and the number of the last one.
	Issued     int64 `json:"issued"`
	LastNumber int64 `json:"last_number"`
}

// A Coupon is a coupon of the ledger.
type Coupon struct {
	firstcome.Coupon
	Position   int64     // of the fact that it was issued
	RecordedAt time.Time // zero: not known
	Reason     string    // why it was voided
}

// A Run is count facts of one kind from a position on about the numbers from another on.
type Run struct {
	Position, Count, Number int64
	Kind                    firstcome.FactKind
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
	ResolvedAt time.Time
	Wrong      string // how its columns contradict each other; empty: they do not
}

// A Range is Count numbers from First on.
type Range struct {
	First, Count int64
	Epoch        int64 // that began after them; 0: not known
}

// last returns the highest number of a range.
func (r Range) last() int64 { return r.First + r.Count - 1 }
