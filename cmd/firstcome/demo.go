package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"sync/atomic"
	"time"

	"github.com/dustin/go-humanize"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/client"
	"github.com/firstcome/firstcome/internal/audit"
	"github.com/firstcome/firstcome/internal/ledger"
	"github.com/firstcome/firstcome/internal/load"
)

type demoCmd struct {
	Users   count      `default:"10000" placeholder:"N" help:"How many users claim (default: 10000)."`
	Coupons count      `default:"5000" placeholder:"N" help:"How many coupons there are (default: 5000). With --prizes, each user gets one."`
	Prizes  bool       `help:"Give the first 100 users a drink, the next 900 users 20 % off, and all others free shipping. Afterwards, show who got what."`
	Pace    paceOrNone `placeholder:"N" help:"Let the users wait in line, and issue N coupons a second to the line; or unlimited, as fast as the gate decides (default: no line)."`
	Watch   bool       `help:"First print a link to the console. Once a browser has opened the link, the users claim in a wave of 40 s, slow enough to watch (with --pace: all at once, into the line). Afterwards, the server and its console keep running until Ctrl-C."`
}

// demoCampaign is the id of the campaign that demo creates.
const demoCampaign = "demo"

// demoAnswerWait gives a slow disk time to finish. A demo has no latency objective.
const demoAnswerWait = 30 * time.Second

// Run starts a whole server on a temporary ledger, lets users claim over HTTP, and checks the answers and the ledger against the promises.
func (c *demoCmd) Run(ctx context.Context, t terminal) (err error) {
	dir, err := os.MkdirTemp("", "firstcome-demo-")
	if err != nil {
		return fmt.Errorf("create a directory for the ledger: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	n, err := newNode(ctx, demoServe(filepath.Join(dir, "demo.db")), slog.New(slog.DiscardHandler),
		func(context.Context, *ledger.Ledger) (bool, error) { return true, nil })
	if err != nil {
		return err
	}
	serving, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	ended := make(chan error, 1)
	go func() { ended <- n.run(serving) }()
	err = c.show(ctx, t, n)
	if err == nil && c.Watch {
		err = keep(ctx, t, n, ended)
	}
	stop()
	return errors.Join(err, <-ended)
}

// demoServe returns the serve command for the demo's ledger at path.
func demoServe(path string) *serveCmd {
	c := &serveCmd{Listen: "127.0.0.1:0", Ops: opsOff, AnswerWait: demoAnswerWait, ShutdownGrace: demoAnswerWait}
	c.Ledger = ledgerName("sqlite:" + path)
	return c
}

// show lets the users claim, audits the result, and prints everything on one screen.
func (c *demoCmd) show(ctx context.Context, t terminal, n *node) error {
	what := fmt.Sprintf("%d coupons", c.Coupons)
	terms := firstcome.Terms{Name: fmt.Sprintf("The first %s get one", humanize.Comma(int64(c.Coupons))), Quantity: int64(c.Coupons), Answer: firstcome.Recorded, Benefit: []byte(`{"percent_off":10}`)}
	if c.Prizes {
		what = "a coupon each (the first 100: a drink, the next 900: 20 % off, all others: free shipping)"
		terms.Name, terms.Quantity, terms.Benefit, terms.Prizes = "The first 100 get a drink", firstcome.Unlimited, nil, demoPrizes
	}
	fmt.Fprintf(t.out, "%d users claim %s at http://%s. Every coupon is fsynced in SQLite before its answer.\n\n", c.Users, what, n.address())
	if c.paced() {
		var pace client.Pace
		if err := json.Unmarshal([]byte(c.Pace), &pace); err != nil {
			return fmt.Errorf("the pace: %w", err)
		}
		terms.Pace = &firstcome.Pace{}
		if pace.PerSecond != nil {
			terms.Pace.PerSecond = *pace.PerSecond
		}
	}
	if _, err := n.operator.Create(ctx, "demo", demoCampaign, terms); err != nil {
		return err
	}
	if c.Watch {
		if err := invite(ctx, t, n); err != nil {
			return err
		}
	}
	result, err := c.load(ctx, t, n)
	if err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		return errInterrupted
	}
	text, err := os.ReadFile(secretBeside(n.flags.Ledger.path()))
	if err != nil {
		return err
	}
	secret, err := parseSecret(text)
	if err != nil {
		return err
	}
	report, err := audit.Ledger(ctx, n.ledger.Tables().Source(), demoCampaign, &secret, nil)
	if err != nil {
		return err
	}
	c.print(t, result, report)
	if c.Prizes {
		err = showPrizes(ctx, t, "http://"+n.address(), result.Verdict.OK())
	}
	if !result.Verdict.OK() || report.Breaches.Total > 0 {
		return errBreach
	}
	return err
}

