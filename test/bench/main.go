// Command bench measures firstcome against references in the same run, and prints
// a table in Markdown. Each figure is the median of several rounds in which the
// reference and the server take turns; a ratio is the median of the rounds' own
// ratios, because the machine's speed drifts. It loads this machine only.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"runtime"
	"slices"
	"strings"
	"time"
)

func main() {
	only := flag.String("only", "", "measure only rows with one of these names, with commas")
	rounds := flag.Int("rounds", 5, "rounds of each pair")
	claims := flag.Int("claims", 60_000, "claims of a round")
	holders := flag.Int("holders", 1_000_000, "coupons of the large campaign")
	earlier := flag.String("before", "", "another firstcome binary, for the row before, which is measured only if it is named")
	listen := flag.String("listen", "", "be a reference server at this address")
	bare := flag.Bool("bare", false, "be the one that answers what it was told to")
	syncs := flag.String("synced", "", "be that one, behind a queue that syncs a page of each batch to this file")
	locking := flag.String("locking", "", "be the one that decides in transactions of the ledger of this URL")
	script := flag.String("script", "", "be the one that decides by a plain script at the Redis of this URL")
	connections := flag.Int("connections", 64, "connections of that one to the ledger")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	var err error
	switch {
	case *bare:
		err = serveBare(ctx, *listen, nil)
	case *syncs != "":
		err = serveSynced(ctx, *listen, *syncs)
	case *locking != "":
		err = serveLocking(ctx, *listen, *locking, *connections)
	case *script != "":
		err = serveScripting(ctx, *listen, *script)
	default:
		err = run(ctx, &bench{only: *only, rounds: *rounds, claims: *claims, holders: *holders, before: *earlier})
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// run makes the servers and measures every row of the table.
func run(ctx context.Context, b *bench) error {
	dir, err := os.MkdirTemp("", "firstcome-bench-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	b.dir = dir
	if err := b.build(ctx); err != nil {
		return err
	}
	selected := slices.DeleteFunc(slices.Clone(rows), func(r row) bool {
		return b.only != "" && !slices.Contains(strings.Split(b.only, ","), r.name) || b.only == "" && r.name == "before" && b.before == ""
	})
	if len(selected) == 0 {
		return fmt.Errorf("there is no row of the name %s", b.only)
	}
	for _, r := range selected {
		for _, kind := range r.needs {
			if err := kind.Installed(); err != nil {
				return fmt.Errorf("%s: %w", r.name, err)
			}
		}
	}
	sync, err := fsyncTime(dir)
	if err != nil {
		return err
	}
	fmt.Print(busy(loadAverage(), runtime.NumCPU()))
	fmt.Printf("An fdatasync of 64 KiB takes %v here (median of 200).\n\n| what | firstcome | reference | ratio | wanted |\n|---|---|---|---|---|\n", sync.Round(time.Microsecond))
	before, err := processors()
	if err != nil {
		return err
	}
	for _, r := range selected {
		if err := r.run(ctx, b); err != nil {
			return fmt.Errorf("%s: %w", r.name, err)
		}
	}
	after, err := processors()
	if taken := after.takenSince(before); taken != "" {
		fmt.Printf("\nMeanwhile %s away.\n", taken)
	}
	return err
}
