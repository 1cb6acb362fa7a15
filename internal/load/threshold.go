package load

import (
	"fmt"
	"strings"

	"github.com/dustin/go-humanize"
)

// A Threshold is a limit of a run, and the run's value.
type Threshold struct {
	Name  string  `json:"name"` // p99_ms; errors: claims whose outcome is unknown; pace_kept: a share
	Limit float64 `json:"limit"`
	Got   float64 `json:"got"`
	Kept  bool    `json:"kept"`
}

const (
	thresholdP99    = "p99_ms"
	thresholdErrors = "errors"
	thresholdPace   = "pace_kept"
)

// thresholds compares a run with its limits.
func thresholds(c Options, r *Result) []Threshold {
	all := []Threshold{}
	if c.P99 > 0 {
		// A run without answers has no latency.
		limit := float64(c.P99.Microseconds()) / 1000
		all = append(all, Threshold{thresholdP99, limit, r.Latency.P99, r.Latency.Count > 0 && r.Latency.P99 <= limit})
	}
	if c.Errors != nil {
		got := r.Outcomes[unknown]
		all = append(all, Threshold{thresholdErrors, float64(*c.Errors), float64(got), got <= *c.Errors})
	}
	if c.PaceKept > 0 {
		t := Threshold{Name: thresholdPace, Limit: c.PaceKept}
		if r.Line != nil && r.Line.Kept != nil {
			t.Got = r.Line.Kept.Share
			t.Kept = t.Got >= t.Limit && !r.Line.Kept.tooFast()
		}
		all = append(all, t)
	}
	return all
}

// String describes in words whether it was kept.
func (t Threshold) String() string {
	is := map[bool]string{true: "within", false: "over"}[t.Kept]
	if t.Name == thresholdErrors {
		return fmt.Sprintf("%s, %s %s", counted(int64(t.Got), "error"), is, humanize.Comma(int64(t.Limit)))
	}
	if t.Name == thresholdPace {
		return fmt.Sprintf("%.3f of the pace, %s %g", t.Got, map[bool]string{true: "as wanted at least", false: "not kept:"}[t.Kept], t.Limit)
	}
	return fmt.Sprintf("p99 %s ms, %s %s ms", milliseconds(t.Got), is, milliseconds(t.Limit))
}

// Missed names the thresholds that were not kept, or returns "" if all were.
func (r *Result) Missed() string {
	var missed []string
	for _, t := range r.Thresholds {
		if !t.Kept {
			missed = append(missed, t.String())
		}
	}
	return strings.Join(missed, "; ")
}

// lagShare and lagLeast are the share of the latency, at the 99th percentile, and the milliseconds above which a generator's lag matters: timers fire
// up to a millisecond late.
const (
	lagShare = 0.1
	lagLeast = 5 // ms
)

// LagMatters reports whether claims waited so long for a free worker that the latency is partly the generator's.
func (r *Result) LagMatters() bool {
	return r.Load.Loop == "open" && r.Lag.P99 > lagLeast && r.Lag.P99 > lagShare*r.Latency.P99
}

// warnings returns why a run's figures may be misleading.
func warnings(r *Result) []string {
	all := []string{}
	if r.Interrupted {
		all = append(all, "interrupted: not all claims were sent, or not all places followed to their end, and the figures are of those that were")
	}
	if r.Unsent > 0 {
		all = append(all, fmt.Sprintf("%s due and never sent: no worker was free, and the latency lacks what they would have waited. Raise --concurrency, or lower --rate", were(r.Unsent, "claim")))
	}
	if r.LagMatters() {
		all = append(all, fmt.Sprintf("claims were sent %s ms late at p99, because no worker was free or this machine was busy: that is in the latency. Raise --concurrency, lower --rate, or give the generator a machine of its own", milliseconds(r.Lag.P99)))
	}
	if l := r.Line; l != nil && l.Looks.Late.P99 > lateLook {
		all = append(all, fmt.Sprintf("followers looked %s ms late at p99: this machine, or the server, is too busy for so many. Use --cdn, raise --concurrency, or give the generator a machine of its own", milliseconds(l.Looks.Late.P99)))
	}
	if l := r.Line; l != nil && l.Kept != nil && l.Kept.tooFast() {
		all = append(all, fmt.Sprintf("at one time %.1f more coupons were issued than the pace has room for, and a bucket is %g: the gate's clock was set back, or the pace is not kept", l.Kept.Ahead, l.Kept.Bucket))
	}
	return all
}

// lateLook is how late a look may begin, in milliseconds, without a warning: people wait a second or more between looks.
const lateLook = 250

func were(n int64, thing string) string {
	if n == 1 {
		return counted(n, thing) + " was"
	}
	return counted(n, thing) + " were"
}
