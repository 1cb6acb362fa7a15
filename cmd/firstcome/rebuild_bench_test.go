package main

import (
	"fmt"
	"log/slog"
	"testing"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/flow"
	"github.com/firstcome/firstcome/internal/ledger"
	"github.com/firstcome/firstcome/internal/redis"
	"github.com/firstcome/firstcome/test/services"
	"github.com/firstcome/firstcome/test/stage"
)

// BenchmarkRebuild rebuilds the gate of a campaign with a million holders, and of one with a million people in line. Say how often:
// -benchtime 3x.
func BenchmarkRebuild(b *testing.B) {
	const million = 1_000_000
	for kind, of := range services.Ledgers {
		b.Run(fmt.Sprintf("%s/holders=%d", kind, million), func(b *testing.B) {
			l, g := newStall(b, of(b), nil)
			for from := 0; from < million; from += 2000 {
				batch := flow.Batch{Campaign: "c", Epoch: 1}
				for n := from + 1; n <= from+2000; n++ {
					batch.Coupons = append(batch.Coupons, stage.Coupon("c", int64(n)))
				}
				stage.Must(b, stage.Err(l.Record(b.Context(), batch)))
			}
			rebuilds(b, flow.NewRebuilder(l, g, flow.RebuilderEvents{}), 0)
		})
	}
	b.Run(fmt.Sprintf("%s/line=%d", services.SQLite, million), func(b *testing.B) {
		l, g := newStall(b, services.Ledgers[services.SQLite](b), &firstcome.Pace{PerSecond: 1})
		for from := 0; from < million; from += 500 {
			users := make([]firstcome.UserID, 500)
			for n := range users {
				users[n] = firstcome.UserID(fmt.Sprintf("user-%08d", from+n))
			}
			stage.Must(b, stage.Err(g.Claim(b.Context(), "c", users)))
		}
		rebuilds(b, flow.NewRebuilder(l, g, flow.RebuilderEvents{}), million)
	})
}

// newStall returns a ledger and a gate of it, with a campaign, as those of a desk.
func newStall(b *testing.B, name string, pace *firstcome.Pace) (*ledger.Ledger, *redis.Gate) {
	b.Helper()
	l, err := ledger.Open(b.Context(), name, ledger.Options{Secret: stage.Secret()})
	stage.Must(b, err)
	n := &node{flags: &serveCmd{}, log: slog.New(slog.DiscardHandler), ledger: l}
	g, err := redis.Open(b.Context(), redis.Options{URL: services.Redis.Database(b), Secret: stage.Secret(), Ledger: l.Identity, Marker: n.marker, Missing: n.missing})
	stage.Must(b, err)
	b.Cleanup(g.Close)
	l.UseGate(g.Name())
	stage.Serve(b, l)
	terms := stage.Terms(firstcome.Unlimited)
	terms.Pace = pace
	stage.Must(b, l.Create(b.Context(), "test", "c", terms))
	stage.Must(b, flow.NewChanger(l, &flow.Over{RemoteGate: g, Book: l}, nil).Finish(b.Context(), "c", 0))
	return l, g
}

// rebuilds rebuilds the campaign c, in which so many people are in line.
func rebuilds(b *testing.B, r *flow.Rebuilder, inLine int64) {
	b.Helper()
	for b.Loop() {
		done, err := r.Rebuild(b.Context(), "op", "c", false)
		if err != nil || done.Carried != inLine {
			b.Fatalf("%+v, %v", done, err)
		}
	}
}
