package recovery

import (
	"errors"
	"fmt"
	"time"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/gate"
)

// A Rebuild is one attempt at making a campaign's gate anew from what the ledger has. A later attempt has a higher number, and
// ends this one: each step that an earlier owner does then is refused.
type Rebuild struct {
	Campaign firstcome.CampaignID
	Marker   string // see firstcome.Change
	Attempt  int64
	Epoch    int64  // which the rebuild ends
	Actor    string // who asked for it, for the audit log
	Version  int64  // by the ledger; and Drained
	Drained  int64
	InForce  int64 // coupons, by the ledger
	// WithoutLog has the line carried over from what the gate still has, though it has a log, and logged anew.
	WithoutLog bool
	// Left tells that the attempt before neither ended nor was given up: its owner may have died at any step.
	Left bool
}

// A Frozen is what a gate told when it was frozen for a rebuild. The zero value: it had nothing of the campaign.
type Frozen struct {
	RunID     string         // of the server
	Line      firstcome.Line // as far as the gate knew it
	Version   int64
	Epoch     int64
	Drained   int64     // the number up to which every number has left the journal
	DecidedAt time.Time // the gate's time must not go back before it
	// Through is the last number that the gate gave, where that is sure, as in a reconcile. 0: it may have given any up to its ceiling.
	Through int64
	firstcome.Instants
}

// A Run is a server of a gate from its start to its end.
type Run struct {
	ID string // changes with each restart; a replica has its own
	// Durable: a restart restores all that the run confirmed, because it syncs before it answers and never had a replica that could
	// be promoted.
	Durable bool
}

// A Stopped campaign is one that its gate does not decide because it is unverified.
type Stopped struct {
	Was, Is           string // the run that decided last, and the one that is asked
	Frozen            bool   // for a rebuild
	Epoch, Version    int64
	LastNumber        int64
	Told              int64 // the highest number of the epoch that the gate told this node; 0: none
	DrainedThrough    int64
	InForce, Holders  int64
	Quantity          int64
	OpensAt, ClosesAt time.Time
	Paused, Closed    bool
	Attempt           int64 // the last one at a rebuild that the gate knows of
	Ceiling           int64 // the highest number that it may give; 0: not said
	ClosedAt          time.Time
	DecidedAt         time.Time // the gate's time when it decided last
	// Line tells that the gate knows pace, waitlist and log.
	Line     bool
	Pace     *firstcome.Pace
	Waitlist bool
	Log      *firstcome.LineLog // from where the epoch begins
}

// A Mark says which state of the ledger was loaded into a gate. While the ledger's is the same, so are its coupons in force and
// its open dead letters, and the generations of its waiting line.
type Mark struct {
	Version    int64
	Position   int64
	Letters    int64 // open dead letters
	Generation int64 // of the line
	Ended      int64 // the last generation of which the ledger knows that it sent its people away; 0: none
	// SoldOutAt is when nothing was left for the first time, by the ledger; zero: something always was.
	SoldOutAt time.Time
}

// A Loaded says what was loaded into the new keys of a gate.
type Loaded struct {
	Mark
	Least, Most int64 // holders: a user with an open dead letter may have a coupon in force besides
	Carried
	// Log is where the line is logged, from where the next epoch begins; nil: nowhere. Anew: all that was logged before says nothing any more.
	Log      *firstcome.LineLog
	Anew     bool
	LogEpoch int64 // the highest epoch that the log has
}

// A Carried says who of a line was carried over. They keep their ticket numbers, in a new generation. The zero value: nobody.
type Carried struct {
	Generation  int64 // 0: the next one after that of the frozen line
	First, Last int64 // tickets: of the first who was carried, and the last one that was given
	People      int64
	Passed      int64 // people in line whom the ledger has with a coupon that ended their ticket
}

// A Refill is what a rebuilt gate begins with, beside its holders.
type Refill struct {
	firstcome.Campaign
	TermsVersion int64
	Epoch        int64 // which begins
	// LastNumber is the highest number that the gate may have given before. The next one is above it.
	LastNumber int64
	Ceiling    int64 // see Grant
	Issued     int64
	DecidedAt  time.Time
	Line       firstcome.Line
	Past       []gate.PastLine // the last ones, newest first
	Lost       int64           // numbers that were lost: they may have been given, and nobody has them
	LostPlaces int64           // at least this many people were in line who are not any more
}

// A NoRoomError says that a gate's server has no memory for a second copy of a campaign's keys, which a rebuild loads.
type NoRoomError struct {
	Missing int64 // bytes, about
}

func (e *NoRoomError) Error() string {
	return fmt.Sprintf("Redis lacks about %d MB for a second copy of the campaign's keys: raise maxmemory, or free so much, and rebuild again",
		(e.Missing+1<<20-1)>>20)
}

var (
	// ErrMoved says that the ledger changed while it was loaded into a gate: it is to be loaded again.
	ErrMoved = errors.New("the ledger has changed meanwhile")
	// ErrOutdone says that another attempt at a rebuild has begun, so this one ends.
	ErrOutdone = errors.New("another node rebuilds the gate")
)
