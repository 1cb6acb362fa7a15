package figures

import (
	"encoding/json"
	"time"

	"github.com/firstcome/firstcome"
)

// A Sample is the state of a campaign at one time. A nil figure is unknown.
type Sample struct {
	At      time.Time `json:"at"` // by the clock of the node that serves it
	Version int64     `json:"version"`
	State   string    `json:"state"` // what a new user's claim would get: open, or an outcome; empty if unknown
	// Why is why the gate's figures or the state are unknown: see Whys. It is empty if they are known, or if the ledger is down.
	Why string `json:"why"`
	// KnownAt is when this node last knew what is unknown now. It is zero if nothing is unknown, or if the node has not known it since its start.
	KnownAt  time.Time `json:"known_at,omitzero"`
	Quantity *int64    `json:"quantity"` // nil if unlimited or unknown

	Issued     *int64 `json:"issued"`
	InForce    *int64 `json:"in_force"`
	Recorded   *int64 `json:"recorded"`
	Unrecorded *int64 `json:"unrecorded"`
	Waiting    *int64 `json:"waiting"`
	Served     *int64 `json:"served"` // the ticket up to which the line was served
	LastTicket *int64 `json:"last_ticket"`

	// SoldOutIn is the estimated number of seconds until the campaign is sold out. It is computed from the pace while people wait, and otherwise from
	// the last ten seconds if at least a tenth of the quantity is left. It is nil if no estimate is possible.
	SoldOutIn *float64 `json:"sold_out_in"`

	// Ranks is how many ranks the gate has given, also to coupons that were voided since.
	Ranks *int64 `json:"-"`
	// Prizes has the campaign's prizes, in order. Samples of Watcher.Of have none.
	Prizes []Prize `json:"prizes,omitempty"`

	// Instants are the gate's, or the ledger's if the ledger decides.
	Instants firstcome.Instants `json:"-"`

	// Rates are claims a second by Kind, over all nodes that have reported; nil if unknown.
	Rates map[string]float64 `json:"rates"`
	// Totals are lower bounds of the claims by Kind: see Claims.
	Totals map[string]uint64 `json:"totals"`
	// P50, P95 and P99 are latencies in seconds of the claims answered between each node's last two reports.
	P50 *float64 `json:"p50"`
	P95 *float64 `json:"p95"`
	P99 *float64 `json:"p99"`

	Nodes     int      `json:"nodes"`      // nodes that should report
	NodesSeen int      `json:"nodes_seen"` // nodes that did
	NodesAge  float64  `json:"nodes_age"`  // age of the oldest row used, in seconds
	Gone      []string `json:"gone"`       // nodes that ran and no longer report

	LedgerDown bool   `json:"ledger_down"` // the ledger does not answer, and the counts are this node's own
	Marks      []Mark `json:"marks"`       // events since the sample before

	pace float64 // coupons a second for the line; 0 if there is no limit
	text []byte  // as JSON; nil until it is needed
}

// JSON returns the sample as JSON. All receivers of the same sample of a Watcher share the bytes.
func (s *Sample) JSON() ([]byte, error) {
	if s.text != nil {
		return s.text, nil
	}
	return json.Marshal(s)
}

// A Prize is the stock of a prize.
type Prize struct {
	Given *int64 `json:"given"` // ranks, also of coupons that were voided since; nil if unknown
	// Of is how many ranks of it there are, or for the last prize how many there will be unless more coupons are voided. It is nil if unlimited or
	// unknown.
	Of *int64 `json:"of"`
	// RanOutAt is when the coupon with the last rank, or a later one, was issued. It is zero until the ledger has such a coupon.
	RanOutAt time.Time `json:"ran_out_at,omitzero"`
}

// A Mark is something that happened to a campaign.
type Mark struct {
	At   time.Time `json:"at"`
	Kind string    `json:"kind"` // opened, sold_out, paused, resumed, closed, node_gone
	Text string    `json:"text"` // the node of node_gone
}
