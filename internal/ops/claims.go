package ops

import (
	"context"
	"errors"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/issue"
)

// claimMetrics are the metrics of a node that answers claims.
type claimMetrics struct {
	claims              *prometheus.CounterVec
	decided             [firstcome.Issued + 1]prometheus.Counter // by outcome
	took, batches, gate prometheus.Histogram
}

// Why a claim has no outcome. A client alone can cause not_found and gone, so they are no sign of trouble.
const (
	claimUnknown  = "unknown"   // the gate may have decided it: 503
	claimShed     = "shed"      // too many claims waited, and nothing was decided: 503
	claimMismatch = "mismatch"  // the node may not decide the campaign, and nothing was decided: 503
	claimNotFound = "not_found" // there is no such campaign: 404
	claimGone     = "gone"      // the caller left before the answer. A lane of httpd does not notice that: its claims are decided, and counted by their outcomes
)

func newClaimMetrics() claimMetrics {
	m := claimMetrics{
		claims: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "firstcome_claims_total", Help: "Claims by outcome. Without an outcome: unknown (it may have been decided); shed, gate_unavailable, gate_full, line_full, stopping, mismatch, not_found (nothing was decided); gone (the caller left, as far as net/http noticed; a lane does not).",
		}, []string{"outcome"}),
		took:    histogram("firstcome_claim_seconds", "Time from a claim's arrival, once all of its body is there, to its answer.", latencies),
		batches: histogram("firstcome_batch_claims", "Claims that went to the gate at once.", prometheus.ExponentialBuckets(1, 2, 10)),
		gate:    histogram("firstcome_gate_seconds", "Time of a call of the gate.", latencies),
	}
	for _, o := range firstcome.Outcomes() {
		m.decided[o] = m.claims.WithLabelValues(o.String())
	}
	for _, why := range []string{
		claimUnknown, claimShed, claimMismatch, claimNotFound, claimGone,
		string(firstcome.GateUnavailable), string(firstcome.GateFull), string(firstcome.LineFull), string(firstcome.Stopping),
	} {
		m.claims.WithLabelValues(why)
	}
	return m
}

// Claimed counts a claim that was answered with an outcome, and its duration.
func (m *Monitor) Claimed(id firstcome.CampaignID, o firstcome.Outcome, took time.Duration) {
	m.Decided(id, o)
	m.took.Observe(took.Seconds())
}

// Decided counts an outcome of a direct issue.
func (m *Monitor) Decided(_ firstcome.CampaignID, o firstcome.Outcome) { m.decided[o].Inc() }

// Undecided counts a claim that ended with an error. ctx is the claim's context.
func (m *Monitor) Undecided(ctx context.Context, _ firstcome.CampaignID, err error) {
	why := claimUnknown
	switch cause := firstcome.CauseOf(err); {
	case errors.Is(err, firstcome.ErrNoCampaign):
		why = claimNotFound
	case cause == firstcome.Busy:
		why = claimShed
	case cause != "":
		why = string(cause)
	case errors.Is(err, firstcome.ErrGateMismatch):
		why = claimMismatch
	case ctx.Err() != nil:
		why = claimGone
	}
	m.claims.WithLabelValues(why).Inc()
}

// Batch serves as issue.Options.OnBatch.
func (m *Monitor) Batch(claims int, took time.Duration, err error) {
	m.batches.Observe(float64(claims))
	m.gate.Observe(took.Seconds())
	if err != nil && !errors.Is(err, firstcome.ErrNoCampaign) { // any client can ask for a campaign that does not exist
		m.failures.WithLabelValues(classOf(err)).Inc()
		m.Warn("a batch of claims was not decided", "claims", claims, "err", err)
	}
}

// WatchClaims adds the metrics of the parts that answer claims, and of their connections.
func (m *Monitor) WatchClaims(i *issue.Issuer, connections func() (open, evicted, shed int64)) {
	one := func(which int) func() int64 {
		return func() int64 {
			open, evicted, shed := connections()
			return []int64{open, evicted, shed}[which]
		}
	}
	m.registry.MustRegister(m.claims, m.took, m.batches, m.gate,
		gaugeFunc("firstcome_waiting_claims", "Claims that wait for a call of the gate, or are in one.", func() int64 { return i.Stats().Waiting }),
		counterFunc("firstcome_shed_claims_total", "Claims refused because too many waited.", func() int64 { return i.Stats().Shed }),
		counterFunc("firstcome_cached_answers_total", "Claims answered without asking the gate.", func() int64 { return i.Stats().Cached }),
		counterFunc("firstcome_batch_failures_total", "Calls of the gate that failed.", func() int64 { return i.Stats().Failed }),
		gaugeFunc("firstcome_open_connections", "Open connections of the public listener.", one(0)),
		counterFunc("firstcome_evicted_connections_total", "Idle connections closed to make room.", one(1)),
		counterFunc("firstcome_shed_connections_total", "New connections closed because there was no room.", one(2)),
	)
}
