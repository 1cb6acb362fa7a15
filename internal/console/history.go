package console

import (
	"context"
	"fmt"
	"html/template"
	"math"
	"strings"
	"time"

	"github.com/firstcome/firstcome/internal/ledger"
)

const (
	// courseSteps is the number of points in the plot of a campaign's course.
	courseSteps = 240
	// narrowest is the shortest span, in seconds, for which a rate is shown. A shorter span may have the coupons of a single batch.
	narrowest = 1
)

// A history is the course of a campaign in the ledger: how many coupons were issued, recorded and voided by when. The ledger keeps it forever.
type history struct {
	Steps                    []ledger.Step
	Issued, Recorded, Voided []point
}

// A point is an instant, in seconds since 1970, and how many coupons there were by then.
type point [2]float64

// A tempo is a span, from one instant to another in seconds since 1970, and the coupons a second in it.
type tempo [3]float64

// historyOf reads a campaign's history. Its cost grows with the number of batches, not of coupons.
func (c *core) historyOf(ctx context.Context, s *ledger.Status) (h history, err error) {
	if h.Steps, err = c.Ledger.Course(ctx, s.ID, lastNumber(s), courseSteps); err != nil {
		return h, err
	}
	h.Issued, h.Recorded, h.Voided = []point{}, []point{}, []point{}
	latest := 0.0
	for _, step := range h.Steps {
		h.Issued = append(h.Issued, point{unix(step.IssuedAt), float64(step.Nth)})
		latest = max(latest, unix(step.RecordedAt)) // two recorders may record in another order than that of the numbers
		h.Recorded = append(h.Recorded, point{latest, float64(step.Nth)})
	}
	voids, err := c.Ledger.Voids(ctx, s.ID, courseSteps)
	for _, void := range voids {
		h.Voided = append(h.Voided, point{unix(void.At), float64(void.Nth)})
	}
	return h, err
}

// rates returns the coupons a second between points, over spans of at least narrowest. A coupon that comes between two points, or at the end of a
// span, counts in a later span, so all spans together have all coupons.
func rates(points []point) (all []tempo) {
	all = []tempo{}
	if len(points) == 0 {
		return all
	}
	from, counted := points[0][0], 0.0
	last := points[len(points)-1]
	for _, p := range points {
		if p[0]-from >= narrowest {
			all = append(all, tempo{from, p[0], (p[1] - counted) / (p[0] - from)})
			from, counted = p[0], p[1]
		}
	}
	rest := last[1] - counted
	switch {
	case rest == 0:
	case len(all) == 0:
		all = append(all, tempo{from, from + narrowest, rest / narrowest})
	default: // the rest is shorter than narrowest, so it extends the last span
		end := &all[len(all)-1]
		came := end[2]*(end[1]-end[0]) + rest
		end[1] = last[0]
		end[2] = came / (end[1] - end[0])
	}
	return all
}

// A rateRow is a span of the history, for the table.
type rateRow struct {
	From, To                 time.Time
	Issued, Recorded, Voided float64 // coupons a second
}

// rateRows returns the history in at most so many spans of equal length.
func rateRows(h *history, most int) (rows []rateRow) {
	begin, end := math.Inf(1), math.Inf(-1)
	kinds := [3][]tempo{rates(h.Issued), rates(h.Recorded), rates(h.Voided)}
	for _, kind := range kinds {
		for _, r := range kind {
			begin, end = min(begin, r[0]), max(end, r[1])
		}
	}
	if begin > end {
		return nil
	}
	width := max(narrowest, math.Ceil((end-begin)/float64(most)))
	for from := begin; from < end; from += width {
		var came [3]float64
		for k, kind := range kinds {
			for _, r := range kind {
				came[k] += r[2] * max(0, min(r[1], from+width)-max(r[0], from))
			}
		}
		rows = append(rows, rateRow{instant(from), instant(from + width), came[0] / width, came[1] / width, came[2] / width})
	}
	return rows
}

func unix(t time.Time) float64 { return float64(t.UnixMicro()) / 1e6 }

func instant(seconds float64) time.Time { return time.UnixMicro(int64(seconds * 1e6)).UTC() }

