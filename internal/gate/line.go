package gate

import (
	"context"
	"time"

	"github.com/firstcome/firstcome"
)

// A Line is a gate that keeps waiting lines: what serves them needs. Its methods may be called from many goroutines
// and nodes.
type Line interface {
	// Serve issues coupons to those next in line whom the pace allows at this instant, at most limit, in the order of
	// their tickets: line, coupons and facts change in one atomic step, a transaction or a script. An error means that it
	// is unknown what was served; serving again is safe.
	Serve(ctx context.Context, id firstcome.CampaignID, limit int) (Served, error)

	// Lines calls each with every campaign of this gate that has people in line.
	Lines(ctx context.Context, each func(firstcome.CampaignID)) error
}

// Served is what one call of Line.Serve did.
type Served struct {
	Coupons []firstcome.Coupon // issued, in the order of their tickets, which is that of their numbers
	// Ended is why the generation ended with this call, sold_out or closed: everybody who still waited was sent away,
	// perhaps nobody.
	// Empty: it did not end.
	Ended   string
	Waiting int64 // people in line after the call
	// Again is how long it takes until somebody in line can be served, as far as is known. 0: not before somebody joins,
	// an operator changes something, or a second passes.
	Again time.Duration
}

// Places are the places in line at a gate, as the API reads and ends them.
type Places interface {
	// Place returns where a user stands in line, or the coupon that they hold, whose number is then not 0.
	// firstcome.ErrNoTicket says that they have neither.
	Place(ctx context.Context, id firstcome.CampaignID, user firstcome.UserID) (firstcome.Place, firstcome.Coupon, error)

	// Leave takes a user out of the line, and returns the place that they gave back, now or before, where the line has a log. It is nil also if
	// they left or were sent away before, or if they were served and their coupon was voided. firstcome.ErrServed says that they hold a coupon,
	// firstcome.ErrNoTicket that they never joined. If it returns another error, asking again is safe.
	Leave(ctx context.Context, id firstcome.CampaignID, user firstcome.UserID) (left firstcome.Place, err error)

	// LineOf returns a campaign's line, or firstcome.ErrNoCampaign.
	LineOf(ctx context.Context, id firstcome.CampaignID) (LineState, error)
}

// An Order is who ordered a direct issue, and why.
type Order struct {
	Actor  string
	Reason string // empty if nobody said
}

// A LineReport is what a journal says of a campaign's line.
type LineReport struct {
	// Line is as it was after the batch's last entry; of generation 0: none says. Its Due is not said. Who joins or leaves
	// leaves no entry.
	Line firstcome.Line
	Past []PastLine // generations that ended, in their order
}

// Empty tells whether it says nothing.
func (r LineReport) Empty() bool { return r.Line.Generation == 0 && len(r.Past) == 0 }

// Add adds a later report.
func (r *LineReport) Add(later LineReport) {
	if later.Line.Later(r.Line) {
		r.Line = later.Line
	}
	r.Past = append(r.Past, later.Past...)
}

// MaxPastLines is how many generations that ended LineOf returns at most: the last ones.
const MaxPastLines = 16

// A LineState is a campaign's line at one instant.
type LineState struct {
	// Campaign has of its terms what decides: quantity, window, pace and waitlist.
	Campaign firstcome.Campaign
	Line     firstcome.Line
	InForce  int64
	Now      time.Time  // the gate's time
	Joined   time.Time  // when who is next in line joined, by the same clock; zero: nobody is in line, or nobody says
	Past     []PastLine // the last ones, newest first
}

// A PastLine is a generation that ended: who was in line still was sent away.
type PastLine struct {
	Generation    int64
	Reason        string    // sold_out, closed or lost
	EndedAt       time.Time // of one that a passed window ended the closing, whoever found that when
	LastTicket    int64     // the one given last
	ServedThrough int64     // every ticket up to it had ended before
	Served        int64     // tickets whose users got a coupon, or had one
	Waiting       int64     // tickets whose users were sent away
}
