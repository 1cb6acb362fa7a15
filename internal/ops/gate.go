package ops

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/gate"
	"github.com/firstcome/firstcome/internal/issue"
	"github.com/firstcome/firstcome/internal/kafka"
	"github.com/firstcome/firstcome/internal/record"
	"github.com/firstcome/firstcome/internal/recovery"
)

// gateMetrics are the metrics of a node whose gate is not the ledger.
type gateMetrics struct {
	failures *prometheus.CounterVec // calls of the gate that failed, by class
	alarms   prometheus.Counter
	lag      prometheus.Histogram
	record   prometheus.Histogram
}

// lags are the buckets of the time from issue to ledger, in seconds: from a commit
// to an outage of ten minutes.
var lags = []float64{.005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60, 300, 600}

// Classes of the gate's failures.
const (
	classSafe     = "safe"     // nothing was done; a retry will succeed soon
	classUnknown  = "unknown"  // it may have been done
	classFatal    = "fatal"    // the gate does nothing until an operator acts
	classLost     = "lost"     // the gate has lost a campaign
	classMismatch = "mismatch" // the node has another gate or secret than the campaign
)

func newGateMetrics() gateMetrics {
	m := gateMetrics{
		failures: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "firstcome_gate_failures_total", Help: "Calls of the gate that failed, by class.",
		}, []string{"class"}),
		alarms: counter("firstcome_journal_alarms_total", "Alarms about the journal that were logged."),
		lag:    histogram("firstcome_record_lag_seconds", "Time from the issue of a batch's first coupon to its being recorded.", lags),
		record: histogram("firstcome_record_seconds", "Time of a recorder's call of the ledger.", latencies),
	}
	for _, class := range []string{classSafe, classUnknown, classFatal, classLost, classMismatch} {
		m.failures.WithLabelValues(class)
	}
	return m
}

// classOf returns the class of an error of the gate.
func classOf(err error) string {
	switch {
	case errors.Is(err, gate.ErrGone):
		return classLost
	case errors.Is(err, firstcome.ErrGateMismatch):
		return classMismatch
	case errors.Is(err, firstcome.ErrBusy):
		return classSafe
	case gate.IsFatal(err):
		return classFatal
	}
	return classUnknown
}

// ChangeFailed logs that changes do not reach the gate: see gate.NewChanger.
func (m *Monitor) ChangeFailed(err error) { m.Warn("changes do not reach the gate", "err", err) }

// RetireFailed logs that a campaign is not retired, at most once an hour: see recovery.NewRetirer.
func (m *Monitor) RetireFailed(err error) {
	m.log.Warn("a campaign that is over was not retired", "err", err)
}

// Alarm counts and logs an alarm about the journal. id is empty if it is not about one campaign.
func (m *Monitor) Alarm(id firstcome.CampaignID, err error) {
	m.alarms.Inc()
	about := []any{"err", err}
	if id != "" {
		about = append([]any{"campaign", id}, about...)
	}
	m.log.Error("the journal needs a look", about...)
}

// Rebuilt logs the end of a rebuild of a campaign's gate.
func (m *Monitor) Rebuilt(r recovery.Rebuilt) {
	switch {
	case errors.Is(r.Err, recovery.ErrSuperseded):
	case r.Err != nil:
		m.Warn("a gate was not rebuilt, and it will be tried again", "campaign", r.Campaign, "err", r.Err)
	default:
		m.log.Warn("a gate was rebuilt from the ledger", "campaign", r.Campaign, "epoch", r.Epoch, "lost_numbers", r.Lost,
			"carried_places", r.Carried, "lost_places", r.LostPlaces, "took", r.Took, "why", r.Why)
	}
}

// Refused logs that a campaign's ledger and gate are of different ages: see recovery.NewWatch.
func (m *Monitor) Refused(err error) { m.log.Error("a campaign is refused", "err", err) }

// Record serves as record.Options.OnCall.
func (m *Monitor) Record(one record.LedgerCall) {
	m.record.Observe(one.Took.Seconds())
	if one.Late > 0 {
		m.log.Warn("coupons came when a rebuild had lost their numbers: they are nobody's", "campaign", one.Campaign, "coupons", one.Late)
	}
	switch {
	case one.Err != nil:
		m.Warn("the ledger did not record", "campaign", one.Campaign, "coupons", one.Coupons, "letters", one.Letters, "err", one.Err)
	case one.Coupons > 0:
		m.lag.Observe(max(0, time.Since(one.Oldest).Seconds()))
	}
}

