package flow

import (
	"errors"

	"github.com/firstcome/firstcome"
)

// A Following is a follower's lease. A follower brings the facts of all campaigns somewhere else, like to a topic, and one node at a time
// does so for it. The ledger keeps how far it has come.
type Following struct {
	Follower string // its name
	// Attempt grows with every lease. What an earlier one writes is refused.
	Attempt int64
	// Target is the id of what the follower writes to, as it was noted last; empty: none was.
	Target string
	// Ends has, of each partition of the target, the offset after all that the cursors know. What the target has from there on was
	// written by a node that died before it noted so.
	Ends []int64
}

// A Cursor is how far a follower has come with a campaign.
type Cursor struct {
	Campaign firstcome.CampaignID
	Position int64 // of the last fact that the target has
	Top      int64 // of the last fact that there is
	State    CursorState
}

// A CursorState says what a follower does with a campaign.
type CursorState string

// The states of a cursor.
const (
	Follows CursorState = ""      // goes on
	Again   CursorState = "again" // goes on from an earlier position, as an operator ordered: what the target has does not count
	Ahead   CursorState = "ahead" // does not go on: the target has facts that the ledger does not have, so the ledger is older
)

// ErrFollowed says that another node has the follower's lease.
var ErrFollowed = errors.New("another node follows the facts")
