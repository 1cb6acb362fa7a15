package main

import (
	"cmp"
	"fmt"
	"io"
	"math"
	"os"
	"os/exec"
	"runtime/debug"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/dustin/go-humanize"

	"github.com/firstcome/firstcome/designs/verdict"
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

// wrong returns how many errors of a contestant a run had, including pairs out of order.
func (res *result) wrong() int64 { return res.Verdict.Wrong() + res.Verdict.Order.Overtaken }

// unreported returns wrong without the losses that the contestant itself reports, if it reports exactly the losses. Each lost coupon may have gone to
// another user, or to none.
func (res *result) unreported() int64 {
	v := res.Verdict
	if v.Reported != v.Lost || v.Named != v.Lost {
		return res.wrong()
	}
	return res.wrong() - v.Lost - min(v.Promised, v.Lost) - min(v.Denied, v.Lost)
}

// harms returns a text for each kind of error in a verdict.
func harms(v verdict.Verdict) (parts []string) {
	for _, p := range []struct {
		count int64
		text  string
	}{
		{v.Oversold, "oversold"},
		{v.Promised, "promised too much"},
		{v.Twice, "with two"},
		{v.Lost, "told and not stored"},
		{v.Untold, "stored and not told"},
		{v.Open, "told nothing"},
		{v.Denied, "refused while coupons were left"},
		{v.Order.Overtaken, "pairs out of order"},
	} {
		if p.count > 0 {
			parts = append(parts, humanize.Comma(p.count)+" "+p.text)
		}
	}
	switch {
	case v.Named == 0:
	case v.Reported == v.Lost && v.Named == v.Lost:
		parts = append(parts, "reported by its own audit")
	default:
		parts = append(parts, fmt.Sprintf("its own audit names %d numbers as lost, %d of them told", v.Named, v.Reported))
	}
	return parts
}

// Outcome returns the result of a fault as text.
func (res *result) Outcome() string {
	return cmp.Or(res.Nothing, strings.Join(harms(res.Verdict), ", "), "exact")
}

// line returns the result as one line of text.
func (res *result) line() string {
	text := fmt.Sprintf("%s; %d stored, %.0f winners/s, p95 %.1f ms", cmp.Or(strings.Join(harms(res.Verdict), ", "), "exact"), res.Verdict.Stored, res.Winners, 1000*res.Answer.P95)
	if v := res.Verdict; v.Refused > 0 {
		text += fmt.Sprintf("; %d told that nothing was decided", v.Refused)
	}
	if res.Unsent > 0 {
		text += fmt.Sprintf("; %d never sent, because no connection was free", res.Unsent)
	}
	if res.Unfinished != "" {
		text += "; not finished: " + res.Unfinished
	}
	if res.Nothing != "" {
		text += "; " + res.Nothing
	}
	if res.Breach != "" {
		text += "; " + res.Breach
	}
	return text
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

func (res *result) winners() float64 { return res.Winners }

// fastest returns the speed runs of a contestant with 64 connections. If the contestant stores over a tenth more with another size of the database pool
// than the usual one, it returns the runs with the best size, and that size for each process.
func (rep *report) fastest(contestant string) (runs []*result, pool int) {
	const enough = 1.1
	var best float64
	for _, t := range trials {
		if !t.speed || t.connections != 64 {
			continue
		}
		all := rep.of(contestant, t.Name)
		switch stored := median(all, (*result).winners); {
		case t.pool == 0:
			runs, best = all, enough*stored
		case stored > best:
			runs, pool, best = all, t.pool, stored
		}
	}
	return runs, pool
}

// median returns the median of a figure over results, or 0 if there are none.
func median(all []*result, of func(*result) float64) float64 {
	if len(all) == 0 {
		return 0
	}
	values := make([]float64, len(all))
	for n, res := range all {
		values[n] = of(res)
	}
	slices.Sort(values)
	middle := len(values) / 2
	if len(values)%2 == 0 {
		return (values[middle-1] + values[middle]) / 2
	}
	return values[middle]
}

// worst returns the result with the highest count.
func worst(all []*result, count func(*result) int64) *result {
	return slices.MaxFunc(all, func(a, b *result) int { return cmp.Compare(count(a), count(b)) })
}

// cells returns a contestant's line of the table: whether the worst run without a fault and with a limited stock was exact, whether it kept the order, how
// many users were told and not stored, the speed and the latency with 64 connections, and the result of the worst fault.
func (rep *report) cells(c contestant) []string {
	cells := []string{"–", "–", "–", "–", "–", "–"}
	var plain []*result
	for _, t := range trials {
		if t.quantity != endless {
			plain = append(plain, rep.of(c.name, t.Name)...)
		}
	}
	if len(plain) > 0 {
		cells[0], cells[1] = "yes", "kept"
		if n := slices.IndexFunc(plain, func(r *result) bool { return r.Unfinished != "" }); n >= 0 {
			cells[0] = "not finished: " + plain[n].Unfinished + " (" + plain[n].Trial + ")"
		}
		if w := worst(plain, func(r *result) int64 { return r.Verdict.Wrong() }); w.Verdict.Wrong() > 0 {
			truth := w.Verdict
			truth.Order = verdict.Order{} // the order has its own column
			cells[0] = strings.Join(harms(truth), ", ") + " (" + w.Trial + ")"
		}
		if w := worst(plain, func(r *result) int64 { return r.Verdict.Order.Overtaken }); w.Verdict.Order.Overtaken > 0 {
			cells[1] = fmt.Sprintf("%s pairs (%s)", humanize.Comma(w.Verdict.Order.Overtaken), w.Trial)
		}
		cells[2] = humanize.Comma(worst(plain, func(r *result) int64 { return r.Verdict.Lost }).Verdict.Lost)
	}
	if speed, pool := rep.fastest(c.name); len(speed) > 0 {
		cells[3] = humanize.Comma(int64(math.Round(median(speed, (*result).winners))))
		if pool > 0 {
			cells[3] += fmt.Sprintf(" (%d to the database)", pool)
		}
		cells[4] = fmt.Sprintf("%.1f ms", median(speed, func(r *result) float64 { return 1000 * r.Answer.P95 }))
	}
	faults := slices.DeleteFunc(rep.of(c.name, underFault.Name), func(r *result) bool { return r.Nothing != "" })
	if len(faults) > 0 {
		w := slices.MaxFunc(faults, func(a, b *result) int {
			return cmp.Or(cmp.Compare(a.Verdict.Wrong(), b.Verdict.Wrong()), cmp.Compare(a.wrong(), b.wrong()))
		})
		if cells[5] = "exact"; w.wrong() > 0 {
			cells[5] = strings.Join(harms(w.Verdict), ", ") + " (" + w.Fault + ")"
		}
	}
	return cells
}

// writeTable writes the table of results, which a reader takes in within ten seconds.
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
