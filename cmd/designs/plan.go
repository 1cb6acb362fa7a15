package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/firstcome/firstcome/designs"
	"github.com/firstcome/firstcome/internal/load"
	"github.com/firstcome/firstcome/internal/point"
)

// A contestant is a design, or firstcome in one of its set-ups.
type contestant struct {
	name, about string
	points      []point.Point
	last        []point.Point // the points at which a fault comes only when few coupons are left
	clocks      bool          // the result may depend on the processes' clocks
	redis       bool          // it uses Redis
	database    bool          // it uses the database server
	kafka       bool
	product     bool // it is firstcome
	start       func(ctx context.Context, r *runner, s start) (*rival, error)
	again       func(ctx context.Context, on *rival, killed *process) error // restarts a killed process; nil if the second process continues alone
}

// contestants returns all contestants.
func contestants() (all []contestant) {
	for _, c := range designs.Contestants {
		all = append(all, contestant{
			name: c.Name, about: c.About, points: c.Points, last: c.Last, kafka: c.Kafka, clocks: true, redis: !c.NoRedis, database: true,
			start: func(ctx context.Context, r *runner, s start) (*rival, error) { return r.startDesign(ctx, c, s) },
		})
	}
	for _, u := range setUps {
		c := contestant{
			name: u.name, about: u.about, points: u.points, product: true, redis: u.gate, database: !u.sqlite,
			start: func(ctx context.Context, r *runner, s start) (*rival, error) { return r.startFirstcome(ctx, u, s) },
		}
		if u.sqlite {
			c.again = func(ctx context.Context, on *rival, killed *process) error { return on.restart(ctx, killed) }
		}
		all = append(all, c)
	}
	return all
}

// A report has all results of a comparison.
type report struct {
	Machine  load.Machine `json:"machine"`
	Commit   string       `json:"commit"`
	Command  string       `json:"command"`
	Started  time.Time    `json:"started"`
	Took     float64      `json:"took_seconds"`
	Seed     uint64       `json:"seed"`
	LeftOut  []string     `json:"left_out,omitempty"`
	Results  []*result    `json:"results"`
	Failures []string     `json:"failures,omitempty"`
}

func (o *options) run(ctx context.Context, out io.Writer) (err error) {
	all := contestants()
	if o.List {
		for _, c := range all {
			fmt.Fprintf(out, "%-24s %s\n", c.name, c.about)
		}
		return nil
	}
	picked, left, err := o.pick(all)
	if err != nil {
		return err
	}
	if err := o.check(picked); err != nil {
		return err
	}
	if o.From != "" {
		return o.showAgain(out, picked)
	}
	kafka := slices.ContainsFunc(picked, func(c contestant) bool { return c.kafka })
	if err := missing(*o, kafka); err != nil {
		return err
	}
	files, err := o.create()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, files.close()) }()
	if o.Seed == 0 {
		o.Seed = rand.Uint64() //nolint:gosec // no secret
	}
	faults := !slices.Contains(o.Faults, "none")
	fmt.Fprintf(out, "%d contestants, %d rounds%s; about %v. Seed %d.\n", len(picked), o.Rounds, map[bool]string{true: ", one of faults"}[faults],
		o.estimate(picked).Round(10*time.Second), o.Seed)
	dir, err := os.MkdirTemp("", "designs-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	built, err := buildAll(ctx, dir, faults)
	if err != nil {
		return err
	}
	hosts, err := startHosts(ctx, *o, kafka)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, hosts.close()) }()
	r := &runner{hosts: hosts, built: built, connections: o.Connections, haste: 1, seed: o.Seed}
	rep := newReport(o, left)
	interrupted := r.all(ctx, out, o, picked, rep) // the results so far are shown even then
	rep.Took = time.Since(rep.Started).Seconds()
	return errors.Join(interrupted, show(out, files, rep, picked))
}

