package load

import (
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/dustin/go-humanize"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/audit"
)

// outcomeWords returns the outcomes of a result that occurred, in the order of the table.
func outcomeWords(r *Result) []string {
	var words []string
	read := firstcome.Outcomes()
	slices.Reverse(read) // what was issued first
	for _, o := range append(read, 0) {
		if r.Outcomes[word(o)] > 0 {
			words = append(words, word(o))
		}
	}
	return words
}

// WriteTable writes the result for a terminal, on one screen.
func (r *Result) WriteTable(w io.Writer) error {
	var t strings.Builder
	fmt.Fprintf(&t, "%s: %s\n%s; from %s\n\n  %s\n\n", r.Campaign.ID, r.Load, r.Server, r.Generator, r.Headline())
	fmt.Fprintf(&t, "  %-16s %10s %9s %9s %9s %9s %9s\n", "", "claims", "p50 ms", "p95 ms", "p99 ms", "p99.9 ms", "max ms")
	line := func(name string, l Latency) {
		fmt.Fprintf(&t, "  %-16s %10s %9s %9s %9s %9s %9s\n", name, humanize.Comma(l.Count), milliseconds(l.P50), milliseconds(l.P95),
			milliseconds(l.P99), milliseconds(l.P999), milliseconds(l.Max))
	}
	for _, name := range outcomeWords(r) {
		line(name, r.LatencyOf[name])
	}
	line("all", r.Latency)
	fmt.Fprintf(&t, "\n  %s answers a second for %.2f s", humanize.Comma(int64(math.Round(r.PerSecond))), r.Seconds)
	if r.Load.Loop == "open" {
		fmt.Fprintf(&t, "; sent %s ms after they were due at p99", milliseconds(r.Lag.P99))
	}
	t.WriteString("\n")
	for _, cause := range slices.Sorted(maps.Keys(r.Trouble)) {
		fmt.Fprintf(&t, "  unknown: %s × %s\n", humanize.Comma(r.Trouble[cause]), cause)
	}
	r.Line.write(&t)
	for _, warning := range r.Warnings {
		fmt.Fprintf(&t, "  ! %s\n", warning)
	}
	r.write(&t)
	_, err := io.WriteString(w, t.String())
	return err
}

// write writes the verdict, with the breaches in Shown.
func (r *Result) write(t *strings.Builder) {
	v := r.Verdict
	fmt.Fprintf(t, "\n  %s\n", r.InAll())
	if v.Checked {
		fmt.Fprintf(t, "  %s\n", v.Why)
	}
	for _, b := range v.Breaches.Shown {
		fmt.Fprintf(t, "    %s  %s\n", b.Promise, b.Text)
	}
	if more := v.Breaches.Total - int64(len(v.Breaches.Shown)); more > 0 {
		fmt.Fprintf(t, "    and %s more\n", humanize.Comma(more))
	}
}

// InAll describes the run's success in one line: breaches, thresholds, and whether it was complete.
func (r *Result) InAll() string {
	text := r.Verdict.String()
	for _, threshold := range r.Thresholds {
		text += "; " + threshold.String()
	}
	if r.Interrupted {
		text += "; interrupted"
	}
	return text
}

// Headline describes the result in a few words.
func (r *Result) Headline() string {
	issued, refused := r.Outcomes[firstcome.Issued.String()], r.Outcomes[firstcome.SoldOut.String()]
	switch {
	case r.SoldOut != nil:
		return "Sold out after " + seconds(*r.SoldOut)
	case r.Line != nil && r.Line.Ends[audit.Served] > 0:
		return counted(r.Line.Ends[audit.Served], "coupon") + " served in " + seconds(r.Line.Tickets.At[len(r.Line.Tickets.At)-1])
	case issued > 0:
		return counted(issued, "coupon") + " issued in " + seconds(r.Seconds)
	case refused > 0:
		return "Sold out before it began"
	}
	return "No coupon was issued"
}

// seconds formats a duration with its significant digits.
func seconds(s float64) string {
	if s < 60 {
		return fmt.Sprintf("%.2f s", s)
	}
	return time.Duration(s * float64(time.Second)).Round(time.Second).String()
}

// milliseconds formats a latency with three digits, the same everywhere.
func milliseconds(ms float64) string {
	if ms < 100 {
		return fmt.Sprintf("%.2f", ms)
	}
	return humanize.Comma(int64(math.Round(ms)))
}

// String describes the configured load in words.
func (l Load) String() string {
	text := counted(int64(l.Users), "user")
	if l.Repeat > 1 {
		text += fmt.Sprintf(" × %d", l.Repeat)
	}
	if l.Loop == "open" {
		text = fmt.Sprintf("%s, %s claims a second due, at most %d at once", text, rate(l.Rate), l.Concurrency)
	} else {
		text = fmt.Sprintf("%s, %d at once", text, l.Concurrency)
	}
	if l.Duration > 0 {
		text += ", for " + seconds(l.Duration)
	}
	if l.Follow {
		text += ", each follows their place" + map[bool]string{true: " through a cache"}[l.CDN]
	}
	if l.Leave > 0 {
		text += fmt.Sprintf(", %g %% leave", 100*l.Leave)
	}
	return text
}

// Coupons is how many coupons the run got.
func (r *Result) Coupons() int64 {
	issued := r.Outcomes[firstcome.Issued.String()]
	if r.Line != nil {
		issued += r.Line.Ends[audit.Served]
	}
	return issued
}

// rate formats a rate, without decimals if it is whole.
func rate(perSecond float64) string {
	if whole := int64(perSecond); float64(whole) == perSecond {
		return humanize.Comma(whole)
	}
	return fmt.Sprintf("%g", perSecond)
}

// counted formats a number of things.
func counted(n int64, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return humanize.Comma(n) + " " + thing + "s"
}
