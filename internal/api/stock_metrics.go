package api

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/ledger"
)

// A stockCollector reads the campaigns that are not closed from the ledger when asked.
type stockCollector struct {
	ledger                           *ledger.Ledger
	quantity, inForce, issued, epoch *prometheus.Desc
	left                             *prometheus.Desc // campaigns that have no series of their own
}

const (
	// maxSeries bounds the campaigns that have series of their own, of four metrics: as many as
	// test/bench has on sale at once.
	maxSeries = 1000
	// scrapePatience is how long a scrape waits for the ledger.
	scrapePatience = 2 * time.Second
)

func newStockCollector(l *ledger.Ledger) *stockCollector {
	const of = ", of campaigns that are not closed."
	return &stockCollector{
		ledger:   l,
		quantity: describe("firstcome_quantity_coupons", "Coupons that there are to issue"+of+" None: there is no limit.", "campaign"),
		inForce:  describe("firstcome_in_force_coupons", "Coupons in force in the ledger"+of, "campaign"),
		issued:   describe("firstcome_issued_coupons", "Coupons in the ledger, voided ones too"+of, "campaign"),
		epoch:    describe("firstcome_gate_epoch", "Epoch of the campaign's gate"+of, "campaign"),
		left:     describe("firstcome_campaigns_without_series", "Campaigns that are not closed and that no other metric names, because they are too many."),
	}
}

func (c *stockCollector) Describe(to chan<- *prometheus.Desc) {
	for _, metric := range []*prometheus.Desc{c.quantity, c.inForce, c.issued, c.epoch, c.left} {
		to <- metric
	}
}

func (c *stockCollector) Collect(to chan<- prometheus.Metric) {
	ctx, cancel := context.WithTimeout(context.Background(), scrapePatience)
	defer cancel()
	found, more, err := c.ledger.Unclosed(ctx, maxSeries)
	if err != nil {
		return // a gap in these series is what tells; the others are true
	}
	to <- gauge(c.left, float64(more))
	for _, s := range found {
		id := string(s.ID)
		if s.Quantity != firstcome.Unlimited {
			to <- gauge(c.quantity, float64(s.Quantity), id)
		}
		to <- gauge(c.inForce, float64(s.InForce), id)
		to <- gauge(c.issued, float64(s.Issued), id)
		to <- gauge(c.epoch, float64(s.Epoch), id)
	}
}
