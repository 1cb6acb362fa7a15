package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync/atomic"
	"time"

	"github.com/firstcome/firstcome/internal/load"
)

type loadCmd struct {
	Server []serverURL `default:"http://127.0.0.1:8080" placeholder:"URL" help:"The server, or several nodes of one fleet, separated by commas, which get claims in turn (default: http://127.0.0.1:8080). Their API key is read from FIRSTCOME_KEY."`
	outputFlag
	Campaign    string        `required:"" placeholder:"ID" help:"The campaign to claim coupons of."`
	Users       count         `default:"10000" placeholder:"N" help:"How many users claim, in a random order (default: 10000)."`
	Repeat      count         `default:"1" placeholder:"N" help:"How often each user claims (default: 1)."`
	Concurrency count         `default:"64" placeholder:"N" help:"How many claims are in flight at once, and connections to each server (default: 64)."`
	Rate        perSecond     `default:"0" placeholder:"N" help:"Send N claims a second, however slowly the server answers. With 0, each connection sends its next claim after the last answer (default: 0)."`
	Timeout     time.Duration `default:"10s" placeholder:"DURATION" help:"How long to wait for an answer (default: 10s)."`
	Others      bool          `help:"Other clients also claim during the run: accept coupons that this run did not get."`
	Follow      bool          `help:"Follow the place of each user in line, as users do, until the user has a coupon or a refusal."`
	Leave       share         `default:"0" placeholder:"SHARE" help:"Share of the users in line who leave it, 0 to 1 (default: 0)."`
	CDN         bool          `name:"cdn" help:"Read the line once a second for all followers, as through a CDN (default: each follower asks the server)."`
	P99         time.Duration `name:"p99" default:"0s" placeholder:"DURATION" help:"Exit 3 if the 99th percentile of the latency is over this (default: no limit)."`
	Errors      *uint32       `placeholder:"N" help:"Exit 3 if more claims than this end with an unknown outcome (default: no limit)."`
	PaceKept    share         `default:"0" placeholder:"SHARE" help:"Exit 3 if less than this share of the line's pace is issued, 0 to 1, or more than the pace allows (default: no limit)."`
	JSON        string        `name:"json" placeholder:"FILE" help:"Write the result to FILE as JSON."`
	Report      string        `placeholder:"FILE" help:"Write the result to FILE as one HTML page that opens offline."`
}

func (c *loadCmd) Help() string {
	return `load checks every answer, also its rank and prize, against the coupons that the server has in the end, so the key must
have the role operator or admin. With several nodes, load gets the coupons from the first one: a fleet has one ledger.

Exit status: 0 every promise and every threshold was kept; 1 a breach, or the answers could not be checked,
or the run was interrupted; 2 a mistake in flags, and nothing was sent; 3 every promise was kept, but a
threshold (--p99, --errors, --pace-kept) was not.

With --follow, a request for each user in line reads the line at the times that the server names: this is the load of
users without a CDN. Once a user is served, a request gets the claim. At most --concurrency such requests are in flight
at once, besides as many claims. If the requests start late, the result says so.`
}

// check returns the mistakes in the flags, before anything is sent.
func (c *loadCmd) check(t terminal) []error {
	var errs []error
	if c.Timeout == 0 {
		errs = append(errs, errors.New("--timeout: no answer comes in 0s"))
	}
	for _, file := range []struct{ flag, name string }{{"--json", c.JSON}, {"--report", c.Report}} {
		if _, err := os.Stat(filepath.Dir(file.name)); err != nil { // without a name, this is the working directory
			errs = append(errs, fmt.Errorf("%s: cannot find the directory of the file: %w", file.flag, err))
		}
	}
	if err := c.config(t).Check(); err != nil {
		errs = append(errs, err)
	}
	return errs
}

func (c *loadCmd) Run(ctx context.Context, t terminal) error {
	config := c.config(t)
	var far atomic.Pointer[course]
	far.Store(&course{began: time.Now()})
	config.Progress = func(done, total int64) {
		next := course{done: done, total: total, began: far.Load().began}
		if far.Load().total == 0 {
			next.began = time.Now() // when the load began: before, the server may have been slow to return the campaign
		}
		far.Store(&next)
	}
	stopProgress := showProgress(ctx, t, "load: claims", func() course { return *far.Load() })
	result, err := load.Run(ctx, config)
	stopProgress()
	if err != nil {
		return explain(err)
	}
	if err := c.write(t, result); err != nil {
		return err
	}
	return c.judge(result)
}

// judge returns nil for the exit status 0, and otherwise the error that determines the exit status.
func (c *loadCmd) judge(result *load.Result) error {
	switch {
	case result.OK():
		return nil
	case result.Verdict.OK() && !result.Interrupted:
		return thresholdError{errors.New(result.InAll())}
	}
	return errors.New(result.InAll())
}

func (c *loadCmd) config(t terminal) load.Options {
	config := load.Options{
		Server: string(c.Server[0]), Nodes: texts(c.Server[1:]), Key: t.variable(keyVariable), Campaign: c.Campaign,
		// The ids of a real crowd are scattered, too: each claim then touches another page of the index of users.
		Users: int(c.Users), Repeat: int(c.Repeat), Shuffle: true, Seed: 1,
		Concurrency: int(c.Concurrency), Rate: float64(c.Rate), Timeout: c.Timeout,
		Others: c.Others, P99: c.P99, PaceKept: float64(c.PaceKept),
		Follow: c.Follow, Leave: float64(c.Leave), CDN: c.CDN, Version: thisBuild().Version,
	}
	if c.Errors != nil {
		most := int64(*c.Errors)
		config.Errors = &most
	}
	return config
}

func (c *loadCmd) write(t terminal, result *load.Result) error {
	table := result.WriteTable
	if c.json() {
		table = result.WriteJSON
	}
	errs := []error{table(t.out)}
	if c.JSON != "" {
		errs = append(errs, writeFile(c.JSON, result.WriteJSON))
	}
	if c.Report != "" {
		errs = append(errs, writeFile(c.Report, result.WriteReport))
	}
	return errors.Join(errs...)
}

func writeFile(name string, write func(io.Writer) error) error {
	f, err := os.Create(name)
	if err != nil {
		return fmt.Errorf("write the result: %w", err)
	}
	if err := errors.Join(write(f), f.Close()); err != nil {
		return fmt.Errorf("write the result to %s: %w", name, err)
	}
	return nil
}
