package main

import (
	"context"
	"log/slog"
	"path/filepath"
	"testing"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/ledger"
	"github.com/firstcome/firstcome/test/stage"
)

// TestANodeCountsTheCouponsThatItIssuesToALine serves a line. The counts are in the node's row, which every node's page Health shows.
func TestANodeCountsTheCouponsThatItIssuesToALine(t *testing.T) {
	c := demoServe(filepath.Join(t.TempDir(), "firstcome.db"))
	n, err := newNode(t.Context(), c, slog.New(slog.DiscardHandler), func(context.Context, *ledger.Ledger) (bool, error) { return true, nil })
	stage.Must(t, err)
	stage.Run(t, n.run)
	terms := firstcome.Terms{Name: "spring", Quantity: 3, Answer: firstcome.Recorded, Pace: &firstcome.Pace{}}
	stage.Must(t, stage.Err(n.operator.Create(t.Context(), "a test", "spring", terms)))
	decision, err := n.issuer.Claim(t.Context(), "spring", "mina")
	stage.Must(t, err)
	if decision.Outcome != firstcome.Waiting {
		t.Fatalf("a claim is answered %v", decision.Outcome)
	}
	stage.Await(t, "that the coupon of the line is counted", uint64(1), func() uint64 { return n.counter.Counts()["spring"].Served })
}