// Relayed serves as record.Options.OnCall of a relay, whose ledger is a topic.
func (m *Monitor) Relayed(one record.LedgerCall) {
	if one.Err != nil {
		m.Warn("the topic did not take what is issued, which waits in Redis", "campaign", one.Campaign, "coupons", one.Coupons, "err", one.Err)
	}
}

// A Gate has the parts that a Monitor watches if there is a gate beside the ledger.
type Gate struct {
	Name     string // the gate's name in campaigns
	Changer  *gate.Changer
	Retirer  *recovery.Retirer
	Recovery *recovery.Machine
	// Ping returns nil if the gate answers.
	Ping func(context.Context) error
	// Lag returns how far the ledger lags behind the gate, for each of these campaigns that has unrecorded coupons: see record.Source.
	Lag func(context.Context, []gate.Revision) ([]record.Lag, error)
	// Waiter is where claims wait until they are recorded. It is nil if this node answers no claims.
	Waiter *issue.Waiter
	// Recorder is this node's recorder. It is nil if this node records nothing.
	Recorder *record.Recorder
	// Topic is the topic between the gate's journal and the ledger, or nil if there is none.
	Topic *kafka.Journal
	// Relay brings coupons from the gate's journal into Topic. It is nil if this node does not relay.
	Relay *record.Recorder
}

// WatchGate adds the metrics of a gate beside the ledger. Call WatchLedger first.
func (m *Monitor) WatchGate(g Gate) {
	// These labels are the same on the nodes that fill a journal and on those that drain it. They distinguish the journals of two fleets in one
	// Prometheus, whatever their jobs are called.
	journal := prometheus.Labels{"ledger": m.ledger.Identity(), "gate": g.Name}
	if m.Health.pingGate = g.Ping; g.Recovery != nil {
		m.Health.troubles = g.Recovery.Troubles
	}
	m.registry.MustRegister(m.failures)
	m.watchChanger(g.Changer)
	m.watchRetirer(g.Retirer)
	m.watchRecovery(g.Recovery)
	m.watchBacklog(g.Lag, journal)
	if g.Waiter != nil {
		m.registry.MustRegister(gaugeFunc("firstcome_unrecorded_claims", "Claims that are decided and wait for recording.", func() int64 { return int64(g.Waiter.Waiting()) }))
	}
	if g.Recorder != nil {
		m.watchRecorder(g.Recorder, journal)
	}
	if g.Topic != nil {
		m.watchTopic(g.Topic, journal)
	}
	if g.Relay != nil {
		m.watchRelay(g.Relay, journal)
	}
}

// breakerStates has the states of a recorder's breaker. The metric is the index of the state: higher is worse.
var breakerStates = []string{"closed", "half-open", "open"}

func (m *Monitor) watchRecorder(r *record.Recorder, journal prometheus.Labels) {
	m.registry.MustRegister(m.lag, m.record, m.alarms,
		counterFunc("firstcome_recorded_coupons_total", "Coupons recorded by this node, or found recorded.", func() int64 { return r.Stats().Coupons }),
		counterFunc("firstcome_recorded_batches_total", "Batches of the journal that this node recorded.", func() int64 { return r.Stats().Batches }),
		counterFunc("firstcome_record_retries_total", "Calls of the ledger or the journal that a recorder repeated.", func() int64 { return r.Stats().Retries }),
		counterFunc("firstcome_dead_letters_total", "Dead letters that this node made.", func() int64 { return r.Stats().Letters }),
		counterFunc("firstcome_late_coupons_total", "Coupons of an old gate that reached this node after a rebuild had declared their numbers lost.", func() int64 { return r.Stats().Late }),
		breaker("firstcome_breaker_state", "The recorder's breaker: 0 closed, 1 half-open, 2 open.", r, journal),
	)
}

func breaker(name, help string, r *record.Recorder, labels prometheus.Labels) prometheus.Collector {
	return prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: name, Help: help, ConstLabels: labels}, func() float64 {
		return float64(slices.Index(breakerStates, r.Stats().Breaker))
	})
}

func (m *Monitor) watchChanger(c *gate.Changer) {
	m.results("firstcome_changes_total", "Changes that this node brought to the gate, and attempts that failed.", map[string]func() int64{
		"applied": func() int64 { return c.Stats().Applied },
		"refused": func() int64 { return c.Stats().Refused },
		"failed":  func() int64 { return c.Stats().Failed },
	})
}

