// Package load generates claims at a configured load, measures the server's answers, and compares every answer with the coupons that the server has
// at the end.
//
// # Two loops
//
// The closed loop has a number of workers, each of which sends its next claim when its last was answered. It finds the capacity of a server, but
// hides how long people wait, because a server that stalls gets no claims during the stall. The open loop sends claims at fixed times, whatever the
// server does, and counts a claim's latency from the time at which it should have been sent. So a stall shows in every claim that falls into it.
//
// # People in line
//
// In a paced campaign, users who are told to wait may follow their place, as people do: see crowd. A follower's time in line begins with their claim.
// The places that users were told are compared with how they ended: package audit has the rules, under P9. Each answer's rank and prize are compared with the server's, under P10.
//
// # The cost of a claim
//
// The generator often shares its machine with the server. So each worker has its own request and list of records, and shares only connections and a
// counter; figures are computed afterwards.
package load

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/client"
	"github.com/firstcome/firstcome/internal/audit"
)

// A Options is the configuration of a run. All fields but Server, Campaign and Users have defaults.
type Options struct {
	Server   string   // URL, like http://127.0.0.1:8080
	Nodes    []string // URLs of other nodes of the same fleet: each worker uses Server and these in turn
	Key      string   // API key; empty for a server in development mode
	Campaign string

	Users   int    // how many users claim; 0 means Rate times Duration
	Repeat  int    // how often each user claims; default 1
	Prefix  string // of the users' ids, before their index from 0; the default is unique for each run
	Shuffle bool   // users claim in a random order by Seed, instead of by their index
	Seed    uint64 // of Shuffle, and of the positions of repeats

	Concurrency int     // workers, each with one connection; default 64
	Rate        float64 // claims a second in the open loop; 0 means the closed loop
	// Due, if set, returns when the claim with an index is sent, since the start. Then Rate is only shown.
	Due      func(n int64) time.Duration
	Duration time.Duration // no claim is due later than this, and none is sent much later; 0 means until all are sent
	Timeout  time.Duration // of one claim; default 10 s
	Again    int           // how often a claim with an unknown outcome is repeated; default 0

	Follow bool    // users who are told to wait follow their place: see crowd
	Leave  float64 // the share of users in line who leave it at one of their first three looks
	CDN    bool    // one look a second stands for all followers

	P99    time.Duration // the limit of the latency's 99th percentile; 0 means none
	Errors *int64        // the most claims that may end with an unknown outcome; nil means any number

	PaceKept float64 // the least share of the pace that must be issued; 0 means any

	Version string // of this program, for the result

	Others bool // other clients claim during the run: see audit.History

	// Progress, if not nil, is called ten times a second from one goroutine.
	Progress func(done, total int64)
}

// Limits of an Options: above them the generator would measure itself.
const (
	maxConcurrency = 10_000
	maxClaims      = 50_000_000
)

// recording is how long the server may take after the run to record all issued coupons.
const recording = 30 * time.Second

// Run sends claims, measures, and compares. An error means that there is no result. If ctx ends, no more claims are sent, and the result covers those
// that were sent.
func Run(ctx context.Context, c Options) (*Result, error) {
	c, err := c.withDefaults()
	if err != nil {
		return nil, err
	}
	fleet, err := newFleet(c)
	if err != nil {
		return nil, err
	}
	defer fleet.close()
	reader := client.New(c.Server, c.Key)
	defer reader.CloseIdle()
	asked := time.Now()
	before, err := reader.Campaign(ctx, c.Campaign)
	if err != nil {
		return nil, fmt.Errorf("read the campaign %s: %w", c.Campaign, err)
	}
	// The server read its clock about half-way through the request.
	ahead := before.ServerTime.Sub(asked.Add(time.Since(asked) / 2))
	result := c.drive(ctx, fleet, before, ahead)
	// A run that was interrupted still has a result.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*recording)
	defer cancel()
	result.Campaign = Campaign{ID: before.ID, Name: before.Name, Quantity: before.Quantity, Issued: before.Issued}
	result.Generator = ThisMachine(c.Version)
	result.Server = serverFigures(ctx, c, reader)
	result.Verdict = verdict(ctx, c, reader, before, audit.History{Claims: result.history, Followed: result.places})
	return result, nil
}

