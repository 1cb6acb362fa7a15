package load

import (
	_ "embed"
	"fmt"
	"html/template"
	"io"
)

// What the report is made of. uPlot is MIT licensed: report/uPlot.LICENSE.
var (
	//go:embed report/page.html
	reportPage string
	//go:embed report/page.css
	reportStyle string
	//go:embed report/charts.js
	reportCharts string
	//go:embed report/uPlot.iife.min.js
	uPlotScript string
	//go:embed report/uPlot.min.css
	uPlotStyle string
)

// A page is what the report's template shows.
type page struct {
	*Result
	Style, UPlotStyle   template.CSS
	UPlotScript, Charts template.JS
	Tone                string // of the banner: good, bad or doubtful
	Headline            string
	Cards               []card
	Rows                []latencyRow
	More                int64 // breaches that are not shown
	Data                chartData
}

// A card is a figure with its name.
type card struct{ Name, Value, Unit, Tone string }

// A latencyRow is an outcome's line in the table.
type latencyRow struct {
	Name string
	Latency
}

// chartData is what the charts draw.
type chartData struct {
	Outcomes []string `json:"outcomes"`
	Series   Series   `json:"series"`
	Numbers  []Number `json:"numbers"`
}

// WriteReport writes the result as one HTML file that needs no other: it opens
// offline and asks nobody for anything.
func (r *Result) WriteReport(w io.Writer) error {
	t, err := template.New("report").Funcs(template.FuncMap{"grouped": grouped, "counted": counted}).Parse(reportPage)
	if err != nil {
		return fmt.Errorf("the report's page: %w", err)
	}
	words := outcomeWords(r)
	p := page{
		Result: r, Style: template.CSS(reportStyle), UPlotStyle: template.CSS(uPlotStyle),
		UPlotScript: template.JS(uPlotScript), Charts: template.JS(reportCharts),
		Cards: r.cards(words), More: r.Verdict.Breaches.Total - int64(len(r.Verdict.Breaches.Shown)),
		Data: chartData{Outcomes: words, Series: r.Series, Numbers: r.Numbers},
	}
	p.Tone, p.Headline = r.Verdict.banner()
	for _, name := range words {
		p.Rows = append(p.Rows, latencyRow{name, r.LatencyOf[name]})
	}
	p.Rows = append(p.Rows, latencyRow{"all", r.Latency})
	return t.Execute(w, p)
}

// banner returns the tone and the words of the verdict's banner.
func (v Verdict) banner() (tone, headline string) {
	switch {
	case !v.Checked:
		return "doubtful", "Not checked"
	case v.Breaches.Total == 1:
		return "bad", "1 breach"
	case v.Breaches.Total > 0:
		return "bad", grouped(v.Breaches.Total) + " breaches"
	}
	return "good", "0 breaches: every promise kept"
}

func (r *Result) cards(words []string) []card {
	var cards []card
	for _, name := range words {
		cards = append(cards, card{Name: name, Value: grouped(r.Outcomes[name]), Tone: name})
	}
	ms := func(v float64) string {
		if v >= 100 {
			return grouped(int64(v))
		}
		return fmt.Sprintf("%.2f", v)
	}
	return append(cards,
		card{Name: "answers a second", Value: grouped(int64(r.PerSecond))},
		card{Name: "p50", Value: ms(r.Latency.P50), Unit: "ms"},
		card{Name: "p95", Value: ms(r.Latency.P95), Unit: "ms"},
		card{Name: "p99", Value: ms(r.Latency.P99), Unit: "ms"},
		card{Name: "longest", Value: ms(r.Latency.Max), Unit: "ms"},
	)
}
