package load

import (
	"encoding/json"
	"io"
	"time"

	"github.com/dustin/go-humanize"

	"github.com/firstcome/firstcome/internal/audit"
)

// A Result is the result of a run. Its JSON form is stable: fields may be added, and none is renamed or removed.
type Result struct {
	Campaign  Campaign  `json:"campaign"`
	Load      Load      `json:"load"`
	Server    Server    `json:"server"`
	Generator Machine   `json:"generator"`
	Started   time.Time `json:"started"`
	Seconds   float64   `json:"seconds"` // from the start to the last answer
	// Interrupted means that the run was ended before all claims were sent: the figures cover those that were.
	Interrupted bool `json:"interrupted"`
	// SoldOut is after how many seconds the last coupon was answered; null if the run did not sell out.
	SoldOut *float64 `json:"sold_out_seconds"`
	Claims  int64    `json:"claims"` // claims sent, including repeats
	Unsent  int64    `json:"unsent"` // claims of the open loop that were due and never sent: no worker was free
	// PerSecond is how many claims with a known outcome were answered per second.
	PerSecond float64          `json:"per_second"`
	Outcomes  map[string]int64 `json:"outcomes"` // claims by outcome, or unknown
	Trouble   map[string]int64 `json:"trouble"`  // claims with an unknown outcome, by cause
	// Latency is from when a claim was due, which in the closed loop is when it was sent, to its answer. It includes unknown outcomes, because people
	// wait for those as well.
	Latency   Latency            `json:"latency"`
	LatencyOf map[string]Latency `json:"latency_of"` // by outcome, or unknown
	// Lag is how long after it was due a claim was sent: the part of the latency spent waiting for a free worker.
	Lag     Latency  `json:"lag"`
	Series  Series   `json:"series"`
	Numbers []Number `json:"numbers"` // an even selection of at most 2,000 issued coupons, in the order of their issue
	Verdict Verdict  `json:"verdict"`
	Line    *Line    `json:"line"` // null if no user followed a place
	// Thresholds are the limits of the run, and whether they were kept.
	Thresholds []Threshold `json:"thresholds"`
	Warnings   []string    `json:"warnings"` // why the figures may be misleading

	history []audit.Claim
	places  []audit.Followed
	issued  []Answer
}

// A Campaign is the state of the campaign before the run.
type Campaign struct {
	ID       string `json:"id"`
	Name     string `json:"name"`
	Quantity *int64 `json:"quantity"` // null if unlimited
	Issued   *int64 `json:"issued"`   // before the run; null if unknown
}

// A Load is the configured load.
type Load struct {
	Loop        string  `json:"loop"` // open or closed
	Users       int     `json:"users"`
	Repeat      int     `json:"repeat"`
	Concurrency int     `json:"concurrency"`
	Rate        float64 `json:"rate"`             // claims due per second; 0 in the closed loop
	Duration    float64 `json:"duration_seconds"` // 0 means until all were sent
	Prefix      string  `json:"prefix"`
	Shuffle     bool    `json:"shuffle"`
	Seed        uint64  `json:"seed"`
	Follow      bool    `json:"follow"`
	Leave       float64 `json:"leave"` // the share of users in line who left it
	CDN         bool    `json:"cdn"`   // one look a second stood for all followers
}

// A Latency is a distribution of durations, in milliseconds, to three digits.
type Latency struct {
	Count int64   `json:"count"`
	Mean  float64 `json:"mean_ms"`
	P50   float64 `json:"p50_ms"`
	P90   float64 `json:"p90_ms"`
	P95   float64 `json:"p95_ms"`
	P99   float64 `json:"p99_ms"`
	P999  float64 `json:"p999_ms"`
	Max   float64 `json:"max_ms"`
}

// A Series is the figures of each interval of the run, by when answers came. All its lists have one entry for each interval. The last interval
// extends to the run's end, and may be up to twice as long.
type Series struct {
	Interval  float64              `json:"interval_seconds"`
	At        []float64            `json:"at"`         // seconds from the start of the run to the start of the interval
	PerSecond map[string][]float64 `json:"per_second"` // by outcome, or unknown
	P50       []*float64           `json:"p50_ms"`     // null if there was no answer
	P95       []*float64           `json:"p95_ms"`
	P99       []*float64           `json:"p99_ms"`
}

// A Number is the number of an issued coupon, and its time of issue. Both are the server's, because answers come in another order, and the client's
// clock may differ.
type Number struct {
	At     float64 `json:"at"` // seconds from the first coupon of the run, by the server's clock
	Number int64   `json:"number"`
}

// A Verdict is whether the answers keep the promises.
type Verdict struct {
	Checked  bool           `json:"checked"`
	Why      string         `json:"why"`     // why nothing was checked, or what the verdict is based on
	Coupons  int            `json:"coupons"` // coupons of the server that the answers were compared with
	InForce  int            `json:"in_force"`
	Breaches audit.Breaches `json:"breaches"`
}

// OK reports whether the run was complete, and its answers keep every promise and every threshold.
func (r *Result) OK() bool { return r.Verdict.OK() && !r.Interrupted && r.Missed() == "" }

// OK reports whether the answers were checked and keep every promise.
func (v Verdict) OK() bool { return v.Checked && v.Breaches.Total == 0 }

// String returns the verdict in one line.
func (v Verdict) String() string {
	if !v.Checked {
		return "verdict: not checked, " + v.Why
	}
	return "verdict: " + breaches(v.Breaches.Total)
}

// breaches writes how many there are.
func breaches(n int64) string {
	if n == 1 {
		return "1 breach"
	}
	return humanize.Comma(n) + " breaches"
}

// unknown is the word for an outcome that the client does not know.
const unknown = "unknown"

// WriteJSON writes the result as one JSON object.
func (r *Result) WriteJSON(w io.Writer) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	return e.Encode(r)
}

// Milliseconds returns the mean and the percentiles in the order of their fields.
func (l Latency) Milliseconds() []float64 {
	return []float64{l.Mean, l.P50, l.P90, l.P95, l.P99, l.P999, l.Max}
}
