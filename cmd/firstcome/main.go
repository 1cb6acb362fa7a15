// Command firstcome issues coupons first come, first served: a server, its
// client, its load generator and its audit in one binary.
//
// Each subcommand has a file. parse.go reads flags and environment, wire.go puts
// a server together.
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

// The exit statuses. They do not change between releases.
const (
	exitOK     = 0
	exitFailed = 1 // a breach, a refusal, or a failure
	exitUsage  = 2 // a mistake in flags, environment or configuration: nothing was done
	exitMissed = 3 // every promise was kept, but a threshold of firstcome load was not
)

func main() {
	ctx, stop := untilSignal()
	defer stop()
	os.Exit(run(ctx, os.Args[1:], terminal{in: os.Stdin, out: os.Stdout, err: os.Stderr, env: os.Environ()}))
}

// untilSignal returns a context that the first SIGINT, SIGTERM or SIGHUP ends. The second SIGINT or SIGTERM ends the process. SIGHUP does not count
// for that: a terminal that is closed may send it twice, and systemd sends it together with SIGTERM. nohup has SIGHUP ignored, and then it stays so.
func untilSignal() (context.Context, func()) {
	ctx, cancel := context.WithCancel(context.Background())
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	hangUp := make(chan os.Signal, 1)
	if !signal.Ignored(syscall.SIGHUP) {
		signal.Notify(hangUp, syscall.SIGHUP)
	}
	go func() {
		select {
		case <-signals:
		case <-hangUp:
			cancel()
			<-signals
		}
		cancel()
		<-signals
		say(func() { fmt.Fprintln(os.Stderr, "firstcome: a second signal: exit at once") })
		os.Exit(exitFailed)
	}()
	return ctx, cancel
}

// A usageError means that the caller made a mistake and nothing was done.
type usageError struct{ error }

func (e usageError) Unwrap() error { return e.error }

// A thresholdError means that a threshold was not kept, while all promises were.
type thresholdError struct{ error }

// run runs one command and returns the exit status.
func run(ctx context.Context, args []string, t terminal) int {
	t.out = visible{t.out}
	err := obey(ctx, args, t)
	if err == nil {
		return exitOK
	}
	say(func() { report(t.err, err, secretsIn(t.env)) })
	if usage := (usageError{}); errors.As(err, &usage) {
		return exitUsage
	}
	if missed := (thresholdError{}); errors.As(err, &missed) {
		return exitMissed
	}
	return exitFailed
}

// say writes the last words of a process, whose reader may be gone.
func say(write func()) {
	written := make(chan struct{})
	go func() {
		defer close(written)
		write()
	}()
	await(written)
}

// obey runs one command.
func obey(ctx context.Context, args []string, t terminal) error {
	if len(args) > 0 && args[0] == completing {
		return complete(t, args[1:])
	}
	var grammar cli
	parsed, err := parse(&grammar, args, t)
	if err != nil || parsed == nil {
		return err
	}
	parsed.BindTo(ctx, (*context.Context)(nil))
	return parsed.Run(t)
}

// report prints an error, each of joined errors on a line of its own, without secrets.
func report(w io.Writer, err error, secrets []string) {
	all := flatten(err)
	if len(all) == 1 {
		fmt.Fprintln(w, "firstcome:", spelled(mask(all[0].Error(), secrets)))
		return
	}
	fmt.Fprintf(w, "firstcome: %d mistakes:\n", len(all))
	for _, e := range all {
		fmt.Fprintln(w, "  "+spelled(mask(e.Error(), secrets)))
	}
}

// flatten returns the errors that a usageError joins, or the error itself.
func flatten(err error) []error {
	usage, ok := err.(usageError)
	if !ok {
		return []error{err}
	}
	joined, ok := usage.error.(interface{ Unwrap() []error })
	if !ok {
		return []error{usage.error}
	}
	var all []error
	for _, e := range joined.Unwrap() {
		all = append(all, flatten(usageError{e})...)
	}
	return all
}

// vars has the variables in the grammar's help texts.
func vars() kong.Vars { return kong.Vars{"ledger": "sqlite:firstcome.db", "server": defaultServer} }
