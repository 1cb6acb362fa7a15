package gate

import (
	"context"
	"time"

	"github.com/firstcome/firstcome"
)

// A Line serves the waiting lines of a gate. Its methods may be called from many goroutines and nodes.
type Line interface {
	// Serve issues coupons to the next users in line whom the pace allows now, at most limit, in the order of their tickets. Line, coupons and facts
	// change in one atomic step: a transaction or a script. An error means that it is unknown who was served; serving again is safe.
	Serve(ctx context.Context, id firstcome.CampaignID, limit int) (Served, error)

	// Lines calls each with every campaign of this gate whose line is not empty.
	Lines(ctx context.Context, each func(firstcome.CampaignID)) error
}

// Served is the result of one call of Line.Serve.
type Served struct {
	Coupons []firstcome.Coupon // coupons issued, in the order of their tickets and of their numbers
	// Ended is why the generation ended with this call, sold_out or closed. All users who still waited, if any, were sent away. It is empty if the
	// generation did not end.
	Ended   string
	Waiting int64 // users in line after the call
	// Again is how long it takes, as far as is known, until a user in line can be served. 0 means not before a user joins, an operator changes
	// something, or a second has passed.
	Again time.Duration
}

// Places reads and ends users' places in line at a gate.
type Places interface {
	// Place returns a user's place in line, or the coupon that they hold, whose number is then not 0. firstcome.ErrNoTicket means that they have
	// neither. Then, if the line has a log, the place is the last one that they had in this generation.
	Place(ctx context.Context, id firstcome.CampaignID, user firstcome.UserID) (firstcome.Place, firstcome.Coupon, error)

	// Leave takes a user out of the line. If the line has a log, it returns the place that the user gave back, now or before. It also succeeds if the
	// user left or was sent away before, or was served and the coupon was voided. firstcome.ErrServed means that they hold a coupon, and
	// firstcome.ErrNoTicket that they never joined. After any other error, asking again is safe.
	Leave(ctx context.Context, id firstcome.CampaignID, user firstcome.UserID) (left firstcome.Place, err error)

	// Stays returns when a user was in line, in the order of the tickets, as far as the gate knows. Nothing that it returns may decide anything: the
	// gate may have forgotten earlier stays.
	Stays(ctx context.Context, id firstcome.CampaignID, user firstcome.UserID) ([]Stay, error)

	// LineOf returns a campaign's line, or firstcome.ErrNoCampaign.
	LineOf(ctx context.Context, id firstcome.CampaignID) (LineState, error)
}

// A Stay is one time that a user was in line. A zero time is unknown.
type Stay struct {
	firstcome.Ticket
	JoinedAt, EndedAt time.Time
	// Ended is how it ended: issued, already_issued (the user got a coupon without the line), left, the reason of a firstcome.PastLine, StayOver or
	// StayEnded. It is empty while the user is in line.
	Ended string
}

// Words of Stay.Ended for what a gate does not know.
const (
	StayOver  = "over"  // it ended before its line did: the user left, or got a coupon, which may have been voided since
	StayEnded = "ended" // its line ended, too long ago
)

// MaxStays is the most stays that a gate returns: the last ones.
const MaxStays = 16

// Stay returns the stay of a user who was sent away with a generation, if it is among the last ones that ended.
func (s *LineState) Stay(at firstcome.Ticket) Stay {
	for _, p := range s.Past {
		if p.Generation == at.Generation {
			return Stay{Ticket: at, Ended: p.Reason, EndedAt: p.EndedAt}
		}
	}
	return Stay{Ticket: at, Ended: StayEnded}
}

// An Order is the actor and the reason of a direct issue.
type Order struct {
	Actor  string
	Reason string // may be empty
}

// A LineReport is a journal's report about a campaign's line.
type LineReport struct {
	// Line is the state after the batch's last entry. Its generation is 0 if no entry has a state. Its Due is not set. Users who join or leave create
	// no entry.
	Line firstcome.Line
	Past []firstcome.PastLine // generations that ended, in order
}

// Empty reports whether the report is empty.
func (r LineReport) Empty() bool { return r.Line.Generation == 0 && len(r.Past) == 0 }

// Add adds a later report.
func (r *LineReport) Add(later LineReport) {
	if later.Line.Later(r.Line) {
		r.Line = later.Line
	}
	r.Past = append(r.Past, later.Past...)
}

// MaxPastLines is the most ended generations that LineOf returns: the last ones.
const MaxPastLines = 16

// A LineState is a snapshot of a campaign's line. Its Campaign has only the terms that decide claims: quantity, window, waitlist, and the pace as the
// terms have it.
type LineState struct {
	firstcome.View
	Joined time.Time            // when the next user in line joined, by the gate's clock; zero if the line is empty or the time is unknown
	Past   []firstcome.PastLine // the last generations, newest first
}
