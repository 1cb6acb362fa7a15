package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/firstcome/firstcome/designs/verdict"
	"github.com/firstcome/firstcome/internal/load"
)

// A trial is one kind of run.
type trial struct {
	Name        string
	people      int
	repeat      int // requests of each
	quantity    int64
	connections int
	pool        int           // each process's connections to the database; 0: as the command line says
	rate        float64       // 0: as fast as they are answered
	lasts       time.Duration // of the load; 0: until all have asked
	rest        time.Duration // after the load at most, until all is stored
	again       int           // how often a user asks again who got no answer
	speed       bool          // winners a second are of interest
}

// quiet is how long nothing new may be stored before a run counts as over.
const quiet = 15 * time.Second

// trials are the runs without faults. quickly are their small forms.
var (
	trials = []trial{
		{Name: "exact", people: 10_000, quantity: 5000, connections: 64, rest: time.Minute},
		{Name: "one", people: 1, repeat: 100, quantity: 100, connections: 64, rest: time.Minute},
		{Name: "crowd", people: 20_000, quantity: 5000, connections: 500, rest: time.Minute},
		{Name: "speed-64", people: 1_000_000, quantity: endless, connections: 64, lasts: 10 * time.Second, rest: 30 * time.Second, speed: true},
		{Name: "speed-256", people: 1_000_000, quantity: endless, connections: 256, lasts: 10 * time.Second, rest: 30 * time.Second, speed: true},
		{Name: "speed-64, 8 to the database", people: 1_000_000, quantity: endless, connections: 64, pool: 8, lasts: 10 * time.Second, rest: 30 * time.Second, speed: true},
		{Name: "speed-64, 128 to the database", people: 1_000_000, quantity: endless, connections: 64, pool: 128, lasts: 10 * time.Second, rest: 30 * time.Second, speed: true},
		{Name: "steady", people: 20_000, quantity: endless, connections: 512, rate: 2000, lasts: 10 * time.Second, rest: 30 * time.Second},
	}
	quickly = []trial{
		{Name: "exact", people: 1000, quantity: 500, connections: 64, rest: 10 * time.Second},
		{Name: "speed-64", people: 200_000, quantity: endless, connections: 64, lasts: 2 * time.Second, rest: 5 * time.Second, speed: true},
	}
	underFault = trial{Name: "fault", people: 2000, quantity: 1000, connections: 64, rest: time.Minute, again: 30}
)

// A result is what one run showed.
type result struct {
	Contestant string          `json:"contestant"`
	Trial      string          `json:"run"`
	Round      int             `json:"round"`
	Fault      string          `json:"fault,omitempty"`
	Verdict    verdict.Verdict `json:"verdict"`
	// Unfinished is why the run ended before all was stored, and empty if all was.
	Unfinished string `json:"unfinished,omitempty"`
	// Winners a second are from the first request to the last row, answers to the last answer.
	Winners float64 `json:"winners_per_second"`
	Answers float64 `json:"answers_per_second"`
	// Answer and Final are seconds from a request to its first answer, and to when a winner could know of the coupon.
	Answer verdict.Times `json:"answer_seconds"`
	Final  verdict.Times `json:"final_seconds"`
	// Latencies are seconds from requests to their first answers: the shortest, each fiftieth part, and the longest.
	Latencies []float64 `json:"answer_quantiles"`
	// Costs of a winner: processor time in microseconds, and what the servers did.
	Service  float64 `json:"service_us"`
	Redis    float64 `json:"redis_us"`
	Database float64 `json:"database_us"`
	Commands float64 `json:"redis_commands"`
	Commits  float64 `json:"transactions"`
	// Curve is how many users were told that they have a coupon, and how many rows there were, over time.
	Curve    []moment       `json:"curve"`
	Troubles map[string]int `json:"no_answer,omitempty"`
	Unsent   int64          `json:"unsent,omitempty"` // requests of the open loop that were due and never sent: no connection was free
	// Nothing is why the fault did no harm, and empty if it did, or may have.
	Nothing string `json:"did_not_happen,omitempty"`
	// Breach is what firstcome's own audit found; empty: nothing.
	Breach string `json:"breach,omitempty"`
}

// A moment is a point of a curve.
type moment struct {
	Second float64 `json:"s"`
	Told   int     `json:"told"`
	Stored int     `json:"stored"`
}

// A runner makes runs.
type runner struct {
	*hosts
	built       binaries
	connections int // of each process to the database
	haste       int64
	seed        uint64
	count       int // of runs, so that each has a coupon of its own
}

// A course is a run that goes on, as who does harm to it sees it.
type course struct {
	rival     *rival
	tenth     <-chan struct{} // closed when a tenth of the people have an answer
	nearlyAll <-chan struct{} // closed when all but few coupons are stored
	over      <-chan struct{} // closed when the people have gone
}

