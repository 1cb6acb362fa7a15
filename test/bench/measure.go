package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
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
	made                    int
	capacity                float64 // winners a second at 64 connections, once measured
}

// print prints a row of the table.
func (b *bench) print(what, got, reference, ratio, want string) {
	fmt.Printf("| %s | %s | %s | %s | %s |\n", what, got, reference, ratio, want)
}

// campaign makes a campaign of a quantity (-1: unlimited) and returns its id.
func (b *bench) campaign(ctx context.Context, s *server, quantity int64) (string, error) {
	b.made++
	c := client.NewCampaign{ID: fmt.Sprintf("bench-%d", b.made), Name: "bench", Coupon: client.CouponSpec{Benefit: []byte(`{"percent":20}`)}}
	if quantity >= 0 {
		c.Quantity = &quantity
	}
	return c.ID, b.create(ctx, s, c)
}

// answering makes an unlimited campaign whose claims are answered as told; "" is the
// server's default.
func (b *bench) answering(ctx context.Context, s *server, answer firstcome.AnswerWhen) (string, error) {
	b.made++
	c := client.NewCampaign{ID: fmt.Sprintf("bench-%d", b.made), Name: "bench", Answer: string(answer), Coupon: client.CouponSpec{Benefit: []byte(`{"percent":20}`)}}
	return c.ID, b.create(ctx, s, c)
}

