package recovery

import (
	"errors"
	"fmt"
	"time"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/gate"
)

// A Rebuild is one attempt at rebuilding a campaign's gate from the ledger. A later attempt has a higher number, and supersedes this one: each step
// that this attempt's owner then tries is refused.
type Rebuild struct {
	Campaign    firstcome.CampaignID
	CampaignUID string // see firstcome.Change
	Attempt     int64
	Epoch       int64  // the epoch that the rebuild ends
	Actor       string // for the audit log
	Version     int64  // like Drained, by the ledger
	Drained     int64
	InForce     int64 // number of coupons, by the ledger
	// WithoutLog takes the line from the gate's remaining keys although the line has a log, and appends it to the log again.
	WithoutLog bool
	// Left means that the attempt before neither ended nor was given up: its owner may have died at any step.
	Left bool
}

// A Frozen is the state of a gate at its freeze for a rebuild. It is the zero value if the gate had nothing of the campaign.
type Frozen struct {
	RunID   string         // of the server
	Line    firstcome.Line // as far as the gate still has it
	Version int64
	// TermsVersion is the version of the terms that the gate had in force. It is below Version if other changes came later, or if the gate refused
	// later terms.
	TermsVersion int64
	Epoch        int64
	LastNumber   int64     // the last number that the gate has given, as far as it still knows
	Drained      int64     // the number up to which every number has left the journal
	DecidedAt    time.Time // the gate's time must not go back before it
	// Through is the last number that the gate issued, if that is certain, as in a reconcile. Otherwise it is 0, and the gate may have issued any
	// number up to its ceiling.
	Through int64
	firstcome.Instants
}

// A Run is a server of a gate from its start to its end.
type Run struct {
	ID string // changes with each restart; a replica has its own
	// Durable means that a restart restores everything that the run confirmed, because it syncs before it answers and never had a replica that could
	// be promoted.
	Durable bool
}

// A GateState is the state of a campaign at its gate, read even while the gate decides nothing, because it is unverified or frozen.
type GateState struct {
	Was, Is           string // the run that decided last, and the current run
	Frozen            bool   // for a rebuild
	Epoch, Version    int64
	LastNumber        int64
	Ticket            firstcome.Ticket // the line's generation and its last ticket
	Witness           gate.Witness     // the least that the gate must know
	DrainedThrough    int64
	InForce, Holders  int64
	Quantity          int64
	OpensAt, ClosesAt time.Time
	Paused, Closed    bool
	Attempt           int64 // the last attempt at a rebuild that the gate knows
	Ceiling           int64 // the highest number that the gate may issue; 0 if not set
	ClosedAt          time.Time
	DecidedAt         time.Time // the gate's time at its last decision
	// Line means that the gate has stored pace, waitlist and log.
	Line     bool
	Pace     *firstcome.Pace
	Waitlist bool
	Log      *firstcome.LineLog // from the offset at which the epoch begins
	// TermsVersion and Payload are the version and the text of the gate's terms. The ledger wrote the text.
	TermsVersion int64
	Payload      string
	// Codes is the text of the lists of imported codes as of the last resume, as the ledger wrote it. It is empty without such lists.
	Codes string
}

// A Mark identifies the state of the ledger that was loaded into a gate. While the ledger's Mark is the same, so are its coupons in force, its open
// dead letters, and the generations of its line.
type Mark struct {
	Version    int64
	Position   int64
	Letters    int64 // open dead letters
	Generation int64 // of the line
	Ended      int64 // the last generation that ended, as the ledger knows; 0 if none
	// SoldOutAt is when the campaign first had no stock left, by the ledger; zero if it always had some.
	SoldOutAt time.Time
}

// A Loaded describes what was loaded into the new keys of a gate.
type Loaded struct {
	Mark
	Least, Most int64 // number of holders. It is a range because a user with an open dead letter may also have a coupon in force
	Carried
	// Log is where the line is logged, from the offset at which the next epoch begins; nil if it is not. Anew means that earlier records no longer
	// count.
	Log      *firstcome.LineLog
	Anew     bool
	LogEpoch int64 // the highest epoch that the log has
}

// A Carried describes the people who were carried over from a line. They keep their ticket numbers, in a new generation. The zero value means that
// nobody was.
type Carried struct {
	Generation     int64 // 0 means the next one after the frozen line's
	First, Last    int64 // tickets: of the first person carried over, and the last that was issued
	People         int64
	LeftWithCoupon int64 // people who had left the line with a coupon, by the ledger
}

// A Refill is the state with which a rebuilt gate begins, in addition to its holders.
type Refill struct {
	firstcome.Campaign
	TermsVersion int64
	Payload      string // the text of the terms: see GateState
	Codes        string // the text of the lists of imported codes: see GateState
	Epoch        int64  // the epoch that begins
	// LastNumber is the highest number that the gate may have issued before. The next number is above it.
	LastNumber int64
	Ceiling    int64 // see Grant
	Issued     int64
	DecidedAt  time.Time
	Line       firstcome.Line
	Past       []firstcome.PastLine // the last generations, newest first
	Lost       int64                // numbers that the gate may have issued, and that nobody has
	LostPlaces int64                // how many people at least were in line before, and no longer are
}

// A NoRoomError means that a gate's server lacks memory for the second copy of a campaign's keys that a rebuild loads.
type NoRoomError struct {
	Bytes int64 // approximate bytes
}

func (e *NoRoomError) Error() string {
	return fmt.Sprintf("Redis lacks about %d MB for a second copy of the campaign's keys: raise maxmemory, or free so much, and rebuild again",
		(e.Bytes+1<<20-1)>>20)
}

var (
	// ErrMoved means that the ledger changed while it was loaded into a gate, so it must be loaded again.
	ErrMoved = errors.New("the ledger changed while it was loaded")
	// ErrOtherCodes means that a restored ledger lacks imported codes, or has others than the campaign was resumed with.
	ErrOtherCodes = errors.New("the ledger's imported codes are not those with which the campaign was resumed: import them again in the same order, and reconcile again")
	// ErrSuperseded means that a newer attempt at a rebuild has superseded this one, or is under way.
	ErrSuperseded = errors.New("another node rebuilds the gate")
)
