package ops

import (
	"context"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/firstcome/firstcome/internal/kafka"
	"github.com/firstcome/firstcome/internal/record"
)

// watchTopic adds the metrics of a topic between the gate's journal and the ledger. Every node checks it.
func (m *Monitor) watchTopic(topic *kafka.Journal, journal prometheus.Labels) {
	m.registry.MustRegister(
		&question{
			metrics: []*prometheus.Desc{prometheus.NewDesc("firstcome_topic_up", "Whether the topic of the journal answered this scrape.", nil, journal)},
			ask: func() ([]float64, error) {
				ctx, cancel := context.WithTimeout(context.Background(), scrapePatience)
				defer cancel()
				return nil, topic.Ping(ctx)
			},
		},
		gaugeFunc("firstcome_topic_records", "Records of the topic that this node has read and not recorded.", func() int64 { return int64(topic.Stats().InHand) }),
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "firstcome_topic_record_age_seconds", Help: "Age of the oldest record that this node has read and not recorded."},
			func() float64 { return topic.Stats().Oldest.Seconds() }),
	)
}

// watchRelay adds the metrics of a node that brings coupons from the gate's journal into a topic.
func (m *Monitor) watchRelay(r *record.Recorder, journal prometheus.Labels) {
	m.registry.MustRegister(
		counterFunc("firstcome_relayed_coupons_total", "Coupons that the topic took from this node.", func() int64 { return r.Stats().Coupons }),
		counterFunc("firstcome_relay_retries_total", "Calls of the topic that this node repeated.", func() int64 { return r.Stats().Retries }),
		breaker("firstcome_relay_breaker_state", "The relay's breaker: 0 closed, 1 half-open, 2 open.", r, journal),
	)
}
