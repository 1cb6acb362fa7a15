package figures

import (
	"context"
	"time"

	"github.com/firstcome/firstcome"
)

// A Node is what one node last said of itself.
type Node struct {
	Host, Listen  string // together its key
	Role, Version string
	StartedAt     time.Time
	SeenAt        time.Time                       // when it said so
	StoppedAt     time.Time                       // zero while it runs, as far as it said
	Now           time.Time                       // when it was read, by the same clock
	Every         time.Duration                   // in how long it says so again; 0: at once
	Breaker       string                          // of its recorder: closed, half-open or open; empty if it records nothing
	Relay         string                          // likewise of what brings coupons into a topic on their way
	Campaigns     map[firstcome.CampaignID]Counts // since it began: what rates are made of
	// Before are claims that it took over, at its start or of a node that is gone for good. They belong to totals only.
	Before map[firstcome.CampaignID]Counts
}

// Key names the node.
func (n *Node) Key() string { return n.Host + " " + n.Listen }

// Silent tells that a running node has not been heard for too long.
func (n *Node) Silent() bool {
	return n.StoppedAt.IsZero() && n.Now.Sub(n.SeenAt) > GoneAfter+max(0, n.Every-busyEvery)
}

// Nodes are all that said something of themselves. Beside an error come those that are known all the same.
type Nodes interface {
	Nodes(ctx context.Context) ([]Node, error)
}

// breakerOf returns the breaker of a recorder or a relay, empty if there is none.
func breakerOf(recorder func() string) string {
	if recorder == nil {
		return ""
	}
	return recorder()
}
