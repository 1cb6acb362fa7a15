// Package follow is what the ledger and those who copy its facts elsewhere agree on: who copies, and how far.
package follow

import (
	"errors"

	"github.com/firstcome/firstcome"
)

// A Following is a follower's lease. A follower copies the facts of all campaigns somewhere else, such as to a topic. One node at a time works for a
// follower, and the ledger keeps how far it has come.
type Following struct {
	Follower string // the follower's name
	// Attempt grows with every lease. The ledger refuses writes of an earlier attempt.
	Attempt int64
	// Target is the id of the topic that the follower writes to, as last noted; empty if none was noted.
	Target string
	// Ends has, for each partition of the target, the offset after all records that the cursors cover. A node that died before it noted its progress
	// wrote the records from there on.
	Ends []int64
}

// A Cursor is a follower's progress in a campaign.
type Cursor struct {
	Campaign firstcome.CampaignID
	Position int64 // of the last fact in the target
	Top      int64 // of the campaign's last fact
	State    CursorState
}

// A CursorState is how a follower treats a campaign.
type CursorState string

// The states of a cursor.
const (
	Follows CursorState = ""      // copies new facts
	Again   CursorState = "again" // copies from an earlier position on, as an operator ordered, whatever the target has
	Ahead   CursorState = "ahead" // stopped: the target has facts that the ledger lacks, so the ledger was rolled back
)

// ErrNoFollower means that no node has ever had the follower's lease.
var ErrNoFollower = errors.New("no node has published facts to this topic yet")

// ErrFollowed means that another node has the follower's lease.
var ErrFollowed = errors.New("another node follows the facts")
