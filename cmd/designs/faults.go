package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/firstcome/firstcome/internal/point"
)

// A fault is something that goes wrong in a run.
type fault struct {
	name  string
	ahead time.Duration // by how much the second process's clock is ahead
	// harm causes the fault, and ends a fault that does not last. It is nil if the set-up of the run causes the fault.
	harm func(ctx context.Context, r *runner, on *rival) error
	ours bool // the fault needs a server that the comparison started: a user's Redis is never killed
	last bool // the fault comes when nearly all coupons are stored, not when a tenth of the users have an answer
}

const (
	stopped = 5 * time.Second // how long a process is stopped
	away    = 3 * time.Second // how long the database is unreachable
	apart   = 200 * time.Millisecond
	// passes is how long a process may take to pass a fault point: some designs pass one only every ten seconds.
	passes = 30 * time.Second
)

// faultsOf returns the faults of a contestant: two at each of its points, and those of the servers and clocks that it uses.
func faultsOf(c contestant) (all []fault) {
	for _, p := range c.points {
		last := slices.Contains(c.last, p)
		all = append(all, fault{name: "killed at " + string(p), last: last, harm: func(ctx context.Context, r *runner, on *rival) error {
			hit, err := on.strike(ctx, "kill", p)
			if err != nil || hit == nil || c.again == nil {
				return err
			}
			return c.again(ctx, on, hit)
		}}, fault{name: "stopped at " + string(p), last: last, harm: func(ctx context.Context, _ *runner, on *rival) error {
			hit, err := on.strike(ctx, "stop", p)
			if err != nil || hit == nil {
				return err
			}
			wait(ctx, stopped)
			return syscall.Kill(hit.Process.Pid, syscall.SIGCONT)
		}})
	}
	if c.redis {
		all = append(all, fault{name: "Redis restarts", ours: true, harm: func(ctx context.Context, r *runner, _ *rival) error {
			return errors.Join(r.redis.Kill(), r.redis.Restart(ctx))
		}}, fault{name: "a reply of Redis is lost", harm: func(ctx context.Context, r *runner, _ *rival) error {
			defer r.redisLink.Heal()
			select {
			case <-r.redisLink.DropReply(1):
				return nil
			case <-time.After(passes):
				return fmt.Errorf("%w: Redis was not asked within %v", errDidNotHappen, passes)
			case <-ctx.Done():
				return ctx.Err()
			}
		}})
	}
	if c.database {
		all = append(all, fault{name: "the database is away", harm: func(ctx context.Context, r *runner, _ *rival) error {
			r.databaseLink.Cut()
			wait(ctx, away)
			r.databaseLink.Heal()
			return nil
		}})
	}
	if c.clocks {
		all = append(all, fault{name: "clocks differ", ahead: apart})
	}
	return all
}

// chosen returns the faults whose names begin with one of names, or all faults.
func chosen(all []fault, names []string) []fault {
	if slices.Contains(names, "all") {
		return all
	}
	return slices.DeleteFunc(all, func(f fault) bool {
		return !slices.ContainsFunc(names, func(name string) bool { return strings.HasPrefix(f.name, name) })
	})
}

// errDidNotHappen means that the fault did not happen in the run.
var errDidNotHappen = errors.New("did not happen")

// strike plans a fault at a point, and returns the process that passed the point and had the fault.
func (r *rival) strike(ctx context.Context, kind string, at point.Point) (hit *process, err error) {
	dir := r.plans
	plan := filepath.Join(dir, kind+":"+string(at))
	if err := os.WriteFile(plan, nil, 0o600); err != nil {
		return nil, err
	}
	for end := time.Now().Add(passes); ctx.Err() == nil; wait(ctx, every) {
		for _, p := range r.processes {
			if _, err := os.Stat(filepath.Join(dir, fmt.Sprint(p.Process.Pid))); err == nil {
				return p, nil
			}
		}
		if time.Now().After(end) && os.Remove(plan) == nil { // otherwise a process has just taken the plan
			return nil, fmt.Errorf("%w: no process passed %s within %v", errDidNotHappen, at, passes)
		}
	}
	return nil, ctx.Err()
}

// wait waits for a time, or until ctx ends.
func wait(ctx context.Context, d time.Duration) {
	select {
	case <-time.After(d):
	case <-ctx.Done():
	}
}
