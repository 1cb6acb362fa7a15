//go:build !check

package main

import (
	"context"
	"fmt"
	"log/slog"
	"sync/atomic"
	"testing"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/gate"
	"github.com/firstcome/firstcome/internal/ledger"
	"github.com/firstcome/firstcome/internal/record"
	"github.com/firstcome/firstcome/internal/recovery"
	"github.com/firstcome/firstcome/internal/redis"
	"github.com/firstcome/firstcome/test/services"
	"github.com/firstcome/firstcome/test/stage"
)

// BenchmarkRebuild rebuilds the gate of a campaign with a million holders, of a campaign with a million users in line, and, as nodes do by themselves, of
// a thousand campaigns that lost their keys. Run it with a number of times, like -benchtime 3x.
func BenchmarkRebuild(b *testing.B) {
	const million = 1_000_000
	for kind, of := range services.Ledgers {
		b.Run(fmt.Sprintf("%s/holders=%d", kind, million), func(b *testing.B) {
			l, g, _ := newStall(b, of(b), nil)
			for from := 0; from < million; from += 2000 {
				batch := record.Batch{Campaign: "c", Epoch: 1}
				for n := from + 1; n <= from+2000; n++ {
					batch.Coupons = append(batch.Coupons, stage.Coupon("c", int64(n)))
				}
				stage.Must(b, stage.Err(l.Recorder.Record(b.Context(), batch)))
			}
			rebuilds(b, recovery.New(l.Recorder, l.Epochs, g.Recovery, recovery.NewWatch(nil), nil), 0)
		})
	}
	b.Run(fmt.Sprintf("%s/line=%d", services.SQLite, million), func(b *testing.B) {
		l, g, _ := newStall(b, services.Ledgers[services.SQLite](b), &firstcome.Pace{PerSecond: 1})
		for from := 0; from < million; from += 500 {
			users := make([]firstcome.UserID, 500)
			for n := range users {
				users[n] = firstcome.UserID(fmt.Sprintf("user-%08d", from+n))
			}
			stage.Must(b, stage.Err(g.Gate.Claim(b.Context(), "c", users)))
		}
		rebuilds(b, recovery.New(l.Recorder, l.Epochs, g.Recovery, recovery.NewWatch(nil), nil), million)
	})
	b.Run(fmt.Sprintf("%s/campaigns=1000", services.SQLite), func(b *testing.B) {
		l, g, url := newStall(b, services.Ledgers[services.SQLite](b), nil)
		changes := gate.NewChanger(l.Campaigns, &gate.Router{Gate: g.AsGate(), Retired: l.Gate, Ledger: l.Recorder}, nil)
		for n := range 999 {
			id := firstcome.CampaignID(fmt.Sprint("c-", n))
			stage.Must(b, l.Campaigns.Create(b.Context(), "test", id, stage.Terms(firstcome.Unlimited)))
			stage.Must(b, changes.Finish(b.Context(), id, 0))
		}
		for b.Loop() {
			stage.Must(b, stage.Err(askRedis(url, "FLUSHALL")))
			stage.Must(b, g.Recovery.Rename(b.Context()))
			heals(b, l, g, 1000)
		}
	})
}

// heals runs a node until it has rebuilt a number of campaigns by itself.
func heals(b *testing.B, l *ledger.Ledger, g *redis.Redis, campaigns int64) {
	b.Helper()
	ctx, end := context.WithCancel(b.Context())
	defer end()
	var done atomic.Int64
	r := recovery.New(l.Recorder, l.Epochs, g.Recovery, recovery.NewWatch(nil), func(one recovery.Rebuilt) {
		if one.Err != nil {
			b.Error(one.Err)
		}
		if done.Add(1) == campaigns {
			end()
		}
	})
	if err := r.Run(ctx); err != nil || done.Load() != campaigns {
		b.Fatalf("%d rebuilt, %v", done.Load(), err)
	}
}

// newStall returns a ledger with the campaign c, its gate, and the URL of the gate.
func newStall(b *testing.B, name string, pace *firstcome.Pace) (*ledger.Ledger, *redis.Redis, string) {
	b.Helper()
	l, err := ledger.Open(b.Context(), name, ledger.Options{Secret: stage.Secret()})
	stage.Must(b, err)
	n := &base{flags: &serveCmd{}, log: slog.New(slog.DiscardHandler), ledger: l}
	url := services.Redis.Database(b)
	g, err := redis.Open(b.Context(), redis.Options{URL: url, Secret: stage.Secret(), Ledger: l.Identity, CampaignUID: n.campaignUID, OnUnknown: n.missing})
	stage.Must(b, err)
	b.Cleanup(g.Close)
	stage.Must(b, l.UseGate(b.Context(), ledger.RemoteGate{Gate: g.Name()}))
	stage.Serve(b, l)
	terms := stage.Terms(firstcome.Unlimited)
	terms.Pace = pace
	stage.Must(b, l.Campaigns.Create(b.Context(), "test", "c", terms))
	stage.Must(b, gate.NewChanger(l.Campaigns, &gate.Router{Gate: g.AsGate(), Retired: l.Gate, Ledger: l.Recorder}, nil).Finish(b.Context(), "c", 0))
	return l, g, url
}

// rebuilds rebuilds the campaign c with a number of users in line.
func rebuilds(b *testing.B, r *recovery.Machine, inLine int64) {
	b.Helper()
	for b.Loop() {
		done, err := r.Rebuild(b.Context(), "op", "c", recovery.Order{})
		if err != nil || done.Carried != inLine {
			b.Fatalf("%+v, %v", done, err)
		}
	}
}