// drive sends the users' claims, and follows their places if configured. ahead is by how much the server's clock is ahead.
func (c Options) drive(ctx context.Context, f *fleet, before client.Campaign, ahead time.Duration) *Result {
	if !c.Follow {
		return Drive(ctx, c, f.worker)
	}
	crowd := newCrowd(c, f)
	report := c.Progress
	if report != nil {
		c.Progress = func(sent, total int64) { report(max(0, sent-crowd.waiting()), total) }
	}
	result := Drive(ctx, c, func() Ask { return crowd.worker(f.worker()) })
	all := crowd.watch(ctx, report, int64(c.Users)*int64(c.Repeat))
	result.Interrupted = result.Interrupted || ctx.Err() != nil && crowd.waiting() > 0
	result.follow(c, crowd, all, before, ahead)
	result.Thresholds, result.Warnings = thresholds(c, result), warnings(result)
	return result
}

// withDefaults returns the complete configuration, or its mistakes.
func (c Options) withDefaults() (Options, error) {
	if c.Users == 0 && c.Rate > 0 && c.Duration > 0 {
		c.Users = int(c.Rate*c.Duration.Seconds() + 0.5)
	}
	c.Concurrency, c.Repeat, c.Timeout = cmp.Or(c.Concurrency, 64), cmp.Or(c.Repeat, 1), cmp.Or(c.Timeout, 10*time.Second)
	c.Prefix = cmp.Or(c.Prefix, "load-"+strconv.FormatInt(time.Now().UnixMilli(), 36)+"-")
	return c, c.check()
}

// Check returns all mistakes of the configuration that Run would refuse, joined, or nil.
func (c Options) Check() error {
	_, err := c.withDefaults()
	return err
}

func (c Options) check() error {
	var errs []error
	refuse := func(wrong bool, text string, args ...any) {
		if wrong {
			errs = append(errs, fmt.Errorf(text, args...))
		}
	}
	refuse(c.Users < 1, "users must be at least 1")
	refuse(c.Repeat < 1, "repeat must be at least 1")
	refuse(c.Users > 0 && c.Repeat > maxClaims/c.Users, "users times repeat must be at most %d", maxClaims)
	refuse(c.Concurrency < 1 || c.Concurrency > maxConcurrency, "concurrency must be 1 to %d", maxConcurrency)
	refuse(c.Rate < 0, "rate must not be negative")
	refuse(c.Duration < 0 || c.Timeout < 0 || c.Again < 0, "duration, timeout and again must not be negative")
	refuse(c.Leave < 0 || c.Leave > 1, "the share of those who leave is 0 to 1")
	refuse(c.Leave > 0 && c.Repeat > 1, "who leaves and claims again is at the end of the line: use leave without repeat")
	refuse(c.PaceKept < 0 || c.PaceKept > 1, "the share of the pace that is to be kept is 0 to 1")
	refuse(!c.Follow && (c.Leave != 0 || c.CDN || c.PaceKept != 0), "without follow nobody is in line: leave, cdn and pace kept need it")
	refuse(c.P99 < 0 || c.Errors != nil && *c.Errors < 0, "p99 and errors must not be negative")
	refuse(c.Timeout > longest, "timeout must be at most %v", longest)
	if _, err := firstcome.ParseCampaignID(c.Campaign); err != nil {
		errs = append(errs, fmt.Errorf("campaign: %w", err))
	}
	if _, err := firstcome.ParseUserID(userID(c.Prefix, max(c.Users-1, 0))); err != nil {
		errs = append(errs, fmt.Errorf("prefix: %w", err))
	}
	return errors.Join(errs...)
}

// userID returns the id of the user with an index.
func userID(prefix string, index int) string { return prefix + strconv.Itoa(index) }
