package ops

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/flow"
)

// lineMetrics are the metrics of a node that serves waiting lines.
type lineMetrics struct{ serves prometheus.Histogram }

func newLineMetrics() lineMetrics {
	return lineMetrics{serves: histogram("firstcome_line_serve_seconds", "Time of a call that serves a waiting line.", latencies)}
}

// Served is flow.DispatchLimits.OnServe.
func (m *Monitor) Served(id firstcome.CampaignID, _ flow.Served, took time.Duration, err error) {
	m.serves.Observe(took.Seconds())
	if err != nil {
		m.Warn("a waiting line was not served", "campaign", id, "err", err)
	}
}

// WatchStreams adds the metrics of the streams by which people follow their places.
func (m *Monitor) WatchStreams(streams func() (open, dropped, refused int64)) {
	one := func(which int) func() int64 {
		return func() int64 {
			open, dropped, refused := streams()
			return []int64{open, dropped, refused}[which]
		}
	}
	m.registry.MustRegister(
		gaugeFunc("firstcome_open_streams", "People who follow their places by a stream.", one(0)),
		counterFunc("firstcome_dropped_streams_total", "Streams dropped because their clients did not read.", one(1)),
		counterFunc("firstcome_refused_streams_total", "Streams refused for want of room.", one(2)),
	)
}

// LookFailed is flow.DispatchLimits.OnLook.
func (m *Monitor) LookFailed(err error) {
	m.Warn("the node cannot see which campaigns have people in line", "err", err)
}

// WatchLines has the Monitor watch what serves waiting lines.
func (m *Monitor) WatchLines(d *flow.Dispatcher) {
	m.registry.MustRegister(m.serves,
		gaugeFunc("firstcome_lines", "Campaigns with people in line, as this node knows.", func() int64 { return d.Stats().Lines }),
		gaugeFunc("firstcome_line_people", "People in line, of all campaigns, as this node knows.", func() int64 { return d.Stats().Waiting }),
		counterFunc("firstcome_line_served_total", "Coupons that this node issued to waiting lines.", func() int64 { return d.Stats().Served }),
		counterFunc("firstcome_line_ended_total", "Generations of lines whose end this node found when it served them.", func() int64 { return d.Stats().Ended }),
		counterFunc("firstcome_line_failures_total", "Calls that serve a line or look for lines that failed.", func() int64 { return d.Stats().Failed }),
	)
}
