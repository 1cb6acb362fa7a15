package main

import (
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
	clocks      bool // a process's clock decides something
	kafka       bool
	product     bool // it is firstcome
	start       func(ctx context.Context, r *runner, s start) (*rival, error)
	again       func(ctx context.Context, on *rival, killed *process) error // starts a process that was killed again; nil: the other one goes on
}

// contestants returns all of them.
func contestants() (all []contestant) {
	for _, c := range designs.Contestants {
		all = append(all, contestant{name: c.Name, about: c.About, points: c.Points, kafka: c.Kafka, clocks: true, start: func(ctx context.Context, r *runner, s start) (*rival, error) {
			return r.startDesign(ctx, c, s)
		}})
	}
	for _, u := range setUps {
		c := contestant{name: u.name, about: u.about, points: u.points, product: true, start: func(ctx context.Context, r *runner, s start) (*rival, error) {
			return r.startFirstcome(ctx, u, s)
		}}
		if u.sqlite {
			c.again = func(ctx context.Context, on *rival, killed *process) error { return on.restart(ctx, killed) }
		}
		all = append(all, c)
	}
	return all
}

// A report is all that a comparison showed.
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
	kafka := slices.ContainsFunc(picked, func(c contestant) bool { return c.kafka })
	if err := missing(*o, kafka); err != nil {
		return err
	}
	faults := !slices.Contains(o.Faults, "none") && !o.Quick
	if o.Quick {
		o.Rounds = 1
	}
	if o.Seed == 0 {
		o.Seed = rand.Uint64() //nolint:gosec // no secret
	}
	fmt.Fprintf(out, "%d contestants, %d rounds%s; about %v. Seed %d.\n", len(picked), o.Rounds, map[bool]string{true: ", one of faults"}[faults],
		o.estimate(picked, faults).Round(time.Minute), o.Seed)
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
	if err := r.all(ctx, out, o, picked, faults, rep); err != nil {
		return err
	}
	rep.Took = time.Since(rep.Started).Seconds()
	return o.show(out, rep, picked)
}

// check refuses what cannot be meant.
func (o *options) check(picked []contestant) error {
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
		if len(o.Only) > 0 && !slices.Contains(o.Only, c.name) || c.kafka && slices.Contains(o.Without, "kafka") {
			left = append(left, c.name)
			continue
		}
		picked = append(picked, c)
	}
	if len(picked) == 0 {
		return nil, nil, usageError{errors.New("nothing is left to run")}
	}
	return picked, left, nil
}

// estimate says about how long it takes: what each run lasts, and a few seconds for its processes.
func (o *options) estimate(picked []contestant, faults bool) (sum time.Duration) {
	const setUp, load, faulted = 3 * time.Second, 8 * time.Second, 20 * time.Second
	for _, c := range picked {
		sum += time.Duration(o.Rounds*len(o.trialsOf(c))) * (setUp + load)
		if faults {
			sum += time.Duration(len(chosen(faultsOf(c), o.Faults))) * (setUp + faulted)
		}
	}
	return sum
}

// trialsOf returns the runs without faults of a contestant. firstcome's pools are its own.
func (o *options) trialsOf(c contestant) []trial {
	if o.Quick {
		return quickly
	}
	return slices.DeleteFunc(slices.Clone(trials), func(t trial) bool { return c.product && t.pool > 0 })
}

// all makes all runs, one contestant after the other in a new order each round.
func (r *runner) all(ctx context.Context, out io.Writer, o *options, picked []contestant, faults bool, rep *report) error {
	random := rand.New(rand.NewPCG(o.Seed, 0)) //nolint:gosec // no secret
	var steps []func(ctx context.Context) (*result, string, error)
	for round := range o.Rounds {
		order := random.Perm(len(picked))
		for _, n := range order {
			c := picked[n]
			for _, t := range o.trialsOf(c) {
				steps = append(steps, func(ctx context.Context) (*result, string, error) {
					res, err := r.run(ctx, c, t, start{}, nil)
					if res != nil {
						res.Round = round + 1
					}
					return res, c.name + ", " + t.Name, err
				})
			}
			if !faults || round > 0 {
				continue
			}
			for _, f := range chosen(faultsOf(c), o.Faults) {
				steps = append(steps, func(ctx context.Context) (*result, string, error) {
					res, err := r.fault(ctx, c, f)
					return res, c.name + ", " + f.name, err
				})
			}
		}
	}
	began := time.Now()
	for n, step := range steps {
		res, what, err := step(ctx)
		if ctx.Err() != nil {
			return fmt.Errorf("interrupted after %d of %d runs", n, len(steps))
		}
		left := time.Duration(float64(time.Since(began)) / float64(n+1) * float64(len(steps)-n-1)).Round(time.Second)
		switch {
		case err != nil:
			rep.Failures = append(rep.Failures, what+": "+err.Error())
			fmt.Fprintf(out, "%4d of %d, %v left: %s: did not run: %v\n", n+1, len(steps), left, what, err)
		default:
			rep.Results = append(rep.Results, res)
			fmt.Fprintf(out, "%4d of %d, %v left: %s: %s\n", n+1, len(steps), left, what, res.line())
		}
	}
	return nil
}

// fault makes a run in which something goes wrong.
func (r *runner) fault(ctx context.Context, c contestant, f fault) (*result, error) {
	if f.ours && r.redis == nil {
		return nil, errors.New("this Redis is yours: it is not killed")
	}
	var note string
	res, err := r.run(ctx, c, underFault, start{faults: true, ahead: f.ahead}, func(ctx context.Context, on *rival, people *crowd) error {
		if f.harm == nil {
			return nil
		}
		for people.answered() < underFault.people/10 && ctx.Err() == nil {
			wait(ctx, every)
		}
		err := f.harm(ctx, r, on)
		if errors.Is(err, errNotPassed) {
			note, err = err.Error(), nil
		}
		return err
	})
	if res != nil {
		res.Fault = f.name
		if note != "" {
			res.Notes = append(res.Notes, note)
		}
	}
	return res, err
}

// show prints the table, and writes the files.
func (o *options) show(out io.Writer, rep *report, picked []contestant) error {
	writeTable(out, rep, picked)
	if o.JSON != "" {
		text, err := json.MarshalIndent(rep, "", "  ")
		if err != nil {
			return err
		}
		if err := os.WriteFile(o.JSON, append(text, '\n'), 0o600); err != nil {
			return err
		}
	}
	if o.Report != "" {
		file, err := os.Create(o.Report)
		if err != nil {
			return err
		}
		if err := errors.Join(writeReport(file, rep, picked), file.Close()); err != nil {
			return err
		}
	}
	var wrong []string
	for _, res := range rep.Results {
		if strings.HasPrefix(res.Contestant, "firstcome") && res.unreported() > 0 {
			wrong = append(wrong, fmt.Sprintf("%s, %s %s: %s", res.Contestant, res.Trial, res.Fault, res.line()))
		}
	}
	wrong = append(wrong, rep.Failures...)
	if len(wrong) > 0 {
		return errors.New(strings.Join(wrong, "\n"))
	}
	return nil
}
