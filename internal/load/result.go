package load

import (
	"encoding/json"
	"io"
	"time"

	"github.com/dustin/go-humanize"

	"github.com/firstcome/firstcome/internal/audit"
)

// A Result is what a run measured and found. Its JSON form is stable: fields are
// added, and none is renamed or taken away.
type Result struct {
	Campaign  Campaign  `json:"campaign"`
	Load      Load      `json:"load"`
	Server    Server    `json:"server"`
	Generator Machine   `json:"generator"`
	Started   time.Time `json:"started"`
	Seconds   float64   `json:"seconds"` // from the start to the last answer
	// Interrupted tells that the run was ended before all was sent: the figures are of what was.
	Interrupted bool `json:"interrupted"`
	// SoldOut is after how many seconds the last coupon was answered; null: the run did not see it.
	SoldOut *float64 `json:"sold_out_seconds"`
	Claims  int64    `json:"claims"` // sent, those asked again too
	Unsent  int64    `json:"unsent"` // claims of the open loop that were due and never sent: no worker was free
	// PerSecond is how many claims with a known outcome were answered per second.
	PerSecond float64          `json:"per_second"`
	Outcomes  map[string]int64 `json:"outcomes"` // claims by outcome, or unknown
	Trouble   map[string]int64 `json:"trouble"`  // claims with an unknown outcome, by cause
	// Latency is from the instant a claim was due, which in the closed loop is when
	// it was sent, to its answer; unknown ones too, as people wait for those as well.
	Latency   Latency            `json:"latency"`
	LatencyOf map[string]Latency `json:"latency_of"` // by outcome, or unknown
	// Lag is how long after it was due a claim was sent: what of the latency was
	// spent waiting for a free worker.
	Lag     Latency  `json:"lag"`
	Series  Series   `json:"series"`
	Numbers []Number `json:"numbers"` // of issued coupons in the order of their issue, at most 2,000 of them, evenly chosen
	Verdict Verdict  `json:"verdict"`
	Line    *Line    `json:"line"` // null: nobody followed a place
	// Thresholds are the limits that were set, and whether they were kept.
	Thresholds []Threshold `json:"thresholds"`
	Warnings   []string    `json:"warnings"` // what makes the figures mean less than they seem to

	history []audit.Claim
	places  []audit.Followed
	issued  []Answer
}

// A Campaign is the campaign as it was before the run.
type Campaign struct {
	ID       string `json:"id"`
	Name     string `json:"name"`
	Quantity *int64 `json:"quantity"` // null: unlimited
	Issued   *int64 `json:"issued"`   // before the run; null: the gate did not say
}

// A Load is what was asked for.
type Load struct {
	Loop        string  `json:"loop"` // open or closed
	Users       int     `json:"users"`
	Repeat      int     `json:"repeat"`
	Concurrency int     `json:"concurrency"`
	Rate        float64 `json:"rate"`             // claims due per second; 0 in the closed loop
	Duration    float64 `json:"duration_seconds"` // 0: until all were sent
	Prefix      string  `json:"prefix"`
	Shuffle     bool    `json:"shuffle"`
	Seed        uint64  `json:"seed"`
	Follow      bool    `json:"follow"`
	FollowFor   float64 `json:"follow_seconds"` // 0: until every place has ended
	Leave       float64 `json:"leave"`          // the share of those in line who left it
	CDN         bool    `json:"cdn"`            // one look a second stood for all followers
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

// A Series says what happened in each interval of the run, by when answers came.
// All its lists have one entry an interval. The last lasts until the run's end, up to twice as long.
type Series struct {
	Interval  float64              `json:"interval_seconds"`
	At        []float64            `json:"at"`         // seconds from the start to the interval's
	PerSecond map[string][]float64 `json:"per_second"` // by outcome, or unknown
	P50       []*float64           `json:"p50_ms"`     // null: no answer
	P95       []*float64           `json:"p95_ms"`
	P99       []*float64           `json:"p99_ms"`
}

// A Number is an issued coupon's, and when it was issued. Answers come in another
// order, and the client's clock may be another: so both are the server's.
type Number struct {
	At     float64 `json:"at"` // seconds from the first coupon of the run, by the server's clock
	Number int64   `json:"number"`
}

// A Verdict says whether the answers keep the promises.
type Verdict struct {
	Checked  bool           `json:"checked"`
	Why      string         `json:"why"`     // not checked, or what it rests on
	Coupons  int            `json:"coupons"` // of the server that the answers were held against
	InForce  int            `json:"in_force"`
	Breaches audit.Breaches `json:"breaches"`
}

// OK tells whether the run was complete, and its answers keep every promise and every threshold.
func (r *Result) OK() bool { return r.Verdict.OK() && !r.Interrupted && r.Missed() == "" }

// OK tells whether the answers were checked and keep every promise.
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

// unknown is what stands for an outcome that the client did not learn.
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
