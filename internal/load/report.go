package load

import (
	_ "embed"
	"fmt"
	"html/template"
	"io"
	"math"

	"github.com/dustin/go-humanize"

	"github.com/firstcome/firstcome/internal/uplot"
)

// The parts of the report, without uplot.
var (
	//go:embed report/page.html
	reportPage string
	//go:embed report/page.css
	reportStyle string
	//go:embed report/charts.js
	reportCharts string
)

// A page is the data of the report's template.
type page struct {
	*Result
	Style, UPlotStyle   template.CSS
	UPlotScript, Charts template.JS
	Tone                string // of the banner: good, bad or doubtful
	Banner              string
	Cards               []card
	Rows                []latencyRow
	More                int64 // number of breaches that are not shown
	Data                chartData
}

// A card is a figure with its name.
type card struct {
	Name, Value, Unit, Tone string
	Alarming                bool
}

// A latencyRow is an outcome's row in the table.
type latencyRow struct {
	Name string
	Latency
}

// chartData is the data of the charts.
type chartData struct {
	Outcomes []string `json:"outcomes"`
	Seconds  float64  `json:"seconds"`
	SoldOut  *float64 `json:"sold_out"`
	Series   Series   `json:"series"`
	Numbers  []Number `json:"numbers"`
	Line     *Line    `json:"line"`
}

// WriteReport writes the result as one HTML file that needs no other file: it works offline, and makes no requests.
func (r *Result) WriteReport(w io.Writer) error {
	t, err := template.New("report").Funcs(template.FuncMap{"grouped": humanize.Comma, "counted": counted, "ms": milliseconds, "s": inLineSeconds}).Parse(reportPage)
	if err != nil {
		return fmt.Errorf("the report's page: %w", err)
	}
	words := outcomeWords(r)
	p := page{
		Result: r, Style: template.CSS(uplot.Outcomes + reportStyle), UPlotStyle: template.CSS(uplot.Style),
		UPlotScript: template.JS(uplot.Script), Charts: template.JS(reportCharts),
		Cards: r.cards(words), More: r.Verdict.Breaches.Total - int64(len(r.Verdict.Breaches.Shown)),
		Data: chartData{Outcomes: words, Seconds: r.Seconds, SoldOut: r.SoldOut, Series: r.Series, Numbers: r.Numbers, Line: r.Line},
	}
	p.Tone, p.Banner = r.banner()
	for _, name := range words {
		p.Rows = append(p.Rows, latencyRow{name, r.LatencyOf[name]})
	}
	p.Rows = append(p.Rows, latencyRow{"all", r.Latency})
	return t.Execute(w, p)
}

// banner returns the tone and the words of the verdict's banner, by the worst finding.
func (r *Result) banner() (tone, text string) {
	v := r.Verdict
	switch {
	case v.Checked && v.Breaches.Total > 0:
		return "bad", breaches(v.Breaches.Total)
	case !v.Checked:
		return "doubtful", "Not checked"
	case r.Missed() != "":
		return "bad", "0 breaches, but a threshold was not kept"
	case r.Interrupted:
		return "doubtful", "0 breaches until it was interrupted"
	}
	return "good", "0 breaches: every promise kept"
}

// Summary describes the result in one line.
func (r *Result) Summary() string {
	text := fmt.Sprintf("%s in %s: %s answers a second", counted(r.Claims, "claim"), seconds(r.Seconds), humanize.Comma(int64(math.Round(r.PerSecond))))
	if r.SoldOut != nil {
		text = counted(r.Coupons(), "coupon") + ", " + text
	}
	return text
}

func (r *Result) cards(words []string) []card {
	var cards []card
	for _, name := range words {
		cards = append(cards, card{Name: name, Value: humanize.Comma(r.Outcomes[name]), Tone: name})
	}
	cards = append(cards, card{Name: "answers a second", Value: humanize.Comma(int64(math.Round(r.PerSecond)))})
	l := r.Latency
	for n, ms := range []float64{l.P50, l.P95, l.P99, l.Max} {
		cards = append(cards, card{Name: []string{"p50", "p95", "p99", "longest"}[n], Value: milliseconds(ms), Unit: "ms"})
	}
	if r.Load.Loop == "open" {
		late := card{Name: "sent late, p99", Value: milliseconds(r.Lag.P99), Unit: "ms"}
		if late.Alarming = r.LagMatters(); late.Alarming {
			late.Tone = "doubtful"
		}
		cards = append(cards, late)
	}
	if r.Line != nil {
		cards = append(cards, r.Line.cards()...)
	}
	return cards
}