func (b *bench) create(ctx context.Context, s *server, c client.NewCampaign) error {
	_, err := client.New("http://"+s.address, "").CreateCampaign(ctx, c)
	return err
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

// pair runs a and b in turn and returns the medians of both and of the ratios a/b.
func (b *bench) pair(first, second func() (figure, error)) (a, ref, ratio, cpu, cpuA, cpuRef float64, err error) {
	var as, refs, ratios, cpus, cpuAs, cpuRefs []float64
	for range b.rounds {
		x, err1 := first()
		y, err2 := second()
		if err := errors.Join(err1, err2); err != nil {
			return 0, 0, 0, 0, 0, 0, err
		}
		as, refs, ratios = append(as, x.perSecond), append(refs, y.perSecond), append(ratios, x.perSecond/y.perSecond)
		cpuAs, cpuRefs, cpus = append(cpuAs, micros(x.cpu)), append(cpuRefs, micros(y.cpu)), append(cpus, float64(x.cpu)/float64(y.cpu))
	}
	return median(as), median(refs), median(ratios), median(cpus), median(cpuAs), median(cpuRefs), nil
}

func micros(d time.Duration) float64 { return float64(d) / float64(time.Microsecond) }

func perSecond(v float64) string { return fmt.Sprintf("%.0f/s", v) }
func ratio(v float64) string     { return fmt.Sprintf("%.2f", v) }

// both starts firstcome and the reference.
func (b *bench) both(ctx context.Context, ledger string) (s, bare *server, err error) {
	if s, err = b.firstcome(ctx, ledger); err != nil {
		return nil, nil, err
	}
	if bare, err = b.bare(ctx); err != nil {
		s.stop()
		return nil, nil, err
	}
	return s, bare, nil
}

// winners: every claim is issued a coupon, fsynced in SQLite before its answer.
func winners(ctx context.Context, b *bench) error {
	s, bare, err := b.both(ctx, "winners.db")
	if err != nil {
		return err
	}
	defer s.stop()
	defer bare.stop()
	for _, connections := range []int{64, 256} {
		for name, users := range orders {
			from := 0
			issue := func() (figure, error) {
				id, err := b.campaign(ctx, s, -1)
				if err != nil {
					return figure{}, err
				}
				from += b.claims
				return drive(ctx, target{s, []string{id}, users(from)}, b.claims, connections, 0, "issued")
			}
			id, err := b.campaign(ctx, s, -1)
			if err != nil {
				return err
			}
			if err := copyAnswer(ctx, s, bare, id, "somebody"); err != nil {
				return err
			}
			reference := func() (figure, error) {
				return drive(ctx, target{bare, []string{id}, users(0)}, b.claims, connections, 0, "issued")
			}
			got, ref, r, cpu, cpuGot, cpuRef, err := b.pair(issue, reference)
			if err != nil {
				return err
			}
			if connections == 64 && name == "in order" {
				b.capacity = got
			}
			what := fmt.Sprintf("winners, %d connections, user ids %s", connections, name)
			b.print(what, perSecond(got), perSecond(ref)+" bare", ratio(r), wantWinners)
			b.print("… server CPU a claim", fmt.Sprintf("%.1f µs", cpuGot), fmt.Sprintf("%.1f µs", cpuRef), ratio(cpu), wantCPU)
		}
	}
	return nil
}

// refused: claims of a campaign that is sold out, and of users who hold a coupon.
func refused(ctx context.Context, b *bench) error {
	s, bare, err := b.both(ctx, "refused.db")
	if err != nil {
		return err
	}
	defer s.stop()
	defer bare.stop()
	soldOut, err := b.campaign(ctx, s, 1)
	if err != nil {
		return err
	}
	held, err := b.campaign(ctx, s, -1)
	if err != nil {
		return err
	}
	if _, err := drive(ctx, target{s, []string{soldOut}, sequential(0)}, 1, 1, 0, "issued"); err != nil {
		return err
	}
	if _, err := drive(ctx, target{s, []string{held}, scattered(0)}, b.claims, 64, 0, "issued"); err != nil {
		return err
	}
	for outcome, t := range map[string]target{
		"sold_out":       {s, []string{soldOut}, scattered(1)},
		"already_issued": {s, []string{held}, scattered(0)},
	} {
		if err := b.refusal(ctx, s, bare, outcome, t); err != nil {
			return err
		}
	}
	return nil
}

func (b *bench) refusal(ctx context.Context, s, bare *server, outcome string, t target) error {
	if err := copyAnswer(ctx, s, bare, t.campaigns[0], t.user(0)); err != nil {
		return err
	}
	claims := b.claims
	if outcome == "sold_out" {
		claims *= 4 // seconds, of which each may have five calls of the gate
	}
	calls, seconds := 0.0, 0.0
	refuse := func() (figure, error) {
		before, err := s.metric("firstcome_batch_claims_count")
		if err != nil {
			return figure{}, err
		}
		f, err := drive(ctx, t, claims, 64, 0, outcome)
		if err != nil {
			return f, err
		}
		after, err := s.metric("firstcome_batch_claims_count")
		calls, seconds = calls+after-before, seconds+f.result.Seconds
		return f, err
	}
	reference := func() (figure, error) {
		return drive(ctx, target{bare, t.campaigns, t.user}, claims, 64, 0, outcome)
	}
	got, ref, r, cpu, cpuGot, cpuRef, err := b.pair(refuse, reference)
	if err != nil {
		return err
	}
	b.print(outcome+", 64 connections", perSecond(got), perSecond(ref)+" bare", ratio(r), wantRefused)
	b.print("… server CPU a claim", fmt.Sprintf("%.1f µs", cpuGot), fmt.Sprintf("%.1f µs", cpuRef), ratio(cpu), "")
	if outcome == "sold_out" {
		b.print("… gate calls a second", fmt.Sprintf("%.1f", calls/seconds), "", "", wantCalls)
	}
	return nil
}

// latency: winners in the open loop, at 70 % of what 64 connections got.
func latency(ctx context.Context, b *bench) error {
	if b.capacity == 0 {
		return errors.New("measure the winners too: latency is taken at 70 % of them")
	}
	s, err := b.firstcome(ctx, "latency.db")
	if err != nil {
		return err
	}
	defer s.stop()
	id, err := b.campaign(ctx, s, -1)
	if err != nil {
		return err
	}
	const seconds = 20
	rate := 0.7 * b.capacity
	f, err := drive(ctx, target{s, []string{id}, sequential(0)}, int(rate*seconds), 256, rate, "issued")
	if err != nil {
		return err
	}
	l := f.result.Latency
	b.print(fmt.Sprintf("latency, open loop, %d s at %s", seconds, perSecond(rate)),
		fmt.Sprintf("p50 %.1f, p99 %.1f, max %.1f ms", l.P50, l.P99, l.Max), "", "", wantLatency)
	return nil
}

// campaigns: 1,000 open campaigns together against one.
func campaigns(ctx context.Context, b *bench) error {
	s, err := b.firstcome(ctx, "campaigns.db")
	if err != nil {
		return err
	}
	defer s.stop()
	from := 0
	claim := func(many int) func() (figure, error) {
		return func() (figure, error) {
			ids := make([]string, many)
			for n := range ids {
				if ids[n], err = b.campaign(ctx, s, -1); err != nil {
					return figure{}, err
				}
			}
			from += b.claims
			return drive(ctx, target{s, ids, sequential(from)}, b.claims, 256, 0, "issued")
		}
	}
	got, ref, r, _, _, _, err := b.pair(claim(1000), claim(1))
	if err != nil {
		return err
	}
	b.print("1,000 open campaigns, 256 connections", perSecond(got), perSecond(ref)+" one", ratio(r), wantCampaigns)
	return nil
}

// growth: the last claims of a large campaign against the first of a new one;
// memory; start.
func growth(ctx context.Context, b *bench) error {
	for name, users := range orders {
		ledger := "growth-" + name[:2] + ".db"
		s, err := b.firstcome(ctx, ledger)
		if err != nil {
			return err
		}
		if err := b.grow(ctx, s, name, users); err != nil {
			s.stop()
			return err
		}
		s.stop()
		if err := b.restart(ctx, ledger); err != nil {
			return err
		}
		if err := os.Remove(filepath.Join(b.dir, ledger)); err != nil {
			return err
		}
	}
	return nil
}

func (b *bench) grow(ctx context.Context, s *server, name string, users func(int) func(int) string) error {
	warm, err := b.campaign(ctx, s, -1)
	if err != nil {
		return err
	}
	if _, err := drive(ctx, target{s, []string{warm}, users(0)}, 20_000, 64, 0, "issued"); err != nil {
		return err
	}
	before, err := s.memory()
	if err != nil {
		return err
	}
	large, err := b.campaign(ctx, s, -1)
	if err != nil {
		return err
	}
	if _, err := drive(ctx, target{s, []string{large}, users(0)}, b.holders, 64, 0, "issued"); err != nil {
		return err
	}
	after, err := s.memory()
	if err != nil {
		return err
	}
	const part = 20_000
	from := b.holders
	late := func() (figure, error) {
		from += part
		return drive(ctx, target{s, []string{large}, users(from)}, part, 64, 0, "issued")
	}
	early := func() (figure, error) {
		id, err := b.campaign(ctx, s, -1)
		if err != nil {
			return figure{}, err
		}
		return drive(ctx, target{s, []string{id}, users(0)}, part, 64, 0, "issued")
	}
	got, ref, r, _, _, _, err := b.pair(late, early)
	if err != nil {
		return err
	}
	b.print(fmt.Sprintf("claims after %d coupons, user ids %s", b.holders, name), perSecond(got), perSecond(ref)+" in a new campaign", ratio(r), wantGrowth)
	b.print("… bytes of resident memory a holder", fmt.Sprintf("%.1f", float64(after-before)/float64(b.holders)), "", "", wantMemory)
	return nil
}

// restart measures how long a start on the large ledger takes until a claim is answered.
func (b *bench) restart(ctx context.Context, ledger string) error {
	began := time.Now()
	s, err := b.firstcome(ctx, ledger)
	if err != nil {
		return err
	}
	defer s.stop()
	id := fmt.Sprintf("bench-%d", b.made)
	if _, err := drive(ctx, target{s, []string{id}, func(int) string { return "a newcomer" }}, 1, 1, 0, "issued"); err != nil {
		return err
	}
	b.print("… start until the first claim is answered", time.Since(began).Round(time.Millisecond).String(), "", "", wantStart)
	return nil
}
