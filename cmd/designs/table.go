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

// cells are a contestant's line of the table: whether it was exact in the worst run without a fault, the order, who was told and not stored, its speed
// with 64 connections, and what the worst fault did.
func (rep *report) cells(c contestant) []string {
	cells := []string{"–", "–", "–", "–", "–", "–"}
	var plain []*result
	for _, t := range trials {
		plain = append(plain, rep.of(c.name, t.Name)...)
	}
	if len(plain) > 0 {
		w := worst(plain)
		cells[0], cells[1], cells[2] = "yes", "kept", fmt.Sprint(w.Verdict.Lost)
		if w.Verdict.Wrong() > 0 {
			cells[0], _, _ = strings.Cut(w.line(), ";")
		}
		if o := w.Verdict.Order.Overtaken; o > 0 {
			cells[1] = fmt.Sprintf("%d pairs", o)
		}
	}
	if speed := rep.of(c.name, "speed-64"); len(speed) > 0 {
		cells[3] = fmt.Sprintf("%.0f", median(speed, func(r *result) float64 { return r.Winners }))
		cells[4] = fmt.Sprintf("%.1f ms", median(speed, func(r *result) float64 { return 1000 * r.Answer.P95 }))
	}
	if faults := rep.of(c.name, underFault.Name); len(faults) > 0 {
		w := worst(faults)
		if cells[5] = "exact"; w.wrong() > 0 {
			text, _, _ := strings.Cut(w.line(), ";")
			cells[5] = text + " (" + w.Fault + ")"
		}
	}
	return cells
}

// writeTable writes what a reader wants to see in ten seconds.
func writeTable(out io.Writer, rep *report, picked []contestant) {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "\ncontestant\t"+strings.Join(columns, "\t"))
	for _, c := range picked {
		fmt.Fprintln(w, c.name+"\t"+strings.Join(rep.cells(c), "\t"))
	}
	_ = w.Flush()
	if len(rep.LeftOut) > 0 {
		fmt.Fprintln(out, "left out:", strings.Join(rep.LeftOut, ", "))
	}
	fmt.Fprintf(out, "\n%s, commit %s, %.0f s: %s\n", rep.Machine, rep.Commit, rep.Took, rep.Command)
}
