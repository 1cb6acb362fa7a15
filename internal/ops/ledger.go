package ops

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/ledger"
)

// ledgerMetrics are the metrics of the node's writes to the ledger.
type ledgerMetrics struct {
	commit prometheus.Histogram
	failed prometheus.Counter
}

func newLedgerMetrics() ledgerMetrics {
	return ledgerMetrics{
		commit: histogram("firstcome_commit_seconds", "Time of a transaction of the ledger, to the disk.", latencies),
		failed: counter("firstcome_commit_failures_total", "Transactions of the ledger that failed."),
	}
}

// Commit serves as ledger.Options.OnCommit.
func (m *Monitor) Commit(jobs int, took time.Duration, err error) {
	m.commit.Observe(took.Seconds())
	m.Health.unwritten.Store(err != nil)
	if err != nil {
		m.failed.Inc()
		m.Warn("the ledger could not write", "jobs", jobs, "err", err,
			"fix", "firstcome doctor, with the flags of serve, says whether it has room and may be written")
	}
}

// Moved serves as ledger.Options.OnMove.
func (m *Monitor) Moved(err error) {
	m.Health.moved.Store(err != nil)
	if err != nil {
		m.log.Error("the ledger is not where it was, and this node is not ready", "err", err)
		return
	}
	m.log.Info("the ledger is back where it was, and this node is ready")
}

// WatchLedger adds the metrics of the ledger, and its state to Ready.
func (m *Monitor) WatchLedger(l *ledger.Ledger) {
	m.ledger, m.Health.ledger = l, l
	m.registry.MustRegister(m.commit, m.failed, newStock(l), &question{
		metrics: []*prometheus.Desc{
			describe("firstcome_ledger_up", "Whether the ledger answered this scrape."),
			describe("firstcome_open_dead_letters", "Dead letters in the ledger that nobody has replayed or voided."),
			describe("firstcome_pending_changes", "Changes in the ledger that the gate lacks."),
			describe("firstcome_ledger_old_transaction_seconds", "Age of the oldest transaction that keeps PostgreSQL from removing old rows, if it is above a minute and this user may see it."),
			describe("firstcome_ledger_unreplicated", "1 if the ledger's server commits without a replica although it is set to wait for one."),
		},
		ask: func() ([]float64, error) {
			ctx, cancel := context.WithTimeout(context.Background(), scrapePatience)
			defer cancel()
			counts, err := l.Reads.Counts(ctx)
			if err != nil {
				return nil, err
			}
			who, age, err := l.Reads.OldTransaction(ctx, oldTransaction)
			if who != "" {
				m.Warn("an old transaction keeps PostgreSQL from removing old rows, and claims get slower", "who", who, "age", age,
					"fix", "end it: firstcome doctor says how")
			}
			unreplicated := 0.0
			if counts.Unreplicated {
				unreplicated = 1
			}
			return []float64{float64(counts.Letters), float64(counts.Pending), age.Seconds(), unreplicated}, err
		},
	})
}

// A stock reads the campaigns that are not closed from the ledger, at each scrape.
type stock struct {
	ledger                           *ledger.Ledger
	quantity, inForce, issued, epoch *prometheus.Desc
	left                             *prometheus.Desc // how many campaigns have no series of their own
}

const (
	// maxSeries is how many campaigns have series of their own, for four metrics each. test/bench has as many campaigns on sale at once.
	maxSeries = 1000
	// oldTransaction is the age from which a transaction is reported. Those of firstcome itself take milliseconds, but for an audit's.
	oldTransaction = time.Minute
	// scrapePatience is how long a scrape waits for the ledger.
	scrapePatience = 2 * time.Second
)

func newStock(l *ledger.Ledger) *stock {
	const of = ", of campaigns that are not closed."
	return &stock{
		ledger:   l,
		quantity: describe("firstcome_quantity_coupons", "Coupons that there are to issue"+of+" None: there is no limit.", "campaign"),
		inForce:  describe("firstcome_in_force_coupons", "Coupons in force in the ledger"+of, "campaign"),
		issued:   describe("firstcome_issued_coupons", "Coupons in the ledger, voided ones too"+of, "campaign"),
		epoch:    describe("firstcome_gate_epoch", "Epoch of the campaign's gate"+of, "campaign"),
		left:     describe("firstcome_campaigns_without_series", "Campaigns that are not closed and that no other metric names, because they are too many."),
	}
}

// Describe names the metrics.
func (s *stock) Describe(to chan<- *prometheus.Desc) {
	for _, metric := range []*prometheus.Desc{s.quantity, s.inForce, s.issued, s.epoch, s.left} {
		to <- metric
	}
}

// Collect reads the campaigns.
func (s *stock) Collect(to chan<- prometheus.Metric) {
	ctx, cancel := context.WithTimeout(context.Background(), scrapePatience)
	defer cancel()
	found, more, err := s.ledger.Reads.Unclosed(ctx, maxSeries)
	if err != nil {
		return // a gap in these series shows the failure; the other metrics stay true
	}
	to <- gauge(s.left, float64(more))
	for _, c := range found {
		id := string(c.ID)
		if c.Quantity != firstcome.Unlimited {
			to <- gauge(s.quantity, float64(c.Quantity), id)
		}
		to <- gauge(s.inForce, float64(c.InForce), id)
		to <- gauge(s.issued, float64(c.Issued), id)
		to <- gauge(s.epoch, float64(c.Epoch), id)
	}
}
