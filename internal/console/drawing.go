package console

import (
	"fmt"
	"html/template"
	"math"
	"strings"
	"time"

	"github.com/firstcome/firstcome/internal/ledger"
)

// A drawing is something over instants, in seconds since 1970, without script.
type drawing struct {
	height, begin, end, top float64
	clock                   string // the layout of instants
	bottom                  string // what is written at 0
}

// The edges of a drawing.
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

// frame returns lines with their axes, and a label for those who do not see them.
func (d drawing) frame(lang language, label, lines string) template.HTML {
	right, zero := drawingWidth-drawingRight, d.height-drawingBottom
	var svg strings.Builder
	fmt.Fprintf(&svg, `<svg class="curve" viewBox="0 0 %.0f %.0f" role="img" aria-label="%s">`, drawingWidth, d.height, template.HTMLEscapeString(label))
	fmt.Fprintf(&svg, `<path class="axis" d="M%.0f 6V%.0fH%.0f"/>%s`, drawingLeft, zero, right, lines)
	write := func(x, y float64, anchor, text string) {
		fmt.Fprintf(&svg, `<text x="%.0f" y="%.0f" text-anchor="%s">%s</text>`, x, y, anchor, text)
	}
	write(drawingLeft-8, 18, "end", lang.number(int64(math.Round(d.top))))
	write(drawingLeft-8, zero, "end", d.bottom)
	write(drawingLeft, d.height-6, "start", instant(d.begin).In(seoul).Format(d.clock))
	write(right, d.height-6, "end", instant(d.end).In(seoul).Format(d.clock))
	svg.WriteString(`</svg>`)
	return template.HTML(svg.String()) //nolint:gosec // numbers, clocks and our own words
}

// curve draws numbers over the instants of their issue.
func (v *view) curve(steps []ledger.Step) template.HTML {
	if len(steps) < 2 {
		return ""
	}
	first, last := steps[0], steps[len(steps)-1]
	d := drawing{260, unix(first.IssuedAt), unix(last.IssuedAt), float64(last.Number), "15:04:05.000", "1"}
	d.end = max(d.end, unix(first.IssuedAt.Add(time.Microsecond)))
	var points strings.Builder
	for _, s := range steps {
		fmt.Fprintf(&points, "%.1f,%.1f ", d.x(unix(s.IssuedAt)), d.y(float64(s.Number)))
	}
	label := v.say("%s번까지의 번호와 발급 시각", "numbers up to %s over the instants of their issue", v.lang.number(last.Number))
	return d.frame(v.lang, label, `<polyline points="`+points.String()+`"/>`)
}

// speeds draws issued, recorded and voided a second.
func (v *view) speeds(h *history) template.HTML {
	kinds := map[string][]tempo{"issued": rates(h.Issued), "recorded": rates(h.Recorded), "voided": rates(h.Voided)}
	d := drawing{200, math.Inf(1), math.Inf(-1), 0, "15:04:05", "0"}
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
	return d.frame(v.lang, v.say("초당 발급, 기록, 회수", "issued, recorded and voided a second"), lines.String())
}
