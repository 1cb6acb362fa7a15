// Package ops shows operators a node's metrics, its profiles, and whether it is ready, on a separate
// listener.
//
// A Monitor is made before the other parts of a node. Some parts report: each gets a method of the Monitor
// (Batch, Commit, Record, …). Other parts count for themselves: they are passed to a Watch method, and the
// Monitor reads them at each scrape.
package ops

import (
	"log/slog"
	"runtime"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"github.com/firstcome/firstcome/internal/ledger"
)

// A Monitor counts what a node does, and reports the node's health. Make one with New. A metric exists once
// its part is watched. Labels have few values and never name a user.
type Monitor struct {
	log      *slog.Logger
	registry *prometheus.Registry
	ledger   *ledger.Ledger // nil until WatchLedger

	claimMetrics
	ledgerMetrics
	gateMetrics
	lineMetrics

	Health *Health // of the node, whose metrics these are

	warned atomic.Int64 // when Warn last logged, in seconds since 1970
}

// New returns a Monitor for a firstcome with this version and commit.
func New(log *slog.Logger, version, commit string) *Monitor {
	m := &Monitor{
		log: log, registry: prometheus.NewRegistry(),
		claimMetrics: newClaimMetrics(), ledgerMetrics: newLedgerMetrics(), gateMetrics: newGateMetrics(), lineMetrics: newLineMetrics(),
	}
	m.Health = &Health{version: version, warn: m.Warn}
	m.registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "firstcome_build_info", Help: "1, with the version and commit of this firstcome as labels.",
			ConstLabels: prometheus.Labels{"version": version, "commit": commit, "goversion": runtime.Version()},
		}, func() float64 { return 1 }))
	return m
}

// Warn logs at most once a second: if one claim fails, thousands probably do, and counters count them.
func (m *Monitor) Warn(text string, args ...any) {
	now := time.Now().Unix()
	if last := m.warned.Load(); last == now || !m.warned.CompareAndSwap(last, now) {
		return
	}
	m.log.Warn(text, args...)
}

// WatchLog adds the metric of the log's lines that were dropped.
func (m *Monitor) WatchLog(dropped func() int64) {
	m.registry.MustRegister(counterFunc("firstcome_log_dropped_lines_total", "Lines of the log that were dropped because nobody read it.", dropped))
}

// latencies are the buckets of durations, in seconds: from a claim answered from memory to twice the time-out of a gate call.
var latencies = []float64{.0001, .00025, .0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10}

func histogram(name, help string, buckets []float64) prometheus.Histogram {
	return prometheus.NewHistogram(prometheus.HistogramOpts{Name: name, Help: help, Buckets: buckets})
}

func counter(name, help string) prometheus.Counter {
	return prometheus.NewCounter(prometheus.CounterOpts{Name: name, Help: help})
}

func counterFunc(name, help string, value func() int64) prometheus.Collector {
	return prometheus.NewCounterFunc(prometheus.CounterOpts{Name: name, Help: help}, func() float64 { return float64(value()) })
}

func gaugeFunc(name, help string, value func() int64) prometheus.Collector {
	return prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: name, Help: help}, func() float64 { return float64(value()) })
}

func describe(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc(name, help, labels, nil)
}

func gauge(of *prometheus.Desc, value float64, labels ...string) prometheus.Metric {
	return prometheus.MustNewConstMetric(of, prometheus.GaugeValue, value, labels...)
}

// A question is a call at each scrape. Its first metric is 1 if the call succeeded and 0 if not. The other metrics are the values that ask returns,
// in order.
type question struct {
	metrics []*prometheus.Desc
	ask     func() ([]float64, error)
}

// Describe names the metrics.
func (q *question) Describe(to chan<- *prometheus.Desc) {
	for _, metric := range q.metrics {
		to <- metric
	}
}

// Collect asks the question.
func (q *question) Collect(to chan<- prometheus.Metric) {
	values, err := q.ask()
	if err != nil {
		to <- gauge(q.metrics[0], 0)
		return
	}
	to <- gauge(q.metrics[0], 1)
	for n, value := range values {
		to <- gauge(q.metrics[1+n], value)
	}
}
