// Command designs compares designs of a first-come-first-served coupon, and firstcome: one load, one database, one Redis, one verdict. docs/designs.md
// describes the designs and has the results.
//
//	go run ./cmd/designs --quick
//	go run ./cmd/designs --only zset-rank,lua-list --faults none
//
// Each file has one subject: hosts.go the servers, rival.go a contestant's processes, crowd.go the users, run.go one run, faults.go the faults in a run,
// plan.go the order of the runs, table.go, picture.go and report.go the output.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/alecthomas/kong"
)

// The exit statuses.
const (
	exitOK    = 0
	exitWrong = 1 // a contestant did not run, or firstcome gave a wrong answer
	exitUsage = 2
)

// options are the command line of a comparison.
type options struct {
	Quick       bool     `help:"One round, small sizes, no faults: a few minutes."`
	Only        []string `placeholder:"NAME,…" help:"Run only these contestants."`
	Without     []string `placeholder:"kafka" enum:"kafka" help:"Leave out the contestants that need this server."`
	Rounds      int      `placeholder:"N" help:"How often to make each run. Figures are medians over the rounds (default: 3)."`
	Faults      []string `placeholder:"NAME,…" help:"Which faults to cause: all, none, or the beginnings of their names (default: all)."`
	Connections int      `default:"32" help:"Connections of each process to the database (default: 32)."`
	Redis       string   `placeholder:"URL" help:"An empty database of your Redis or Valkey (default: a Redis is started)."`
	Database    string   `placeholder:"URL" help:"An empty database of your MySQL, MariaDB or PostgreSQL (default: a MariaDB is started)."`
	Kafka       string   `placeholder:"HOST:PORT" help:"Your Kafka (default: a Kafka is started, if a contestant needs it)."`
	JSON        string   `name:"json" placeholder:"FILE" help:"Write all results as JSON."`
	Report      string   `placeholder:"FILE" help:"Write a report, one HTML file that needs no network."`
	Table       string   `placeholder:"FILE" help:"Write the table, as Markdown; in Korean if the name ends in .ko.md."`
	Picture     string   `placeholder:"FILE" help:"Write a picture of how many winners a second each contestant stores, as SVG."`
	From        string   `placeholder:"FILE" help:"Make no runs, and show the results in a file that --json wrote."`
	Seed        uint64   `help:"Seed for the order of the contestants and of the users (default: random)."`
	List        bool     `help:"List the contestants, and make no runs."`
}

// grammar is the whole command line. The comparison starts serve for each process of a design.
type grammar struct {
	Compare compare `cmd:"" default:"withargs"`
	Serve   serve   `cmd:"" hidden:""`
}

type compare struct{ options }

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	os.Exit(run(ctx, os.Args[1:], os.Stdout, os.Stderr))
}

// A usageError means that the caller made a mistake and nothing was run.
type usageError struct{ error }

func run(ctx context.Context, args []string, out, problems io.Writer) int {
	var g grammar
	left := false
	parser, err := kong.New(&g, kong.Name("designs"), kong.Writers(out, problems), kong.Exit(func(int) { left = true }),
		kong.Description("Compares designs of a first-come-first-served coupon."))
	if err != nil {
		panic(err) // the grammar itself is wrong
	}
	parsed, err := parser.Parse(args)
	switch {
	case left:
		return exitOK
	case err != nil:
		err = usageError{err}
	case parsed.Command() == "serve <name>":
		err = g.Serve.run(ctx)
	default:
		err = g.Compare.run(ctx, out)
	}
	if err == nil {
		return exitOK
	}
	fmt.Fprintln(problems, "designs:", err)
	if usage := (usageError{}); errors.As(err, &usage) {
		return exitUsage
	}
	return exitWrong
}
