package figures

import (
	"context"
	"time"

	"github.com/firstcome/firstcome"
)

// A Node is the last report of a node.
type Node struct {
	Host, Listen  string // together they are the node's key
	Role, Version string
	StartedAt     time.Time
	SeenAt        time.Time                       // when it was reported
	StoppedAt     time.Time                       // zero if it has not reported its stop
	Now           time.Time                       // when the report was read, by the same clock
	Every         time.Duration                   // the time until its next report; 0 means at once
	Breaker       string                          // of its recorder: "closed", "half-open" or "open"; empty if it records nothing
	Relay         string                          // the same for the relay that brings coupons into a topic
	Campaigns     map[firstcome.CampaignID]Counts // counts since its start, from which rates are computed
	// Before has counts that it took over, from its row at its start or from a deleted node. They belong to totals only.
	Before map[firstcome.CampaignID]Counts
}

// Key returns the node's unique name.
func (n *Node) Key() string { return n.Host + " " + n.Listen }

// Silent reports whether the last report of a running node is too old.
func (n *Node) Silent() bool {
	return n.StoppedAt.IsZero() && n.Now.Sub(n.SeenAt) > goneAfter+max(0, n.Every-busyEvery)
}

// Idle reports whether a node got no claims before its last report: then it reports less often.
func (n *Node) Idle() bool { return n.Every > busyEvery }

// Nodes returns the reports of all nodes. Together with an error it returns those that are known all the same.
type Nodes interface {
	Nodes(ctx context.Context) ([]Node, error)
}

// breakerOf returns the breaker of a recorder or a relay, or "" if there is none.
func breakerOf(recorder func() string) string {
	if recorder == nil {
		return ""
	}
	return recorder()
}
