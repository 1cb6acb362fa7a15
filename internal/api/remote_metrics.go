package api

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/flow"
	"github.com/firstcome/firstcome/internal/ledger"
)

// remoteMetrics are what a node counts besides where another gate than the ledger
// decides. A nil one counts nothing.
type remoteMetrics struct {
	failures *prometheus.CounterVec // of the gate, by class
	lag      prometheus.Histogram
	took     prometheus.Histogram
}

// lags are the buckets of the time from issue to ledger, in seconds: from a commit
// to an outage of ten minutes.
var lags = []float64{.005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60, 300, 600}

func newRemoteMetrics(s *Server) *remoteMetrics {
	m := &remoteMetrics{
		failures: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "firstcome_gate_failures_total", Help: "Calls of the gate that failed, by what that means.",
		}, []string{"class"}),
		lag:  histogram("firstcome_record_lag_seconds", "Time from the issue of a batch's first coupon to its being recorded.", lags),
		took: histogram("firstcome_record_seconds", "Time of a recorder's call of the ledger.", latencies),
	}
	for _, class := range classes {
		m.failures.WithLabelValues(class)
	}
	s.Registry.MustRegister(m.failures)
	registerChanger(s.Registry, s.Remote.Changer)
	s.Remote.Changer.OnFail = func(err error) { s.metrics.warn(s.Log, "changes do not reach the gate", "err", err) }
	if r := s.Remote.Retirer; r != nil {
		registerRetirer(s.Registry, r)
		r.OnFail = func(err error) { s.Log.Warn("a campaign that is over was not retired", "err", err) } // once an hour
	}
	if s.Remote.Alarms != nil {
		s.Registry.MustRegister(counterFunc("firstcome_journal_alarms_total", "What an operator should know of the journal, each time it was logged.", s.Remote.Alarms))
	}
	s.Registry.MustRegister(
		gaugeFunc("firstcome_unrecorded_claims", "Claims that are decided and wait until they are recorded.", func() float64 {
			calls, _ := s.Remote.Recorded.Waiting()
			return float64(calls)
		}))
	if s.Remote.Lag != nil {
		s.Registry.MustRegister(newBacklogCollector(s))
	}
	if r := s.Remote.Recorder; r != nil {
		s.Registry.MustRegister(m.lag, m.took)
		registerRecorder(s.Registry, r, s.journal())
		r.OnRecord = func(one flow.Recording) { m.recorded(s, one) }
	}
	return m
}

// Classes of the gate's failures.
const (
	classSafe     = "safe"     // nothing was done; asking again soon succeeds
	classUnknown  = "unknown"  // it may have been done
	classFatal    = "fatal"    // nothing is done until an operator acts
	classLost     = "lost"     // the gate has lost a campaign
	classMismatch = "mismatch" // the node has another gate or secret than the campaign
)

var classes = []string{classSafe, classUnknown, classFatal, classLost, classMismatch}

// classOf says what a failure of the gate means.
func classOf(err error) string {
	var operator interface{ Fatal() bool }
	switch {
	case errors.Is(err, firstcome.ErrGateMismatch):
		return classMismatch
	case errors.Is(err, flow.ErrLost):
		return classLost
	case errors.Is(err, firstcome.ErrBusy):
		return classSafe
	case errors.As(err, &operator) && operator.Fatal():
		return classFatal
	}
	return classUnknown
}

// undecided counts a failure of the gate. That there is no such campaign is none.
func (m *remoteMetrics) undecided(err error) {
	if m != nil && !errors.Is(err, firstcome.ErrNoCampaign) {
		m.failures.WithLabelValues(classOf(err)).Inc()
	}
}

// recorded is flow.Recorder.OnRecord.
func (m *remoteMetrics) recorded(s *Server, one flow.Recording) {
	m.took.Observe(one.Took.Seconds())
	switch {
	case one.Err != nil:
		s.metrics.warn(s.Log, "the ledger did not record", "campaign", one.Campaign, "coupons", one.Coupons, "letters", one.Letters, "err", one.Err)
	case one.Coupons > 0:
		m.lag.Observe(max(0, time.Since(one.Oldest).Seconds()))
	}
}

func gaugeFunc(name, help string, value func() float64) prometheus.Collector {
	return prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: name, Help: help}, value)
}

func counterFunc(name, help string, value func() int64) prometheus.Collector {
	return prometheus.NewCounterFunc(prometheus.CounterOpts{Name: name, Help: help}, func() float64 { return float64(value()) })
}

// breakerStates are the values of a recorder's breaker as a number: the higher, the worse.
var breakerStates = []string{"closed", "half-open", "open"}

// journal returns labels that say which journal it is, to who fills it and to who drains it: two
// fleets that one Prometheus watches have two, whatever their jobs are called.
func (s *Server) journal() prometheus.Labels {
	return prometheus.Labels{"ledger": s.Ledger.Identity(), "gate": s.Remote.Name}
}

