package figures

import (
	"encoding/json"
	"time"

	"github.com/firstcome/firstcome"
)

// A Sample is how a campaign was at one instant. A nil figure is unknown.
type Sample struct {
	At      time.Time `json:"at"` // by the clock of the node that shows it
	Version int64     `json:"version"`
	State   string    `json:"state"` // what a newcomer's claim would get: open, or an outcome; empty: unknown
	// Why is why the gate's figures or the state are unknown, see Whys; empty: they are known, or the ledger is down.
	Why string `json:"why"`
	// KnownAt is when this node last knew what is unknown now. It is zero if nothing is unknown, or if the node has not known it since it started.
	KnownAt  time.Time `json:"known_at,omitzero"`
	Quantity *int64    `json:"quantity"` // nil: unlimited, or unknown

	Issued     *int64 `json:"issued"`
	InForce    *int64 `json:"in_force"`
	Recorded   *int64 `json:"recorded"`
	Unrecorded *int64 `json:"unrecorded"`
	Waiting    *int64 `json:"waiting"`
	Served     *int64 `json:"served"` // tickets up to which the line was served
	LastTicket *int64 `json:"last_ticket"`

	// SoldOutIn is in how many seconds it is likely to be sold out: from the pace while people wait, or from the last ten seconds while at
	// least a tenth of the quantity is left. It is nil if nobody can tell.
	SoldOutIn *float64 `json:"sold_out_in"`

	// Instants are the gate's, or the ledger's where the ledger decides.
	Instants firstcome.Instants `json:"-"`

	// Rates are claims a second by Kind, over all nodes that were heard; nil: unknown.
	Rates map[string]float64 `json:"rates"`
	// Totals are claims by Kind, at least: see Claims.
	Totals map[string]uint64 `json:"totals"`
	// P50, P95 and P99 are latencies in seconds of the claims answered between each node's last two reports.
	P50 *float64 `json:"p50"`
	P95 *float64 `json:"p95"`
	P99 *float64 `json:"p99"`

	Nodes     int      `json:"nodes"`      // that should be heard
	NodesSeen int      `json:"nodes_seen"` // that were
	NodesAge  float64  `json:"nodes_age"`  // of the oldest row taken, in seconds
	Gone      []string `json:"gone"`       // nodes that ran and are not heard any more

	LedgerDown bool   `json:"ledger_down"` // nothing was read of the ledger; what stands here is this node's own
	Marks      []Mark `json:"marks"`       // what happened since the sample before

	pace float64 // coupons a second that the line is served; 0: no bound
	text []byte  // as JSON; nil: nobody asked yet
}

// JSON returns the sample as JSON. Whoever was sent the same sample by a Watcher shares the bytes.
func (s *Sample) JSON() ([]byte, error) {
	if s.text != nil {
		return s.text, nil
	}
	return json.Marshal(s)
}

// A Mark is something that happened to a campaign.
type Mark struct {
	At   time.Time `json:"at"`
	Kind string    `json:"kind"` // opened, sold_out, paused, resumed, closed, node_gone
	Text string    `json:"text"` // the node
}
