package load

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/dustin/go-humanize"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/audit"
)

// ends has the ends of places, in the order of the report.
var ends = []audit.End{
	audit.Served, audit.End(firstcome.SoldOut.String()), audit.End(firstcome.Closed.String()), audit.Left, audit.Lost, audit.Vanished, audit.InLine,
}

// endings returns the numbers of places by their end, in words.
func (l *Line) endings() string {
	var all []string
	for _, end := range ends {
		if n := l.Ends[end]; n > 0 {
			all = append(all, humanize.Comma(n)+" "+endWords(end))
		}
	}
	return strings.Join(all, ", ")
}

// endWords returns the words for an end.
func endWords(end audit.End) string {
	switch end {
	case audit.InLine:
		return "still in line"
	case audit.Vanished:
		return "gone without a reason"
	}
	return strings.ReplaceAll(string(end), "_", " ")
}

// write writes a line's figures for a terminal.
func (l *Line) write(t *strings.Builder) {
	if l == nil {
		return
	}
	fmt.Fprintf(t, "\n  %-16s %s: %s\n", "in line", counted(l.Followed, "user"), l.endings())
	for _, row := range l.Rows() {
		fmt.Fprintf(t, "  %-16s p50 %s, p95 %s, p99 %s, longest %s\n", row.Name, inSeconds(row.P50), inSeconds(row.P95), inSeconds(row.P99), inSeconds(row.Max))
	}
	if l.ETA != nil {
		fmt.Fprintf(t, "  %-16s %s\n", "told against it", l.ETA)
	}
	fmt.Fprintf(t, "  %-16s %s\n", "pace kept", l.PaceKept())
	fmt.Fprintf(t, "  %-16s %s at the line; p99 %s ms, begun %s ms late\n", "followers asked", counted(l.Looks.Line, "look"), milliseconds(l.Looks.Latency.P99), milliseconds(l.Looks.Late.P99))
	for _, cause := range slices.Sorted(maps.Keys(l.Looks.Trouble)) {
		fmt.Fprintf(t, "  looked again: %s × %s\n", humanize.Comma(l.Looks.Trouble[cause]), cause)
	}
}

// Rows returns the known times in line, with their names.
func (l *Line) Rows() []latencyRow {
	all := []latencyRow{{"until they knew", l.InLine}, {"until served", l.Until}, {"until sent away", l.SentAway}}
	return slices.DeleteFunc(all, func(r latencyRow) bool { return r.Count == 0 })
}

// inLineSeconds formats milliseconds for a column of seconds.
func inLineSeconds(ms float64) string { return humanize.FormatFloat("#,###.##", ms/1000) }

// inSeconds formats milliseconds as seconds.
func inSeconds(ms float64) string { return seconds(ms / 1000) }

// String describes how exact the ETAs were.
func (e *ETA) String() string {
	return fmt.Sprintf("served %s than told at p50; 9 of 10 from %s to %s", off(e.P50), off(e.P5), off(e.P95))
}

// off formats by how much something was sooner or later.
func off(seconds float64) string {
	word := map[bool]string{true: "later", false: "sooner"}[seconds > 0]
	return fmt.Sprintf("%.2f s %s", math.Abs(seconds), word)
}

// PaceKept describes in words how the pace was kept.
func (l *Line) PaceKept() string {
	if l.Kept == nil {
		return "not known, since " + l.Why
	}
	k := l.Kept
	text := fmt.Sprintf("%.3f of %s a second over %s; at most %.1f coupons ahead of it, where a bucket is %g",
		k.Share, humanize.Comma(*l.PerSecond), seconds(k.Seconds), k.Ahead, k.Bucket)
	if k.Stalls > 0 {
		longest := time.Duration(k.Longest * float64(time.Second)).Round(time.Millisecond)
		text += fmt.Sprintf("; %s of %s in all, the longest %v, taken out", counted(int64(k.Stalls), "stall"), seconds(k.Stalled), longest)
	}
	return text
}

// cards are the figures of a line on the report.
func (l *Line) cards() []card {
	var cards []card
	for _, end := range ends {
		if n := l.Ends[end]; n > 0 {
			cards = append(cards, card{Name: "in line: " + endWords(end), Value: humanize.Comma(n), Tone: string(end), Alarming: end == audit.Vanished})
		}
	}
	for n, ms := range []float64{l.InLine.P50, l.InLine.P99} {
		if l.InLine.Count > 0 {
			cards = append(cards, card{Name: "time in line, " + []string{"p50", "p99"}[n], Value: inLineSeconds(ms), Unit: "s"})
		}
	}
	if l.Kept != nil {
		cards = append(cards, card{Name: "pace kept", Value: fmt.Sprintf("%.1f", 100*l.Kept.Share), Unit: "%", Alarming: l.Kept.tooFast()})
	}
	return cards
}

// tooFast reports whether more coupons were issued than the pace allows.
func (k *Kept) tooFast() bool { return k.Ahead > k.Bucket+aCoupon }

// aCoupon is how many coupons times in whole microseconds can hide.
const aCoupon = 1
