package api

import (
	"context"
	"errors"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/flow"
	"github.com/firstcome/firstcome/internal/ledger"
)

// metrics are what a node counts. Labels have few values and never name a user.
type metrics struct {
	log     *slog.Logger
	claims  [firstcome.Issued + 1]prometheus.Counter // by outcome
	unknown prometheus.Counter
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
		Name: "firstcome_claims_total", Help: "Claims answered, by outcome; unknown: answered with 503.",
	}, []string{"outcome"})
	m := &metrics{
		log:     s.Log,
		unknown: claims.WithLabelValues("unknown"),
		latency: histogram("firstcome_claim_seconds", "Time from a claim's arrival to its answer.", latencies),
		batch:   histogram("firstcome_batch_claims", "Claims that went to the gate at once.", prometheus.ExponentialBuckets(1, 2, 10)),
		gate:    histogram("firstcome_gate_seconds", "Time of a call of the gate.", latencies),
		commit:  histogram("firstcome_commit_seconds", "Time of a transaction of the ledger, to the disk.", latencies),
		failed:  counter("firstcome_commit_failures_total", "Transactions of the ledger that failed."),
	}
	for _, o := range firstcome.Outcomes() {
		m.claims[o] = claims.WithLabelValues(o.String())
	}
	s.Registry.MustRegister(claims, m.latency, m.batch, m.gate, m.commit, m.failed)
	registerIssuer(s.Registry, s.Issuer)
	registerConns(s.Registry, s.conns)
	s.Registry.MustRegister(newLedgerCollector(s.Ledger), &stockCollector{
		ledger:  s.Ledger,
		inForce: describe("firstcome_in_force_coupons", "Coupons in force in the ledger, of campaigns that are not closed.", "campaign"),
		epoch:   describe("firstcome_gate_epoch", "Epoch of the campaign's gate, of campaigns that are not closed.", "campaign"),
	})
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

// A stockCollector reads the campaigns from the ledger when asked.
type stockCollector struct {
	ledger         *ledger.Ledger
	inForce, epoch *prometheus.Desc
}

const (
	// maxSeries bounds the campaigns that have a series of their own.
	maxSeries = 200
	// maxScan bounds the campaigns that are read to find them.
	maxScan = 1000
	// scrapePatience is how long a scrape waits for the ledger.
	scrapePatience = 2 * time.Second
)

func (c *stockCollector) Describe(to chan<- *prometheus.Desc) {
	to <- c.inForce
	to <- c.epoch
}

func (c *stockCollector) Collect(to chan<- prometheus.Metric) {
	ctx, cancel := context.WithTimeout(context.Background(), scrapePatience)
	defer cancel()
	found, err := c.ledger.Campaigns(ctx, "", maxScan)
	if err != nil {
		return // a gap in these series is what tells; the others are true
	}
	series := 0
	for _, s := range found {
		if campaignState(s) == firstcome.Closed.String() {
			continue
		}
		if series++; series > maxSeries {
			return
		}
		to <- gauge(c.inForce, float64(s.InForce), string(s.ID))
		to <- gauge(c.epoch, float64(s.Epoch), string(s.ID))
	}
}