// run makes a run of a contestant. harm, if not nil, does harm while the people ask.
func (r *runner) run(ctx context.Context, c contestant, t trial, s start, harm func(ctx context.Context, now course) error) (res *result, err error) {
	r.count++
	s.coupon, s.quantity, s.connections, s.haste = fmt.Sprint("c", r.count), t.quantity, cmp.Or(t.pool, r.connections), r.haste
	if s.dir, err = os.MkdirTemp("", "designs-"); err != nil {
		return nil, err
	}
	defer os.RemoveAll(s.dir)
	on, err := c.start(ctx, r, s)
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", c.name, err)
	}
	defer func() {
		if shut := on.close(); err == nil {
			err = shut
		}
	}()
	people := newCrowd(on, s.coupon+"-", t)
	before, err := r.cost(ctx, on)
	if err != nil {
		return nil, err
	}
	watch := newWatch(on, t.quantity)
	ending, over := make(chan struct{}), make(chan struct{})
	var watching sync.WaitGroup
	people.start = time.Now()
	watching.Go(func() { watch.run(ctx, people.start, ending) })
	harmed := make(chan error, 1)
	go func() {
		if harm == nil {
			harmed <- nil
			return
		}
		harmed <- harm(ctx, course{on, people.reached, watch.reached, over})
	}()
	figures := people.come(ctx, load.Config{
		Users: t.people, Repeat: max(1, t.repeat), Concurrency: t.connections, Rate: t.rate, Duration: t.lasts, Timeout: 10 * time.Second, Again: t.again,
		Shuffle: true, Seed: r.seed + uint64(r.count),
	})
	close(over)
	if err := <-harmed; err != nil {
		close(ending)
		watching.Wait()
		return nil, err
	}
	res = &result{Contestant: c.name, Trial: t.Name, Answers: figures.PerSecond, Unsent: figures.Unsent}
	res.Unfinished = watch.rest(ctx, people, t)
	close(ending)
	watching.Wait()
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	after, err := r.cost(ctx, on)
	if err != nil {
		return nil, err
	}
	spent := after.since(before)
	if harm != nil { // who was killed does not say what they spent
		spent = cost{}
	}
	if err := res.judge(ctx, people, watch, t, spent); err != nil {
		return nil, err
	}
	if t.rate > 0 { // from when it was due: a design that does not keep up makes those wait who come next
		res.Answer = verdict.Times{P50: figures.Latency.P50 / 1000, P95: figures.Latency.P95 / 1000, P99: figures.Latency.P99 / 1000, Max: figures.Latency.Max / 1000}
	}
	return res, nil
}

// judge fills in the verdict and the figures.
func (res *result) judge(ctx context.Context, people *crowd, w *watch, t trial, spent cost) error {
	users, open := people.users()
	if err := w.look(ctx, people.start, 0); err != nil { // all rows, in case that some were seen late
		return err
	}
	over := time.Since(people.start)
	people.settle(ctx, users, open)
	if err := w.look(ctx, people.start, 0); err != nil { // a run that is not finished goes on
		return err
	}
	waiting := map[string]bool{}
	for _, u := range users {
		waiting[u.ID] = u.Told == verdict.Nothing
	}
	// People who still waited when they looked, and were stored afterwards, do not count as stored: the run was over.
	rows := slices.DeleteFunc(w.inOrder(), func(row verdict.Row) bool { return row.Stored > over && waiting[row.User] })
	stored := make(map[string]time.Duration, len(rows))
	var last time.Duration
	for _, row := range rows {
		stored[row.User] = row.Stored
		last = max(last, row.Stored)
	}
	var answers, finals []float64
	var told []time.Duration
	for n := range users {
		u := &users[n]
		if u.Answered != verdict.Never {
			answers = append(answers, (u.Answered - u.Sent).Seconds())
		}
		if u.Told == verdict.Issued && u.Settled == verdict.Never { // who looked
			u.Settled = max(u.Answered, stored[u.ID])
		}
		if u.Told == verdict.Issued {
			finals, told = append(finals, (u.Settled-u.Sent).Seconds()), append(told, u.Settled)
		}
	}
	h := verdict.History{Quantity: t.quantity, Users: users, Rows: rows}
	if w.rival.named != nil && t.quantity != endless { // an audit of what speed runs store takes longer than they do
		var err error
		if h.Named, err = w.rival.named(ctx); errors.As(err, new(breach)) {
			res.Breach = err.Error()
		} else if err != nil {
			return err
		}
	}
	res.Verdict = verdict.Of(h)
	res.Latencies = quantiles(answers, 50)
	res.Answer, res.Final, res.Troubles = verdict.TimesOf(answers), verdict.TimesOf(finals), people.troubles()
	if winners := float64(len(rows)); winners > 0 {
		res.Winners = winners / last.Seconds()
		res.Service, res.Redis, res.Database = spent.service.Seconds()*1e6/winners, spent.redis.Seconds()*1e6/winners, spent.database.Seconds()*1e6/winners
		res.Commands, res.Commits = float64(spent.commands)/winners, float64(spent.transactions)/winners
	}
	res.Curve = curve(told, rows)
	return nil
}

// curvePoints is how many points a curve has at most.
const curvePoints = 200

func curve(told []time.Duration, rows []verdict.Row) (points []moment) {
	slices.Sort(told)
	stored := make([]time.Duration, len(rows))
	for n, row := range rows {
		stored[n] = row.Stored
	}
	slices.Sort(stored)
	var end time.Duration
	if len(told) > 0 {
		end = told[len(told)-1]
	}
	if len(stored) > 0 {
		end = max(end, stored[len(stored)-1])
	}
	for n := range curvePoints + 1 {
		at := end * time.Duration(n) / curvePoints
		a, _ := slices.BinarySearch(told, at+1)
		b, _ := slices.BinarySearch(stored, at+1)
		points = append(points, moment{at.Seconds(), a, b})
	}
	return points
}
