package main

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/client"
)

// A bench is one run of the command.
type bench struct {
	only                    string
	rounds, claims, holders int
	dir, binary             string
	before                  string // an earlier binary, or empty
	made                    int
	capacity                float64 // winners a second at 64 connections, once measured
}

// print prints a row of the table, and names a target that was missed.
func (b *bench) print(what, got, reference, ratio, want string) {
	fmt.Printf("| %s | %s | %s | %s | %s |\n", what, got, reference, ratio, judged(got, ratio, want))
}

// campaign makes a campaign of a quantity (-1: unlimited) whose claims are answered when
// it is told, else by the server's default, and returns its id.
func (b *bench) campaign(ctx context.Context, s *server, quantity int64, answer ...firstcome.AnswerWhen) string {
	c := client.NewCampaign{Coupon: client.CouponSpec{Benefit: []byte(`{"percent":20}`)}}
	if quantity >= 0 {
		c.Quantity = &quantity
	}
	for _, when := range answer {
		c.Answer = string(when)
	}
	return b.create(ctx, s, c)
}

// create makes a campaign under the next id, and returns this.
func (b *bench) create(ctx context.Context, s *server, c client.NewCampaign) string {
	b.made++
	c.ID, c.Name = fmt.Sprintf("bench-%d", b.made), "bench"
	value(client.New("http://"+s.address, "").CreateCampaign(ctx, c))
	return c.ID
}

// sequential and scattered name users: as a counter in order, and as the same
// counter multiplied, so that neighbours in time are strangers in an index.
func sequential(from int) func(int) string {
	return func(n int) string { return fmt.Sprintf("user-%09d", from+n) }
}

func scattered(from int) func(int) string {
	return func(n int) string { return fmt.Sprintf("user-%09d", uint64(from+n)*618_033_989%1_000_000_000) }
}

// orders are the two, by what the table calls them.
func orders(yield func(string, func(int) func(int) string) bool) {
	_ = yield("in order", sequential) && yield("scattered", scattered)
}

func median(values []float64) float64 {
	slices.Sort(values)
	return values[len(values)/2]
}

// A comparison is the medians of what took turns, and of the rounds' own ratios.
type comparison struct {
	got, reference, ratio       float64 // claims a second
	cpu, cpuReference, cpuRatio float64 // microseconds a claim
}

// pair runs what is measured and its reference in turn.
func (b *bench) pair(measured, reference func() figure) comparison {
	var got, refs, ratios, cpus, cpuRefs, cpuRatios []float64
	for range b.rounds {
		x, y := measured(), reference()
		got, refs, ratios = append(got, x.perSecond), append(refs, y.perSecond), append(ratios, x.perSecond/y.perSecond)
		cpus, cpuRefs, cpuRatios = append(cpus, micros(x.cpu)), append(cpuRefs, micros(y.cpu)), append(cpuRatios, float64(x.cpu)/float64(y.cpu))
	}
	return comparison{median(got), median(refs), median(ratios), median(cpus), median(cpuRefs), median(cpuRatios)}
}

// printRate prints a comparison's rates.
func (b *bench) printRate(what string, c comparison, reference, want string) {
	b.print(what, perSecond(c.got), perSecond(c.reference)+" "+reference, ratio(c.ratio), want)
}

// printCPU prints a comparison's processor time.
func (b *bench) printCPU(c comparison, want string) {
	b.print("… server CPU a claim", fmt.Sprintf("%.1f µs", c.cpu), fmt.Sprintf("%.1f µs", c.cpuReference), ratio(c.cpuRatio), want)
}

func micros(d time.Duration) float64 { return float64(d) / float64(time.Microsecond) }

func perSecond(v float64) string { return fmt.Sprintf("%.0f/s", v) }
func ratio(v float64) string     { return fmt.Sprintf("%.2f", v) }

// latencies says how long claims waited, in milliseconds.
func latencies(p50, p99, longest float64) string {
	return fmt.Sprintf("p50 %.1f, p99 %.1f, max %.1f ms", p50, p99, longest)
}

// Ticks are the time of all processors, and what the host of a virtual machine gave of it to others.
type ticks struct{ stolen, all int64 }

// takenSince says how much of the processors' time the host took away since an earlier reading.
func (t ticks) takenSince(before ticks) string {
	if t.all == before.all {
		return ""
	}
	return fmt.Sprintf("the host took %.0f %% of the processors", 100*float64(t.stolen-before.stolen)/float64(t.all-before.all))
}
