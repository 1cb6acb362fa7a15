// Command designs puts designs of a first-come-first-served coupon side by side, firstcome among them: one load, one database, one Redis, one verdict.
// docs/designs.md has what came out, and what each design is.
//
//	go run ./cmd/designs --quick
//	go run ./cmd/designs --only zset-rank,lua-list --faults none
//
// A file holds one thing: hosts.go the servers, rival.go a contestant's processes, crowd.go the people, run.go one run, faults.go what goes wrong in
// one, plan.go what runs when, table.go, picture.go and report.go what is shown.
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
	Only        []string `placeholder:"NAME,…" help:"These contestants alone."`
	Without     []string `placeholder:"kafka" enum:"kafka" help:"Leave out the contestants that need this server."`
	Rounds      int      `placeholder:"N" help:"How often each run is made; figures are medians (default: 3)."`
	Faults      []string `placeholder:"NAME,…" help:"Which faults: all, none, or names of them (default: all)."`
	Connections int      `default:"32" help:"Connections of each process to the database (default: 32)."`
	Redis       string   `placeholder:"URL" help:"Your Redis or Valkey: an empty database of it. Default: one is started."`
	Database    string   `placeholder:"URL" help:"Your MySQL, MariaDB or PostgreSQL: an empty database. Default: a MariaDB is started."`
	Kafka       string   `placeholder:"HOST:PORT" help:"Your Kafka. Default: one is started."`
	JSON        string   `name:"json" placeholder:"FILE" help:"Write all results."`
	Report      string   `placeholder:"FILE" help:"Write a report, one HTML file that needs no network."`
	Table       string   `placeholder:"FILE" help:"Write the table, as Markdown."`
	Picture     string   `placeholder:"FILE" help:"Write a picture of who stores how many winners a second, as SVG."`
	From        string   `placeholder:"FILE" help:"Make no runs: show the results that --json wrote."`
	Seed        uint64   `help:"Decides the order of the contestants and of the people (default: chosen at random)."`
	List        bool     `help:"Name the contestants, and end."`
}

// grammar is the whole command line. serve runs one process of a contestant; the comparison starts it.
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

// A usageError is a mistake of the caller: nothing was run.
type usageError struct{ error }

func run(ctx context.Context, args []string, out, problems io.Writer) int {
	var g grammar
	left := false
	parser, err := kong.New(&g, kong.Name("designs"), kong.Writers(out, problems), kong.Exit(func(int) { left = true }),
		kong.Description("Puts designs of a first-come-first-served coupon side by side."))
	if err != nil {
		panic(err) // of the grammar itself
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
