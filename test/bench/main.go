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
	"strings"
	"time"
)

func main() {
	only := flag.String("only", "", "measure only rows whose name contains this (fleet, which needs database servers, is measured only so)")
	rounds := flag.Int("rounds", 5, "rounds of each pair")
	claims := flag.Int("claims", 60_000, "claims of a round")
	holders := flag.Int("holders", 1_000_000, "coupons of the large campaign")
	bare := flag.String("bare", "", "be the reference server at this address")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	var err error
	if *bare != "" {
		err = serveBare(ctx, *bare)
	} else {
		err = run(ctx, &bench{only: *only, rounds: *rounds, claims: *claims, holders: *holders})
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
	sync, err := fsyncTime(dir)
	if err != nil {
		return err
	}
	fmt.Printf("An fdatasync of 64 KiB takes %v here (median of 200).\n\n| what | firstcome | reference | ratio | wanted |\n|---|---|---|---|---|\n", sync.Round(time.Microsecond))
	for _, r := range rows {
		if !strings.Contains(r.name, b.only) || r.long && b.only == "" {
			continue
		}
		if err := r.measure(ctx, b); err != nil {
			return fmt.Errorf("%s: %w", r.name, err)
		}
	}
	return nil
}
