//go:build soak

package pictures

import (
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"

	"github.com/firstcome/firstcome/test/browser"
)

// BenchmarkFirstPaint asks for the Live page and for a page of one heading, each in a browser that has just started and again in the same one.
// It reports medians in ms: what a heading takes is the browser's own share. -benchtime 7x takes seven browsers for each.
func BenchmarkFirstPaint(b *testing.B) {
	live := demonstrate(b, size{"300", "100"})
	heading := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		_, _ = io.WriteString(w, `<!doctype html><title>heading</title><link rel="icon" href="data:,"><h1>heading</h1>`)
	}))
	defer heading.Close()
	paints := map[string][]float64{}
	for b.Loop() {
		for name, url := range map[string]string{"heading": heading.URL, "live": live} {
			p := browser.Open(b).Page(b, look(false))
			p.Go(url)
			paints[name+"-first-ms"] = append(paints[name+"-first-ms"], p.FirstPaint())
			p.Go(url)
			paints[name+"-again-ms"] = append(paints[name+"-again-ms"], p.FirstPaint())
		}
	}
	b.ReportMetric(0, "ns/op") // starting a browser says nothing
	for name, all := range paints {
		slices.Sort(all)
		b.ReportMetric(all[len(all)/2], name)
	}
}