func registerRecorder(to *prometheus.Registry, r *flow.Recorder, journal prometheus.Labels) {
	to.MustRegister(
		counterFunc("firstcome_recorded_coupons_total", "Coupons recorded by this node, or found recorded.", func() int64 { return r.Stats().Coupons }),
		counterFunc("firstcome_recorded_batches_total", "Batches of the journal that this node settled.", func() int64 { return r.Stats().Batches }),
		counterFunc("firstcome_record_retries_total", "Calls of the ledger or the journal that a recorder repeated.", func() int64 { return r.Stats().Retries }),
		counterFunc("firstcome_dead_letters_total", "Dead letters that this node made.", func() int64 { return r.Stats().Letters }),
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "firstcome_breaker_state", Help: "The recorder's breaker: 0 closed, 1 half-open, 2 open.", ConstLabels: journal,
		}, func() float64 { return float64(slices.Index(breakerStates, r.Stats().Breaker)) }),
	)
}

func registerChanger(to *prometheus.Registry, c *flow.Changer) {
	registerResults(to, "firstcome_changes_total", "Changes that this node brought to the gate, and attempts that failed.", map[string]func() int64{
		"applied": func() int64 { return c.Stats().Applied },
		"refused": func() int64 { return c.Stats().Refused },
		"failed":  func() int64 { return c.Stats().Failed },
	})
}

func registerRetirer(to *prometheus.Registry, r *flow.Retirer) {
	registerResults(to, "firstcome_retirements_total", "Campaigns that this node retired or had the gate forget, and attempts that failed.", map[string]func() int64{
		"retired":   func() int64 { return r.Stats().Retired },
		"forgotten": func() int64 { return r.Stats().Forgotten },
		"failed":    func() int64 { return r.Stats().Failed },
	})
}

// registerResults registers a counter by result.
func registerResults(to *prometheus.Registry, name, help string, results map[string]func() int64) {
	for result, value := range results {
		to.MustRegister(prometheus.NewCounterFunc(prometheus.CounterOpts{
			Name: name, Help: help, ConstLabels: prometheus.Labels{"result": result},
		}, func() float64 { return float64(value()) }))
	}
}

func gauge(of *prometheus.Desc, value float64, labels ...string) prometheus.Metric {
	return prometheus.MustNewConstMetric(of, prometheus.GaugeValue, value, labels...)
}

// up is the value of a metric that says whether somebody answers.
func up(err error) float64 {
	if err != nil {
		return 0
	}
	return 1
}

// An askingCollector asks somebody at each scrape. The first of its metrics says whether
// there was an answer; the others are what it was, in the order of ask.
type askingCollector struct {
	metrics []*prometheus.Desc
	ask     func() ([]float64, error)
}

func (a *askingCollector) Describe(to chan<- *prometheus.Desc) {
	for _, metric := range a.metrics {
		to <- metric
	}
}

func (a *askingCollector) Collect(to chan<- prometheus.Metric) {
	values, err := a.ask()
	to <- gauge(a.metrics[0], up(err))
	if err != nil {
		return
	}
	for n, value := range values {
		to <- gauge(a.metrics[1+n], value)
	}
}

// newLedgerCollector counts what waits in the ledger.
func newLedgerCollector(l *ledger.Ledger) *askingCollector {
	return &askingCollector{
		metrics: []*prometheus.Desc{
			describe("firstcome_ledger_up", "Whether the ledger answered this scrape."),
			describe("firstcome_open_dead_letters", "Dead letters in the ledger that nobody has replayed or voided."),
			describe("firstcome_pending_changes", "Changes in the ledger that the gate lacks."),
		},
		ask: func() ([]float64, error) {
			ctx, cancel := context.WithTimeout(context.Background(), scrapePatience)
			defer cancel()
			counts, err := l.Counts(ctx)
			return []float64{float64(counts.Letters), float64(counts.Pending)}, err
		},
	}
}

// newBacklogCollector asks the gate what the ledger does not have yet. Every node says so,
// since the recorders themselves may be down.
func newBacklogCollector(s *Server) *askingCollector {
	b := &backlog{ledger: s.Ledger, lag: s.Remote.Lag}
	return &askingCollector{
		metrics: []*prometheus.Desc{
			describe("firstcome_gate_up", "Whether the gate answered this scrape."),
			prometheus.NewDesc("firstcome_backlog_coupons", "Coupons that are decided and not recorded.", nil, s.journal()),
			prometheus.NewDesc("firstcome_backlog_age_seconds", "How long the oldest of them has been in the journal.", nil, s.journal()),
		},
		ask: b.ask,
	}
}

// A backlog is what the ledger does not have yet of the campaigns that are active.
type backlog struct {
	ledger *ledger.Ledger
	lag    func(context.Context, []flow.Revision) ([]flow.Lag, error)

	mu     sync.Mutex // guards active
	active []flow.Revision
}

// ask returns how many coupons it is, and for how many seconds the oldest has waited.
func (b *backlog) ask() ([]float64, error) {
	active := b.campaigns()
	ctx, cancel := context.WithTimeout(context.Background(), scrapePatience)
	defer cancel()
	all, err := b.lag(ctx, active)
	var numbers int64
	var oldest time.Duration
	for _, l := range all {
		numbers += l.Numbers
		oldest = max(oldest, l.Oldest)
	}
	return []float64{float64(numbers), oldest.Seconds()}, err
}

// campaigns returns the active campaigns. While the ledger is down, which is when
// the backlog matters, they are those that it last named.
func (b *backlog) campaigns() []flow.Revision {
	ctx, cancel := context.WithTimeout(context.Background(), scrapePatience)
	defer cancel()
	active, err := b.ledger.Active(ctx)
	b.mu.Lock()
	defer b.mu.Unlock()
	if err == nil {
		b.active = active
	}
	return b.active
}
