package ops

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/firstcome/firstcome/internal/kafka"
)

// FactsFailed logs why no facts can be published.
func (m *Monitor) FactsFailed(err error) { m.Warn("facts are not published", "err", err) }

// WatchFacts adds the metrics of publishing facts. Each node that may publish to a topic reports the same lag. Call WatchLedger first.
func (m *Monitor) WatchFacts(p *kafka.Publisher) {
	topic := prometheus.Labels{"ledger": m.ledger.Identity(), "follower": p.Follower()}
	m.registry.MustRegister(
		counterFunc("firstcome_facts_published_total", "Facts that this node published.", func() int64 { return p.Stats().Published }),
		counterFunc("firstcome_facts_failures_total", "Times that this node had to restart publishing facts.", func() int64 { return p.Stats().Failures }),
		gaugeFunc("firstcome_facts_leader", "1 if this node publishes facts; one node at a time does.", func() int64 {
			if p.Stats().Leads {
				return 1
			}
			return 0
		}),
		&largeFacts{p, prometheus.NewDesc("firstcome_facts_too_large_position",
			"Position of a campaign's next fact, if it is larger than the topic takes. The campaign's facts wait.", []string{"campaign"}, topic)},
		&question{
			metrics: []*prometheus.Desc{
				describe("firstcome_facts_up", "Whether the ledger answered this scrape, about the facts that are not published."),
				prometheus.NewDesc("firstcome_facts_lag", "Facts in the ledger that are not noted as published.", nil, topic),
				prometheus.NewDesc("firstcome_facts_lag_seconds", "Age of the oldest fact that is not noted as published.", nil, topic),
				prometheus.NewDesc("firstcome_facts_ahead_campaigns", "Campaigns whose facts are no longer published, because the topic has facts that the ledger lacks.", nil, topic),
			},
			ask: func() ([]float64, error) {
				ctx, cancel := context.WithTimeout(context.Background(), scrapePatience)
				defer cancel()
				lag, err := m.ledger.Followers.FollowerLag(ctx, p.Follower())
				age := 0.0
				if !lag.Since.IsZero() {
					age = max(0, time.Since(lag.Since).Seconds())
				}
				return []float64{float64(lag.Facts), age, float64(lag.Ahead)}, err
			},
		})
}

// largeFacts has the campaigns whose facts wait because the topic does not take the next one.
type largeFacts struct {
	publisher *kafka.Publisher
	position  *prometheus.Desc
}

// Describe names the metric.
func (l *largeFacts) Describe(to chan<- *prometheus.Desc) { to <- l.position }

// Collect asks the publisher.
func (l *largeFacts) Collect(to chan<- prometheus.Metric) {
	for id, position := range l.publisher.Stats().TooLarge {
		to <- gauge(l.position, float64(position), string(id))
	}
}