func (m *Monitor) watchRetirer(r *recovery.Retirer) {
	m.results("firstcome_retirements_total", "Campaigns that this node retired or had the gate forget, and attempts that failed.", map[string]func() int64{
		"retired":   func() int64 { return r.Stats().Retired },
		"forgotten": func() int64 { return r.Stats().Forgotten },
		"failed":    func() int64 { return r.Stats().Failed },
	})
}

func (m *Monitor) watchRecovery(r *recovery.Machine) {
	m.results("firstcome_gate_rebuilds_total", "Campaigns that this node verified or rebuilt after the gate's server restarted, was replaced or lost keys, and attempts that failed.", map[string]func() int64{
		"verified": func() int64 { return r.Stats().Verified },
		"rebuilt":  func() int64 { return r.Stats().Finished },
		"failed":   func() int64 { return r.Stats().Failed },
	})
	m.registry.MustRegister(
		counterFunc("firstcome_lost_numbers_total", "Numbers that a gate may have issued, and that rebuilds by this node declared lost.", func() int64 { return r.Stats().Lost }),
		gaugeFunc("firstcome_gate_broken_campaigns", "Campaigns whose gate decides nothing until it is rebuilt, as far as this node knows.", func() int64 { return int64(r.Stats().Broken) }),
		gaugeFunc("firstcome_gate_rebuilding_campaigns", "Campaigns whose gate is being rebuilt, as far as this node knows.", func() int64 { return int64(r.Stats().Rebuilding) }),
		gaugeFunc("firstcome_ledger_rolled_back_campaigns", "Campaigns whose ledger is older than their gate, as far as this node knows. Nothing of them is decided or changed until gate reconcile.", func() int64 { return int64(r.Stats().RolledBack) }),
		gaugeFunc("firstcome_stale_epoch_campaigns", "Campaigns whose epoch at this node's gate has ended, because another gate has replaced it. Nothing of them is decided or changed at this gate.", func() int64 { return int64(r.Stats().StaleEpoch) }),
	)
}

// results registers a counter with a series for each result.
func (m *Monitor) results(name, help string, results map[string]func() int64) {
	for result, value := range results {
		m.registry.MustRegister(prometheus.NewCounterFunc(prometheus.CounterOpts{
			Name: name, Help: help, ConstLabels: prometheus.Labels{"result": result},
		}, func() float64 { return float64(value()) }))
	}
}

// watchBacklog adds the metrics of the coupons that the ledger does not have yet. Every node reports them, because the recorders may be down.
func (m *Monitor) watchBacklog(lag func(context.Context, []gate.Revision) ([]record.Lag, error), journal prometheus.Labels) {
	b := &backlog{named: m.ledger.Recorder.Active, lag: lag}
	m.registry.MustRegister(&question{
		metrics: []*prometheus.Desc{
			describe("firstcome_gate_up", "Whether the gate answered this scrape."),
			prometheus.NewDesc("firstcome_backlog_coupons", "Coupons that are decided and not yet recorded.", nil, journal),
			prometheus.NewDesc("firstcome_backlog_age_seconds", "Age of the oldest coupon that is decided and not yet recorded.", nil, journal),
		},
		ask: b.ask,
	})
}

// A backlog measures the coupons of active campaigns that the ledger does not have yet.
type backlog struct {
	named func(context.Context) ([]gate.Revision, error)
	lag   func(context.Context, []gate.Revision) ([]record.Lag, error)

	mu     sync.Mutex // guards active
	active []gate.Revision
}

// ask returns the number of coupons in the backlog, and the age of the oldest in seconds, if that is known.
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
	if errors.Is(err, record.ErrUnaged) {
		return []float64{float64(numbers)}, nil
	}
	return []float64{float64(numbers), oldest.Seconds()}, err
}

// campaigns returns the active campaigns. While the ledger is down, when the backlog matters most, it returns the last answer.
func (b *backlog) campaigns() []gate.Revision {
	ctx, cancel := context.WithTimeout(context.Background(), scrapePatience)
	defer cancel()
	active, err := b.named(ctx)
	b.mu.Lock()
	defer b.mu.Unlock()
	if err == nil {
		b.active = active
	}
	return b.active
}
