package main

import (
	_ "embed"
	"fmt"
	"html/template"
	"io"
	"math"
	"slices"
	"strings"
)

//go:embed report/page.html
var reportPage string

// The report has its plots as SVG, so it needs no script and no network.
const (
	plotWidth, plotHeight = 640., 240.
	left, bottom          = 56., 24. // room for the labels of the axes
)

// A reported is the section of the report about a contestant.
type reported struct {
	Name, About string
	Product     bool
	Cells       []string // the contestant's cells of the table
	Faults      []*result
	Colour      int  // of the contestant's curves
	Told        plot // users told and rows stored, over time
}

// A plot has curves, and the labels of its axes.
type plot struct {
	Curves []curved
	X, Y   []label
}

// A curved is a curve of a plot.
type curved struct {
	Name, Path string
	Colour     int
	Dashed     bool
}

// A label is a label of an axis.
type label struct {
	At   float64
	Text string
}

// columns are the headings of the table.
var columns = []string{"exact?", "order", "told, not stored", "winners/s", "answer p95", "after its worst fault"}

// A shownReport is the data of the template.
type shownReport struct {
	*report
	Columns     []string
	Contestants []reported
	Stored      plot // rows stored over time, by all contestants
	Latency     plot
}

// writeReport writes the report as one HTML file.
func writeReport(w io.Writer, rep *report, picked []contestant) error {
	t, err := template.New("report").Parse(reportPage)
	if err != nil {
		return err
	}
	shown := shownReport{report: rep, Columns: columns}
	longest, highest, slowest := 1., 1., .01
	for _, c := range picked {
		for _, res := range rep.of(c.name, "exact") {
			for _, m := range res.Curve {
				longest, highest = max(longest, m.Second), max(highest, float64(m.Stored), float64(m.Told))
			}
			slowest = max(slowest, res.Latencies[len(res.Latencies)-1])
		}
	}
	stored := axes{x: logarithmic(.01, longest), y: linear(highest)}
	latency := axes{x: logarithmic(.0001, slowest), y: linear(100)}
	for n, c := range picked {
		one := reported{Name: c.name, About: c.about, Product: c.product, Cells: rep.cells(c), Faults: rep.of(c.name, underFault.Name), Colour: n}
		if all := rep.of(c.name, "exact"); len(all) > 0 {
			res := all[0]
			shown.Stored.Curves = append(shown.Stored.Curves, curved{c.name, stored.path(res.Curve, func(m moment) float64 { return float64(m.Stored) }), n, false})
			var shares []moment
			for n, s := range res.Latencies {
				shares = append(shares, moment{Second: s, Told: n * 100 / (len(res.Latencies) - 1)})
			}
			latencies := latency.path(shares, func(m moment) float64 { return float64(m.Told) })
			shown.Latency.Curves = append(shown.Latency.Curves, curved{c.name, latencies, n, false})
			own := axes{x: linear(max(.01, res.Curve[len(res.Curve)-1].Second)), y: linear(highest)}
			one.Told = plot{[]curved{
				{"told", own.path(res.Curve, func(m moment) float64 { return float64(m.Told) }), n, true},
				{"stored", own.path(res.Curve, func(m moment) float64 { return float64(m.Stored) }), n, false},
			}, own.x.labels(" s", true), own.y.labels("", false)}
		}
		shown.Contestants = append(shown.Contestants, one)
	}
	shown.Stored.X, shown.Stored.Y = stored.x.labels(" s", true), stored.y.labels("", false)
	shown.Latency.X, shown.Latency.Y = latency.x.labels(" s", true), latency.y.labels(" %", false)
	return t.Execute(w, shown)
}

// A scale maps values to the range from 0 to 1.
type scale struct {
	of    func(float64) float64
	ticks []float64
}

func linear(highest float64) scale {
	step := math.Pow(10, math.Floor(math.Log10(highest)))
	if highest/step < 3 {
		step /= 4
	}
	s := scale{of: func(v float64) float64 { return v / highest }}
	for v := 0.; v <= highest; v += step {
		s.ticks = append(s.ticks, v)
	}
	return s
}

func logarithmic(lowest, highest float64) scale {
	highest = max(highest, 10*lowest)
	s := scale{of: func(v float64) float64 { return math.Log(max(v, lowest)/lowest) / math.Log(highest/lowest) }}
	for v := lowest; v <= highest; v *= 10 {
		s.ticks = append(s.ticks, v)
	}
	return s
}

// labels returns the labels of an axis with their positions.
func (s scale) labels(unit string, across bool) (all []label) {
	for _, v := range s.ticks {
		at := plotHeight - bottom - s.of(v)*(plotHeight-bottom-8)
		if across {
			at = left + s.of(v)*(plotWidth-left-16)
		}
		all = append(all, label{math.Round(at), fmt.Sprintf("%.4g", v) + unit})
	}
	return all
}

// axes are the axes of a plot.
type axes struct{ x, y scale }

// path returns the SVG path of a curve through moments, in steps.
func (a axes) path(moments []moment, of func(moment) float64) string {
	var b strings.Builder
	for n, m := range moments {
		x, y := left+a.x.of(m.Second)*(plotWidth-left-16), plotHeight-bottom-a.y.of(of(m))*(plotHeight-bottom-8)
		if n == 0 {
			fmt.Fprintf(&b, "M%.1f %.1f", x, y)
			continue
		}
		fmt.Fprintf(&b, "H%.1fV%.1f", x, y)
	}
	return b.String()
}

// quantiles returns count+1 quantiles of values: the least, those in between, and the greatest.
func quantiles(values []float64, count int) []float64 {
	values = slices.Sorted(slices.Values(values))
	all := make([]float64, count+1)
	for n := range all {
		if len(values) > 0 {
			all[n] = values[n*(len(values)-1)/count]
		}
	}
	return all
}