func (c *demoCmd) load(ctx context.Context, t terminal, n *node) (*load.Result, error) {
	var sent atomic.Int64
	server := "http://" + n.address()
	if c.paced() {
		defer showLine(ctx, t, server, c.coupons())()
	} else {
		defer showProgress(ctx, t, "claims", func() course { return course{done: sent.Load(), total: int64(c.Users)} })()
	}
	return load.Run(ctx, load.Options{
		Server: server, Campaign: demoCampaign, Prefix: "user-", Follow: c.paced(),
		Users: int(c.Users), Timeout: 2 * demoAnswerWait, Rate: c.rate(), Due: c.wave(),
		Progress: func(done, _ int64) { sent.Store(done) },
	})
}

// coupons returns how many coupons the users can get.
func (c *demoCmd) coupons() int64 {
	if c.Prizes {
		return int64(c.Users)
	}
	return int64(c.Coupons)
}

// paced reports whether the users wait in line.
func (c *demoCmd) paced() bool { return c.Pace != "" && c.Pace != "null" }

func (c *demoCmd) print(t terminal, r *load.Result, report audit.Report) {
	soldOut := r.Outcomes["sold_out"]
	rest := r.Claims - r.Outcomes["issued"] - soldOut
	if r.Line != nil {
		rest -= r.Line.Ends["issued"] + r.Line.Ends["sold_out"]
		soldOut += r.Line.Ends["sold_out"]
	}
	w := t.out
	fmt.Fprintf(w, "%s.\n\n", r.Headline())
	outcomeRow(w, "issued", r.Coupons())
	outcomeRow(w, "sold out", soldOut)
	outcomeRow(w, "refused or unknown", rest)
	fmt.Fprintf(w, "%20s  %.0f claims a second, %d claims in %.2f s\n", "throughput", r.PerSecond, r.Claims, r.Seconds)
	fmt.Fprintf(w, "%20s  p50 %.1f  p95 %.1f  p99 %.1f  max %.1f ms\n\n", "latency", r.Latency.P50, r.Latency.P95, r.Latency.P99, r.Latency.Max)
	printLine(w, r.Line)
	fmt.Fprintf(w, "The ledger has %d coupons, %d in force, %d facts.\n", report.Coupons, report.InForce, report.Facts)
	fmt.Fprintf(w, "Audit of the ledger: %d breaches. Audit of %d answers: %s.\n", report.Breaches.Total, r.Claims, verdictWords(r.Verdict))
	printBreaches(t, report.Breaches)
	printBreaches(t, r.Verdict.Breaches)
}

func outcomeRow(w io.Writer, what string, n int64) { fmt.Fprintf(w, "%20s  %d\n", what, n) }

func verdictWords(v load.Verdict) string {
	if !v.Checked {
		return "not possible, " + v.Why
	}
	return fmt.Sprintf("%d breaches", v.Breaches.Total)
}

// keep keeps the server running until ctx ends.
func keep(ctx context.Context, t terminal, n *node, ended chan error) error {
	base := "http://" + n.address()
	fmt.Fprintf(t.out, `
The console is at %s until Ctrl-C: see what happened, verify it, or manage the campaign.
The server is at %s. Try:
  curl %s/v1/campaigns/%s
  curl -X POST -H 'Content-Type: application/json' -d '{"user_id":"user-1"}' %s/v1/campaigns/%s/claims
  curl %s/v1/users/user-1/coupons
`, demoLink(n), base, base, demoCampaign, base, demoCampaign, base)
	select {
	case <-ctx.Done():
		return nil
	case err := <-ended:
		ended <- nil // Run waits for it, too
		return err
	}
}
