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
	repeat      int // requests of each user
	quantity    int64
	connections int
	pool        int           // each process's connections to the database; 0 for the number on the command line
	rate        float64       // requests a second; 0 for as fast as the answers come
	lasts       time.Duration // of the load; 0 until all users have asked
	rest        time.Duration // the longest wait after the load until all coupons are stored
	again       int           // how often a user without an answer asks again
	speed       bool          // the run measures winners a second
}

// quiet is how long no new row may be stored before a run counts as over.
const quiet = 15 * time.Second

// trials are the runs without faults. quickly are the runs of --quick. underFault is a run with a fault.
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

// A result is the result of one run.
type result struct {
	Contestant string          `json:"contestant"`
	Trial      string          `json:"run"`
	Round      int             `json:"round"`
	Fault      string          `json:"fault,omitempty"`
	Verdict    verdict.Verdict `json:"verdict"`
	// Unfinished is why the run ended before all coupons were stored, or empty if all were.
	Unfinished string `json:"unfinished,omitempty"`
	// Winners is winners a second from the first request to the last row. Answers is answers a second from the first request to the last answer.
	Winners float64 `json:"winners_per_second"`
	Answers float64 `json:"answers_per_second"`
	// Answer is the seconds from a request to its first answer. Final is the seconds from a winner's request until the winner could know of the coupon.
	Answer verdict.Times `json:"answer_seconds"`
	Final  verdict.Times `json:"final_seconds"`
	// Latencies has 51 quantiles of the seconds from requests to their first answers, from the shortest to the longest.
	Latencies []float64 `json:"answer_quantiles"`
	// Costs for each winner: processor time in microseconds, commands and transactions.
	Service  float64 `json:"service_us"`
	Redis    float64 `json:"redis_us"`
	Database float64 `json:"database_us"`
	Commands float64 `json:"redis_commands"`
	Commits  float64 `json:"transactions"`
	// Curve has the number of users who were told that they have a coupon, and the number of rows, over time.
	Curve    []moment       `json:"curve"`
	Troubles map[string]int `json:"no_answer,omitempty"`
	Unsent   int64          `json:"unsent,omitempty"` // requests of the open loop that were due and never sent: no connection was free
	// Nothing is why the fault did not happen, or empty if it did or may have.
	Nothing string `json:"did_not_happen,omitempty"`
	// Breach is the error of firstcome's own audit if it found a breach.
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
	count       int // number of runs so far, so that each run has its own coupon
}

// A course is a run in progress, for the function that causes a fault.
type course struct {
	rival     *rival
	tenth     <-chan struct{} // closed when a tenth of the users have an answer
	nearlyAll <-chan struct{} // closed when all but few coupons are stored
	over      <-chan struct{} // closed when the load has ended
}

// run makes a run of a contestant. harm, if not nil, causes a fault during the load.
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
	figures := people.come(ctx, load.Options{
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
	if harm != nil { // the cost of killed processes is unknown
		spent = cost{}
	}
	if err := res.judge(ctx, people, watch, t, spent); err != nil {
		return nil, err
	}
	if t.rate > 0 { // measured from when a request was due: a design that does not keep up delays later requests
		res.Answer = verdict.Times{P50: figures.Latency.P50 / 1000, P95: figures.Latency.P95 / 1000, P99: figures.Latency.P99 / 1000, Max: figures.Latency.Max / 1000}
	}
	return res, nil
}

// judge fills in the verdict and the figures.
func (res *result) judge(ctx context.Context, people *crowd, w *watch, t trial, spent cost) error {
	users, open := people.users()
	if err := w.look(ctx, people.start, 0); err != nil { // all rows, because the polls may have missed late ones
		return err
	}
	over := time.Since(people.start)
	people.settle(ctx, users, open)
	if err := w.look(ctx, people.start, 0); err != nil { // an unfinished run may still store rows
		return err
	}
	waiting := map[string]bool{}
	for _, u := range users {
		waiting[u.ID] = u.Told == verdict.Nothing
	}
	// A user who had no result when they asked for it, and was stored after the end of the run, does not count as stored.
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
		if u.Told == verdict.Issued && u.Settled == verdict.Never { // a user who asked for the result
			u.Settled = max(u.Answered, stored[u.ID])
		}
		if u.Told == verdict.Issued {
			finals, told = append(finals, (u.Settled-u.Sent).Seconds()), append(told, u.Settled)
		}
	}
	h := verdict.History{Quantity: t.quantity, Users: users, Rows: rows}
	if w.rival.named != nil && t.quantity != endless { // an audit of a speed run would take longer than the run
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

// curvePoints is the number of steps in a curve.
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
