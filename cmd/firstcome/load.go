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
	Server []serverURL `default:"http://127.0.0.1:8080" placeholder:"URL" help:"The server, or several nodes of one fleet with commas between, which are asked in turn (default: http://127.0.0.1:8080). Their API key is read from FIRSTCOME_KEY."`
	outputFlag
	Campaign    string        `required:"" placeholder:"ID" help:"The campaign to claim coupons of."`
	Users       count         `placeholder:"N" help:"How many users claim (default: 10000; with --rate and --duration: as many as these make)."`
	Repeat      count         `default:"1" placeholder:"N" help:"How often each user claims (default: 1)."`
	Concurrency count         `default:"64" placeholder:"N" help:"Connections to each server; so many claims are under way at once (default: 64)."`
	Rate        perSecond     `default:"0" placeholder:"N" help:"Send so many claims a second, whatever the server does; 0 sends the next when the last was answered (default: 0)."`
	Duration    time.Duration `default:"0s" placeholder:"DURATION" help:"Send claims for so long; who is under way then is waited for (default: until all are sent)."`
	Timeout     time.Duration `default:"10s" placeholder:"DURATION" help:"How long to wait for an answer (default: 10s)."`
	Again       uint16        `default:"0" placeholder:"N" help:"How often to ask again where the outcome is unknown (default: 0)."`
	UserPrefix  string        `placeholder:"TEXT" help:"Of the users' ids, before their index (default: one of its own for each run)."`
	Shuffle     bool          `help:"Let users claim in a random order, instead of by their index."`
	Seed        uint64        `default:"1" placeholder:"N" help:"Of the random order (default: 1)."`
	Others      bool          `help:"Others claim during the run: do not expect their coupons to be known."`
	Returned    bool          `help:"Coupons may be voided during the run: allow issues after sold_out."`
	Follow      bool          `help:"Follow the place of everybody who is told to wait, as people do, until they have a coupon or hear why not."`
	FollowFor   time.Duration `default:"0s" placeholder:"DURATION" help:"Follow for so long after the last claim (default: until every place has ended)."`
	Leave       share         `default:"0" placeholder:"SHARE" help:"Share of those in line who leave it, 0 to 1 (default: 0)."`
	CDN         bool          `name:"cdn" help:"Ask for the line once a second for all followers, as through a CDN (default: everybody asks the server)."`
	P99         time.Duration `name:"p99" default:"0s" placeholder:"DURATION" help:"Exit 3 if the 99th percentile of the latency is over this (default: no limit)."`
	Errors      *uint32       `placeholder:"N" help:"Exit 3 if more claims than this end with an unknown outcome (default: no limit)."`
	PaceKept    share         `default:"0" placeholder:"SHARE" help:"Exit 3 if less than this share of the line's pace is issued, 0 to 1, or more than the pace allows (default: no limit)."`
	JSON        string        `name:"json" placeholder:"FILE" help:"Write the result as JSON."`
	Report      string        `placeholder:"FILE" help:"Write the result as one HTML page that opens offline."`
}

// loadUsers is how many users claim, unless a flag says so, or a rate and a duration do.
const loadUsers = 10_000

func (c *loadCmd) Help() string {
	return `Every answer is held against the coupons that the server has in the end, so the key has to be an
operator's or an admin's. Of several nodes the first is asked for them: a fleet has one ledger.

Exit status: 0 every promise and every threshold was kept; 1 a breach, or the answers could not be checked,
or the run was interrupted; 2 a mistake in flags, and nothing was sent; 3 every promise was kept, and a
threshold (--p99, --errors, --pace-kept) was not.

With --follow each user in line looks at the line by a request of their own, at the instants that the server names: that
is the load of people without a CDN. Who is served asks for their claim. So many looks at once as --concurrency
says, beside as many claims; if they begin late, the result says so.`
}

// check returns what cannot be done, before anything is sent.
func (c *loadCmd) check(t terminal) []error {
	var errs []error
	if c.Timeout == 0 {
		errs = append(errs, errors.New("--timeout: no answer comes in 0s"))
	}
	for _, file := range []struct{ flag, name string }{{"--json", c.JSON}, {"--report", c.Report}} {
		if _, err := os.Stat(filepath.Dir(file.name)); err != nil { // of no name it is the directory here
			errs = append(errs, fmt.Errorf("%s: there is no directory for it: %w", file.flag, err))
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
		next := course{done: done, total: total, began: far.Load().began, longest: c.Duration}
		if far.Load().total == 0 {
			next.began = time.Now() // of the load: a server may have taken its time to say what the campaign is
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

// judge returns why the exit status is not 0.
func (c *loadCmd) judge(result *load.Result) error {
	switch {
	case result.OK():
		return nil
	case result.Verdict.OK() && !result.Interrupted:
		return thresholdError{errors.New(result.InAll())}
	}
	return errors.New(result.InAll())
}

func (c *loadCmd) config(t terminal) load.Config {
	config := load.Config{
		Server: string(c.Server[0]), Nodes: texts(c.Server[1:]), Key: t.variable(keyVariable), Campaign: c.Campaign,
		Users: int(c.Users), Repeat: int(c.Repeat), Prefix: c.UserPrefix, Shuffle: c.Shuffle, Seed: c.Seed,
		Concurrency: int(c.Concurrency), Rate: float64(c.Rate), Duration: c.Duration, Timeout: c.Timeout,
		Again: int(c.Again), Returned: c.Returned, Others: c.Others, P99: c.P99, PaceKept: float64(c.PaceKept),
		Follow: c.Follow, FollowFor: c.FollowFor, Leave: float64(c.Leave), CDN: c.CDN, Version: thisBuild().Version,
	}
	if c.Errors != nil {
		most := int64(*c.Errors)
		config.Errors = &most
	}
	if c.Users == 0 && (c.Rate == 0 || c.Duration == 0) {
		config.Users = loadUsers
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
