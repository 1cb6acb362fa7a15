package main

import (
	"cmp"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime/debug"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/firstcome/firstcome/internal/load"
)

func newReport(o *options, left []string) *report {
	commit := "unknown"
	if out, err := exec.Command("git", "describe", "--always", "--dirty").Output(); err == nil {
		commit = strings.TrimSpace(string(out))
	} else if info, ok := debug.ReadBuildInfo(); ok {
		commit = info.Main.Version
	}
	return &report{Machine: load.ThisMachine(commit), Commit: commit, Command: "go run ./cmd/designs " + strings.Join(os.Args[1:], " "), Started: time.Now(), Seed: o.Seed, LeftOut: left}
}

// wrong is how many things went wrong in a run, the order included, as far as a contestant answers for it.
func (res *result) wrong() int64 { return res.Verdict.Wrong() + res.Verdict.Order.Overtaken }

// line says in one line what came out.
func (res *result) line() string {
	v := res.Verdict
	var parts []string
	for _, p := range []struct {
		count int64
		text  string
	}{
		{v.Oversold, "%d oversold"}, {v.Promised, "%d promised too much"}, {v.Twice, "%d with two"}, {v.Lost, "%d told and not stored"},
		{v.Untold, "%d stored and not told"}, {v.Open, "%d told nothing"}, {v.Denied, "%d refused while coupons were left"},
		{v.Order.Overtaken, "%d pairs out of order"},
	} {
		if p.count > 0 {
			parts = append(parts, fmt.Sprintf(p.text, p.count))
		}
	}
	if len(parts) == 0 {
		parts = []string{"exact"}
	}
	text := fmt.Sprintf("%s; %d stored, %.0f winners/s, p95 %.1f ms", strings.Join(parts, ", "), v.Stored, res.Winners, 1000*res.Answer.P95)
	if res.Unfinished != "" {
		text += "; not finished: " + res.Unfinished
	}
	return strings.Join(append([]string{text}, res.Notes...), "; ")
}

// of returns the results of a contestant and a trial.
func (rep *report) of(contestant, trial string) (all []*result) {
	for _, res := range rep.Results {
		if res.Contestant == contestant && res.Trial == trial {
			all = append(all, res)
		}
	}
	return all
}

// median returns that of a figure over results; 0 if there are none.
func median(all []*result, of func(*result) float64) float64 {
	if len(all) == 0 {
		return 0
	}
	values := make([]float64, len(all))
	for n, res := range all {
		values[n] = of(res)
	}
	slices.Sort(values)
	return values[len(values)/2]
}

// worst returns the result with the most wrong.
func worst(all []*result) *result {
	return slices.MaxFunc(all, func(a, b *result) int { return cmp.Compare(a.wrong(), b.wrong()) })
}

// writeTable writes what a reader wants to see in ten seconds.
func writeTable(out io.Writer, rep *report, picked []contestant) {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "\ncontestant\texact?\torder\tlost\twinners/s\tp95 ms\tafter a fault")
	for _, c := range picked {
		exact, order, lost := "–", "–", "–"
		var plain []*result
		for _, t := range append(slices.Clone(trials), quickly...) {
			plain = append(plain, rep.of(c.name, t.Name)...)
		}
		if len(plain) > 0 {
			w := worst(plain)
			exact, order, lost = "yes", "kept", fmt.Sprint(w.Verdict.Lost)
			if w.Verdict.Wrong() > 0 {
				exact, _, _ = strings.Cut(w.line(), ";")
			}
			if o := w.Verdict.Order.Overtaken; o > 0 {
				order = fmt.Sprintf("%d pairs", o)
			}
		}
		speed := rep.of(c.name, "speed-64")
		after := "–"
		if faults := rep.of(c.name, underFault.Name); len(faults) > 0 {
			w := worst(faults)
			after = "exact"
			if w.wrong() > 0 {
				text, _, _ := strings.Cut(w.line(), ";")
				after = text + " (" + w.Fault + ")"
			}
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%.0f\t%.1f\t%s\n", c.name, exact, order, lost,
			median(speed, func(r *result) float64 { return r.Winners }), median(speed, func(r *result) float64 { return 1000 * r.Answer.P95 }), after)
	}
	_ = w.Flush()
	for _, name := range rep.LeftOut {
		fmt.Fprintf(out, "%s: left out\n", name)
	}
	fmt.Fprintf(out, "\n%s, commit %s, %.0f s: %s\n", rep.Machine, rep.Commit, rep.Took, rep.Command)
}