// A drawing is a plot over time that needs no script. Its instants are seconds since 1970.
type drawing struct {
	height, begin, end, top float64
	clock                   string // the format of instants
	bottom                  string // the label at the value 0
}

// The size and the margins of a drawing.
const (
	drawingWidth, drawingLeft, drawingRight = 800.0, 70.0, 8.0
	drawingTop, drawingBottom               = 12.0, 26.0
)

func (d drawing) x(at float64) float64 {
	return drawingLeft + (drawingWidth-drawingLeft-drawingRight)*(at-d.begin)/(d.end-d.begin)
}

func (d drawing) y(of float64) float64 {
	return d.height - drawingBottom - (d.height-drawingBottom-drawingTop)*of/d.top
}

// frame returns lines with axes, and with a label for screen readers.
func (d drawing) frame(lang locale, label, lines string) template.HTML {
	right, zero := drawingWidth-drawingRight, d.height-drawingBottom
	var svg strings.Builder
	fmt.Fprintf(&svg, `<svg class="curve" viewBox="0 0 %.0f %.0f" role="img" aria-label="%s">`, drawingWidth, d.height, template.HTMLEscapeString(label))
	fmt.Fprintf(&svg, `<path class="axis" d="M%.0f 6V%.0fH%.0f"/>%s`, drawingLeft, zero, right, lines)
	write := func(x, y float64, anchor, text string) {
		fmt.Fprintf(&svg, `<text x="%.0f" y="%.0f" text-anchor="%s">%s</text>`, x, y, anchor, text)
	}
	write(drawingLeft-8, 18, "end", lang.number(int64(math.Round(d.top))))
	write(drawingLeft-8, zero, "end", d.bottom)
	write(drawingLeft, d.height-6, "start", lang.shown(instant(d.begin), d.clock))
	write(right, d.height-6, "end", lang.shown(instant(d.end), d.clock))
	svg.WriteString(`</svg>`)
	return template.HTML(svg.String()) //nolint:gosec // its parts are numbers, times and our own words
}

// curve plots coupon numbers over the instants at which they were issued.
func (l locale) curve(steps []ledger.Step) template.HTML {
	if len(steps) < 2 {
		return ""
	}
	first, last := steps[0], steps[len(steps)-1]
	d := drawing{260, unix(first.IssuedAt), unix(last.IssuedAt), float64(last.Number), "15:04:05.000 MST", "1"}
	d.end = max(d.end, unix(first.IssuedAt.Add(time.Microsecond)))
	var points strings.Builder
	for _, s := range steps {
		fmt.Fprintf(&points, "%.1f,%.1f ", d.x(unix(s.IssuedAt)), d.y(float64(s.Number)))
	}
	label := l.say("%s번까지의 번호와 발급 시각", "numbers up to %s, by time of issue", l.number(last.Number))
	return d.frame(l, label, `<polyline points="`+points.String()+`"/>`)
}

// speeds plots issued, recorded and voided coupons a second.
func (l locale) speeds(h *history) template.HTML {
	kinds := map[string][]tempo{"issued": rates(h.Issued), "recorded": rates(h.Recorded), "voided": rates(h.Voided)}
	d := drawing{200, math.Inf(1), math.Inf(-1), 0, "15:04:05 MST", "0"}
	for _, kind := range kinds {
		for _, r := range kind {
			d.begin, d.end, d.top = min(d.begin, r[0]), max(d.end, r[1]), max(d.top, r[2])
		}
	}
	if d.begin >= d.end {
		return ""
	}
	var lines strings.Builder
	for _, name := range []string{"voided", "recorded", "issued"} {
		fmt.Fprintf(&lines, `<polyline class="%s" points="`, name)
		for n, r := range kinds[name] {
			if n == 0 || kinds[name][n-1][1] < r[0] {
				fmt.Fprintf(&lines, "%.1f,%.1f ", d.x(r[0]), d.y(0))
			}
			fmt.Fprintf(&lines, "%.1f,%.1f %.1f,%.1f ", d.x(r[0]), d.y(r[2]), d.x(r[1]), d.y(r[2]))
		}
		lines.WriteString(`"/>`)
	}
	return d.frame(l, l.say("초당 발급, 기록, 회수", "issued, recorded and voided a second"), lines.String())
}
