package ops

import (
	"context"
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/gate"
	"github.com/firstcome/firstcome/internal/line"
)

// lineMetrics are the metrics of a node that serves waiting lines.
type lineMetrics struct {
	serves prometheus.Histogram
	astray prometheus.Counter
}

func newLineMetrics() lineMetrics {
	return lineMetrics{
		serves: histogram("firstcome_line_serve_seconds", "Time of a call that serves a waiting line.", latencies),
		astray: counter("firstcome_line_alarms_total", "Logs of waiting lines that lack records, or are another topic, each time it was logged."),
	}
}

// Served is line.Options.OnServe.
func (m *Monitor) Served(id firstcome.CampaignID, _ gate.Served, took time.Duration, err error) {
	m.serves.Observe(took.Seconds())
	if err != nil {
		m.Warn("a waiting line was not served", "campaign", id, "err", err)
	}
}

// LineAlarm counts and logs an alarm about the log of a waiting line.
func (m *Monitor) LineAlarm(id firstcome.CampaignID, err error) {
	m.astray.Inc()
	m.log.Error("the log of a waiting line needs a look", "campaign", id, "err", err)
}

// WatchStreams adds the metrics of the streams on which users follow their places.
func (m *Monitor) WatchStreams(streams func() (open, dropped, refused int64)) {
	one := func(which int) func() int64 {
		return func() int64 {
			open, dropped, refused := streams()
			return []int64{open, dropped, refused}[which]
		}
	}
	m.registry.MustRegister(
		gaugeFunc("firstcome_open_streams", "Users who follow their places on a stream.", one(0)),
		counterFunc("firstcome_dropped_streams_total", "Streams dropped because their clients did not read.", one(1)),
		counterFunc("firstcome_refused_streams_total", "Streams refused because there was no room.", one(2)),
	)
}

// LookFailed serves as line.Options.OnLook.
func (m *Monitor) LookFailed(err error) {
	m.Warn("the node cannot see which campaigns have people in line", "err", err)
}

// WatchLines adds the metrics of the Dispatcher and of its waiting lines.
func (m *Monitor) WatchLines(d *line.Dispatcher, of lineOf) {
	oldest := describe("firstcome_line_oldest_seconds", "How long who is next in line has waited.", "campaign")
	m.registry.MustRegister(m.serves, m.astray, &heads{d.Lines, of, oldest},
		gaugeFunc("firstcome_lines", "Campaigns with users in line, as far as this node knows.", func() int64 { return d.Stats().Lines }),
		gaugeFunc("firstcome_line_people", "Users in line of all campaigns, as far as this node knows.", func() int64 { return d.Stats().Waiting }),
		counterFunc("firstcome_line_served_total", "Coupons that this node issued to waiting lines.", func() int64 { return d.Stats().Served }),
		counterFunc("firstcome_line_ended_total", "Generations of lines that ended while this node served them.", func() int64 { return d.Stats().Ended }),
		counterFunc("firstcome_line_failures_total", "Failed calls to serve a line or to search for lines.", func() int64 { return d.Stats().Failed }),
	)
}

// A lineOf returns a campaign's line, as LineOf of gate.Places does.
type lineOf func(context.Context, firstcome.CampaignID) (gate.LineState, error)

// heads asks the gate at each scrape for the next user of each line that the node knows.
type heads struct {
	lines  func() []firstcome.CampaignID
	of     lineOf
	oldest *prometheus.Desc
}

// Describe names the metric.
func (h *heads) Describe(to chan<- *prometheus.Desc) { to <- h.oldest }

// Collect reads up to maxSeries lines one by one, until one cannot be read.
func (h *heads) Collect(to chan<- prometheus.Metric) {
	ctx, cancel := context.WithTimeout(context.Background(), scrapePatience)
	defer cancel()
	known := slices.Sorted(slices.Values(h.lines()))
	for _, id := range known[:min(len(known), maxSeries)] {
		line, err := h.of(ctx, id)
		if err != nil {
			return // a gap in these series shows the failure; the other metrics stay true
		}
		if !line.Joined.IsZero() {
			to <- gauge(h.oldest, max(0, line.Now.Sub(line.Joined).Seconds()), string(id))
		}
	}
}