// showAgain shows the results of an earlier comparison.
func (o *options) showAgain(out io.Writer, picked []contestant) (err error) {
	text, err := os.ReadFile(o.From)
	if err != nil {
		return usageError{err}
	}
	var rep report
	if err := json.Unmarshal(text, &rep); err != nil {
		return usageError{fmt.Errorf("%s is not a file that --json wrote: %w", o.From, err)}
	}
	if len(rep.Results) == 0 {
		return usageError{fmt.Errorf("%s has no results: name a file that --json wrote", o.From)}
	}
	picked = slices.DeleteFunc(picked, func(c contestant) bool {
		return !slices.ContainsFunc(rep.Results, func(r *result) bool { return r.Contestant == c.name })
	})
	files, err := o.create()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, files.close()) }()
	return show(out, files, &rep, picked)
}

// files are the files for the results. A file is nil if the command line does not name it.
type files struct{ json, report, table, picture *os.File }

// create creates the files that the command line names. So an error is known before the comparison, which takes two hours.
func (o *options) create() (f files, err error) {
	for name, to := range map[string]**os.File{o.JSON: &f.json, o.Report: &f.report, o.Table: &f.table, o.Picture: &f.picture} {
		if name == "" {
			continue
		}
		if *to, err = os.Create(name); err != nil {
			return f, usageError{errors.Join(err, f.close())}
		}
	}
	return f, nil
}

func (f files) close() (err error) {
	for _, one := range []*os.File{f.json, f.report, f.table, f.picture} {
		if one != nil {
			err = errors.Join(err, one.Close())
		}
	}
	return err
}

// check refuses options that do not fit together, and sets the defaults.
func (o *options) check(picked []contestant) error {
	if o.Quick && (o.Rounds != 0 || len(o.Faults) > 0) {
		return usageError{errors.New("--quick is one round without faults: leave out --rounds and --faults, or --quick")}
	}
	o.Rounds = cmp.Or(o.Rounds, map[bool]int{true: 1, false: 3}[o.Quick])
	if len(o.Faults) == 0 {
		o.Faults = []string{map[bool]string{true: "none", false: "all"}[o.Quick]}
	}
	if o.Rounds < 1 || o.Connections < 1 {
		return usageError{errors.New("rounds and connections are at least 1")}
	}
	for _, name := range o.Faults {
		if name != "all" && name != "none" && !slices.ContainsFunc(picked, func(c contestant) bool { return len(chosen(faultsOf(c), []string{name})) > 0 }) {
			return usageError{fmt.Errorf("no fault is called %q: use all, none, or the beginning of a name, such as \"killed at\", \"stopped at\", \"Redis restarts\" or \"clocks differ\"", name)}
		}
	}
	return nil
}

// pick returns the contestants to run, and the names of those that are left out.
func (o *options) pick(all []contestant) (picked []contestant, left []string, err error) {
	for _, name := range o.Only {
		if !slices.ContainsFunc(all, func(c contestant) bool { return c.name == name }) {
			return nil, nil, usageError{fmt.Errorf("no contestant is called %q: see --list", name)}
		}
	}
	for _, c := range all {
		switch {
		case len(o.Only) > 0 && !slices.Contains(o.Only, c.name):
			left = append(left, c.name+" (not in --only)")
			continue
		case c.kafka && slices.Contains(o.Without, "kafka"):
			left = append(left, c.name+" (without Kafka)")
			continue
		}
		picked = append(picked, c)
	}
	if len(picked) == 0 {
		return nil, nil, usageError{errors.New("nothing is left to run")}
	}
	return picked, left, nil
}

// estimate returns about how long the comparison takes. It is based on a full comparison on 2 cores.
func (o *options) estimate(picked []contestant) (sum time.Duration) {
	const run, quick, faulted = 18 * time.Second, 8 * time.Second, 10 * time.Second
	each := map[bool]time.Duration{true: quick, false: run}[o.Quick]
	for _, c := range picked {
		sum += time.Duration(o.Rounds*len(o.trialsOf(c)))*each + time.Duration(len(chosen(faultsOf(c), o.Faults)))*faulted
	}
	return sum
}

// trialsOf returns the runs without faults of a contestant. firstcome has none with another pool, because it sizes its own.
func (o *options) trialsOf(c contestant) []trial {
	if o.Quick {
		return quickly
	}
	return slices.DeleteFunc(slices.Clone(trials), func(t trial) bool { return c.product && t.pool > 0 })
}

