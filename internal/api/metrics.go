package api

import (
	"context"
	"errors"
	"log/slog"
	"runtime"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/flow"
)

// metrics are what a node counts. Labels have few values and never name a user.
type metrics struct {
	log     *slog.Logger
	claims  [firstcome.Issued + 1]prometheus.Counter // by outcome
	without map[string]prometheus.Counter            // claims without an outcome, by why
	latency prometheus.Histogram
	batch   prometheus.Histogram
	gate    prometheus.Histogram
	commit  prometheus.Histogram
	failed  prometheus.Counter
	remote  *remoteMetrics // nil: the ledger decides

	unwritten atomic.Bool // the ledger's last transaction failed

	warned atomic.Int64 // when warn last logged, in seconds since 1970
}

// latencies are the buckets of times, in seconds: from a claim answered from a
// lease to twice the time that a call of the gate may take.
var latencies = []float64{.0001, .00025, .0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10}

func newMetrics(s *Server) *metrics {
	claims := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "firstcome_claims_total", Help: "Claims, by outcome; of those without: unknown (it may have been decided), shed, mismatch, not_found (nothing was), gone (the caller left).",
	}, []string{"outcome"})
	m := &metrics{
		log:     s.Log,
		without: map[string]prometheus.Counter{},
		latency: histogram("firstcome_claim_seconds", "Time from a claim's arrival, once all of its body is there, to its answer.", latencies),
		batch:   histogram("firstcome_batch_claims", "Claims that went to the gate at once.", prometheus.ExponentialBuckets(1, 2, 10)),
		gate:    histogram("firstcome_gate_seconds", "Time of a call of the gate.", latencies),
		commit:  histogram("firstcome_commit_seconds", "Time of a transaction of the ledger, to the disk.", latencies),
		failed:  counter("firstcome_commit_failures_total", "Transactions of the ledger that failed."),
	}
	for _, o := range firstcome.Outcomes() {
		m.claims[o] = claims.WithLabelValues(o.String())
	}
	for _, why := range undecided {
		m.without[why] = claims.WithLabelValues(why)
	}
	s.Registry.MustRegister(claims, m.latency, m.batch, m.gate, m.commit, m.failed)
	registerIssuer(s.Registry, s.Issuer)
	registerConns(s.Registry, s.conns)
	registerProcess(s.Registry, s.Version, s.Commit)
	s.Registry.MustRegister(newLedgerCollector(s.Ledger), newStockCollector(s.Ledger))
	if s.Remote != nil {
		m.remote = newRemoteMetrics(s)
	}
	return m
}

func histogram(name, help string, buckets []float64) prometheus.Histogram {
	return prometheus.NewHistogram(prometheus.HistogramOpts{Name: name, Help: help, Buckets: buckets})
}

func describe(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc(name, help, labels, nil)
}

func counter(name, help string) prometheus.Counter {
	return prometheus.NewCounter(prometheus.CounterOpts{Name: name, Help: help})
}

// registerIssuer adds the issuer's own counters, read when they are asked for.
func registerIssuer(r *prometheus.Registry, i *flow.Issuer) {
	r.MustRegister(
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "firstcome_waiting_claims", Help: "Claims that wait for the gate or are at it."},
			func() float64 { return float64(i.Stats().Waiting) }),
		prometheus.NewCounterFunc(prometheus.CounterOpts{Name: "firstcome_shed_claims_total", Help: "Claims refused because too many waited."},
			func() float64 { return float64(i.Stats().Shed) }),
		prometheus.NewCounterFunc(prometheus.CounterOpts{Name: "firstcome_repeated_claims_total", Help: "Claims answered without asking the gate."},
			func() float64 { return float64(i.Stats().Repeated) }),
		prometheus.NewCounterFunc(prometheus.CounterOpts{Name: "firstcome_batch_failures_total", Help: "Calls of the gate that failed."},
			func() float64 { return float64(i.Stats().Failed) }),
	)
}

func registerConns(r *prometheus.Registry, c *conns) {
	r.MustRegister(
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "firstcome_open_connections", Help: "Open connections of the public listener."},
			func() float64 { return float64(c.count()) }),
		prometheus.NewCounterFunc(prometheus.CounterOpts{Name: "firstcome_evicted_connections_total", Help: "Idle connections closed to make room."},
			func() float64 { return float64(c.evicted.Load()) }),
		prometheus.NewCounterFunc(prometheus.CounterOpts{Name: "firstcome_shed_connections_total", Help: "New connections closed for want of room."},
			func() float64 { return float64(c.shed.Load()) }),
	)
}

// registerProcess adds what is of the process: memory, goroutines, open files, and which firstcome it is.
func registerProcess(r *prometheus.Registry, version, commit string) {
	r.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "firstcome_build_info", Help: "1; its labels say which firstcome this is.",
			ConstLabels: prometheus.Labels{"version": version, "commit": commit, "goversion": runtime.Version()},
		}, func() float64 { return 1 }))
}

// Why a claim has no outcome. Only unknown is a matter for operators by itself: anybody can ask for
// what is not there, and leave before the answer.
const (
	claimUnknown  = "unknown"   // it may have been decided: 503
	claimShed     = "shed"      // there was no room, and nothing was decided: 503
	claimMismatch = "mismatch"  // the node may not decide the campaign, and nothing was: 503
	claimNotFound = "not_found" // there is no such campaign: 404
	claimGone     = "gone"      // the caller left before the answer
)

var undecided = []string{claimUnknown, claimShed, claimMismatch, claimNotFound, claimGone}

// unanswered counts a claim, made with ctx, that ended with an error.
func (m *metrics) unanswered(ctx context.Context, err error) {
	why := claimUnknown
	switch {
	case errors.Is(err, firstcome.ErrNoCampaign):
		why = claimNotFound
	case errors.Is(err, firstcome.ErrBusy):
		why = claimShed
	case errors.Is(err, firstcome.ErrGateMismatch):
		why = claimMismatch
	case ctx.Err() != nil:
		why = claimGone
	}
	m.without[why].Inc()
}

// onBatch is flow.Issuer.OnBatch.
func (m *metrics) onBatch(claims int, took time.Duration, err error) {
	m.batch.Observe(float64(claims))
	m.gate.Observe(took.Seconds())
	if err != nil && !errors.Is(err, firstcome.ErrNoCampaign) { // anybody can ask for what is not there
		m.remote.undecided(err)
		m.warn(m.log, "a batch of claims was not decided", "claims", claims, "err", err)
	}
}

// onCommit is ledger.Ledger.OnCommit.
func (m *metrics) onCommit(jobs int, took time.Duration, err error) {
	m.commit.Observe(took.Seconds())
	m.unwritten.Store(err != nil)
	if err != nil {
		m.failed.Inc()
		m.warn(m.log, "the ledger could not write", "jobs", jobs, "err", err,
			"fix", "firstcome doctor, with the flags of serve, says whether it has room and may be written")
	}
}

// warn logs at most once a second: what fails for one claim fails for thousands,
// and the counters say how many.
func (m *metrics) warn(log *slog.Logger, text string, args ...any) {
	now := time.Now().Unix()
	if last := m.warned.Load(); last == now || !m.warned.CompareAndSwap(last, now) {
		return
	}
	log.Warn(text, args...)
}
