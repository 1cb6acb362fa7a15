package gate

import (
	"context"

	"github.com/firstcome/firstcome"
)

// A Fed is a gate for the lines that feeds keep. The gate keeps the ticket that is served next, and each turn says which one it begins
// with. So a ticket is served once, whoever reads the feed, and how often.
type Fed interface {
	// Begin has a generation begin at an offset of a feed, if it has not begun, and returns the line as it is then, perhaps a later generation.
	// firstcome.ErrBusy says that the line is in another feed by now.
	Begin(ctx context.Context, id firstcome.CampaignID, feed firstcome.Feed, generation, first int64) (firstcome.Line, error)

	// ServeTurn issues coupons to the users of a turn, as many as the pace allows, in one atomic step. If the turn does not begin with the
	// ticket that is next, nobody is served. An error means that it is unknown what was served; doing it again is safe.
	ServeTurn(ctx context.Context, id firstcome.CampaignID, turn Turn) (Turned, error)

	// PlaceOf is Places.Place of a user with a ticket. firstcome.ErrNoTicket says that it has ended.
	PlaceOf(ctx context.Context, id firstcome.CampaignID, user firstcome.UserID, ticket firstcome.Ticket) (firstcome.Place, firstcome.Coupon, error)

	// LeaveOf is Places.Leave of a user whose tickets up to this one are passed over from now on.
	LeaveOf(ctx context.Context, id firstcome.CampaignID, user firstcome.UserID, through firstcome.Ticket) error
}

// A Turn is a part of a feed, which is to be served.
type Turn struct {
	Generation int64
	From       int64 // the ticket of the first of Users
	// Users have the tickets from From on. An empty one is nobody's: it is passed over.
	Users []firstcome.UserID
}

// Turned is what a turn did.
type Turned struct {
	Served // Waiting is not said
	// Over is how many tickets were passed over: nobody's, or of a user who holds a coupon or left. They take no pace.
	Over int64
	// Line and Feed are the campaign's behind the turn. Whoever read the turn from another feed reads no further there: nobody of this Line is
	// in it. A nil Feed says nothing.
	Line firstcome.Line
	Feed *firstcome.Feed
}

// A Feeder lists the lines that feeds keep.
type Feeder interface {
	// Feeds calls each with the campaigns of this node's gate whose lines feeds keep, unless they are closed for good.
	Feeds(ctx context.Context, each func(firstcome.CampaignID, firstcome.Feed)) error
}