// all makes all runs, one contestant after another, in a new order in each round.
func (r *runner) all(ctx context.Context, out io.Writer, o *options, picked []contestant, rep *report) error {
	random := rand.New(rand.NewPCG(o.Seed, 0)) //nolint:gosec // no secret
	type step struct {
		what string
		make func(ctx context.Context) (*result, error)
	}
	var steps []step
	for round := range o.Rounds {
		order := random.Perm(len(picked))
		for _, n := range order {
			c := picked[n]
			for _, t := range o.trialsOf(c) {
				steps = append(steps, step{c.name + ", " + t.Name, func(ctx context.Context) (*result, error) {
					res, err := r.run(ctx, c, t, start{}, nil)
					if res != nil {
						res.Round = round + 1
					}
					return res, err
				}})
			}
			if round > 0 {
				continue
			}
			for _, f := range chosen(faultsOf(c), o.Faults) {
				steps = append(steps, step{c.name + ", " + f.name, func(ctx context.Context) (*result, error) { return r.fault(ctx, c, f) }})
			}
		}
	}
	began, left := time.Now(), o.estimate(picked)
	for n, step := range steps {
		fmt.Fprintf(out, "%4d of %d, about %v left: %s: ", n+1, len(steps), left.Round(10*time.Second), step.what)
		res, err := step.make(ctx)
		switch {
		case ctx.Err() != nil:
			fmt.Fprintln(out, "interrupted")
			return fmt.Errorf("interrupted after %d of %d runs", n, len(steps))
		case err != nil:
			rep.Failures = append(rep.Failures, step.what+": "+err.Error())
			fmt.Fprintln(out, "did not run:", err)
		default:
			rep.Results = append(rep.Results, res)
			fmt.Fprintln(out, res.line())
		}
		left = time.Duration(float64(time.Since(began)) / float64(n+1) * float64(len(steps)-n-1))
	}
	return nil
}

// fault makes a run with a fault.
func (r *runner) fault(ctx context.Context, c contestant, f fault) (*result, error) {
	if f.ours && r.redis == nil {
		return nil, errors.New("this Redis is the user's own, which is never killed")
	}
	var nothing string
	res, err := r.run(ctx, c, underFault, start{faults: true, ahead: f.ahead}, func(ctx context.Context, now course) error {
		if f.harm == nil {
			return nil
		}
		from := now.tenth
		if f.last {
			from = now.nearlyAll
		}
		var err error
		select {
		case <-from:
			err = f.harm(ctx, r, now.rival)
		case <-now.over:
			err = fmt.Errorf("%w: the load ended before it", errDidNotHappen)
		}
		if errors.Is(err, errDidNotHappen) {
			nothing, err = err.Error(), nil
		}
		return err
	})
	if res != nil {
		res.Fault, res.Nothing = f.name, nothing
	}
	return res, err
}

// show prints the table, and writes the files.
func show(out io.Writer, to files, rep *report, picked []contestant) error {
	writeTable(out, rep, picked)
	if to.json != nil {
		encoder := json.NewEncoder(to.json)
		encoder.SetIndent("", "  ")
		if err := encoder.Encode(rep); err != nil {
			return err
		}
	}
	table := writeMarkdown
	if to.table != nil && strings.HasSuffix(to.table.Name(), ".ko.md") {
		table = writeKoreanMarkdown
	}
	for _, one := range []struct {
		to    *os.File
		write func(io.Writer, *report, []contestant) error
	}{{to.report, writeReport}, {to.table, table}, {to.picture, writePicture}} {
		if one.to == nil {
			continue
		}
		if err := one.write(one.to, rep, picked); err != nil {
			return err
		}
	}
	var wrong []string
	for _, res := range rep.Results {
		if strings.HasPrefix(res.Contestant, "firstcome") && (res.unreported() > 0 || res.Breach != "") {
			wrong = append(wrong, fmt.Sprintf("%s, %s %s: %s", res.Contestant, res.Trial, res.Fault, res.line()))
		}
	}
	wrong = append(wrong, rep.Failures...)
	if len(wrong) > 0 {
		return errors.New(strings.Join(wrong, "\n"))
	}
	return nil
}
