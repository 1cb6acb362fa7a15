//go:build !check

package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/gate"
	"github.com/firstcome/firstcome/internal/ledger"
	"github.com/firstcome/firstcome/internal/record"
	"github.com/firstcome/firstcome/internal/redis"
	"github.com/firstcome/firstcome/test/seed"
	"github.com/firstcome/firstcome/test/services"
	"github.com/firstcome/firstcome/test/stage"
)

// A counter is the campaign drop with a waiting line, at a gate on Redis, and its ledger.
type counter struct {
	*scene
	gate      *redis.Redis
	inspected inspectedRedis
}

func newCounter(t *testing.T) *counter {
	name := services.Ledgers[services.SQLite](t)
	c := &counter{scene: &scene{t: t}}
	uid := func(ctx context.Context, id firstcome.CampaignID) (string, error) {
		campaign, err := c.Ledger.Reads.Campaign(ctx, id)
		return campaign.CampaignUID, err
	}
	options := redis.Options{URL: services.Redis.Database(t), Secret: plantSecret, CampaignUID: uid}
	gate, err := redis.Open(t.Context(), options)
	stage.Must(t, err)
	c.inspected = inspected(t, options)
	t.Cleanup(gate.Close)
	l, err := ledger.Open(t.Context(), name, ledger.Options{Secret: plantSecret, Gate: gate.Name()})
	stage.Must(t, err)
	stage.Serve(t, l)
	c.gate, c.Ledger = gate, l
	c.create("drop", firstcome.Terms{Quantity: 200, Pace: &firstcome.Pace{}})
	c.bring()
	return c
}

// inspected returns a gate on Redis that is only read.
func inspected(t *testing.T, options redis.Options) inspectedRedis {
	t.Helper()
	i, err := redis.Inspect(t.Context(), options)
	stage.Must(t, err)
	t.Cleanup(i.Close)
	return inspectedRedis{i}
}

// bring applies the changes that the gate lacks.
func (c *counter) bring() {
	pending, err := c.Campaigns.Pending(c.t.Context(), "drop")
	stage.Must(c.t, err)
	for _, change := range pending {
		refused, err := c.gate.Gate.Apply(c.t.Context(), change)
		stage.Must(c.t, err)
		stage.Must(c.t, c.Campaigns.Applied(c.t.Context(), change, refused))
	}
}

// compared returns the breaches that the audit finds between the gate and the ledger.
func (c *counter) compared() (lines []string) {
	campaign, err := c.Reads.Campaign(c.t.Context(), "drop")
	stage.Must(c.t, err)
	report, err := compareWithGate(c.t.Context(), c.Tables().Source(), c.inspected, nil, &campaign, &plantSecret)
	stage.Must(c.t, err)
	for _, b := range report.Breaches.Shown {
		lines = append(lines, b.Promise+": "+b.Text)
	}
	return lines
}

// someone lets a user join the line, leave it, or get a coupon directly.
func (c *counter) someone(random *rand.Rand) {
	ctx, user := c.t.Context(), firstcome.UserID(fmt.Sprint("u", random.IntN(2000)))
	var err error
	switch random.IntN(10) {
	case 0:
		_, err = c.gate.Gate.Issue(ctx, gate.Order{Actor: "op"}, "drop", []firstcome.UserID{user})
	case 1, 2:
		err = stage.Err(c.gate.Line.Leave(ctx, "drop", user))
	default:
		_, err = c.gate.Gate.Claim(ctx, "drop", []firstcome.UserID{user})
	}
	if err != nil && !errors.Is(err, firstcome.ErrServed) && !errors.Is(err, firstcome.ErrNoTicket) {
		c.t.Error(err)
	}
}

// operate voids a coupon, pauses or resumes the campaign, and raises the quantity after it is sold out, which ends a generation.
func (c *counter) operate(n int64) {
	if _, err := c.Campaigns.Void(c.t.Context(), "op", "drop", n, "sold"); err != nil && !errors.Is(err, firstcome.ErrNoCoupon) && !errors.Is(err, firstcome.ErrNotRecorded) {
		c.t.Error(err)
	}
	c.bring()
	c.turn("drop", []firstcome.ChangeKind{firstcome.ChangePause, firstcome.ChangeResume}[n%2])
	c.bring()
	campaign, err := c.Reads.Campaign(c.t.Context(), "drop")
	stage.Must(c.t, err)
	if s := c.state(); s.InForce >= campaign.Quantity {
		c.quantity("drop", s.InForce+50)
		c.bring()
	}
}

func (c *counter) state() gate.State {
	s, err := c.gate.Gate.State(c.t.Context(), "drop")
	stage.Must(c.t, err)
	return s
}

// TestP9TheAuditFindsNoBreachAtAGateWhoseLineIsInUse audits repeatedly while users join and leave, are served, and get coupons directly, and while an
// operator changes the campaign.
func TestP9TheAuditFindsNoBreachAtAGateWhoseLineIsInUse(t *testing.T) {
	const audits, generations = 25, 4
	c := newCounter(t)
	stage.Run(t, record.NewRecorder(c.gate.Journal.Consumer(redis.ConsumerOptions{Active: c.Recorder.Active}), c.Ledger.Recorder, record.Options{}).Run)
	over := make(chan struct{})
	var all sync.WaitGroup
	keep := func(do func(n int64)) {
		all.Go(func() {
			for n := int64(1); ; n++ {
				select {
				case <-over:
					return
				default:
					do(n)
				}
			}
		})
	}
	for n := range 3 {
		random := seed.Rand(t, n)
		keep(func(int64) { c.someone(random) })
	}
	keep(func(int64) {
		if _, err := c.gate.Line.Serve(t.Context(), "drop", 3); err != nil {
			t.Error(err)
		}
	})
	keep(c.operate)
	for n := 0; !t.Failed() && (n < audits || c.ended() < generations); n++ {
		if lines := c.compared(); len(lines) > 0 {
			t.Errorf("while it decides: %q", lines)
		}
	}
	close(over)
	all.Wait()
	if lines := c.compared(); len(lines) > 0 {
		t.Errorf("in the end: %q", lines)
	}
}

// ended returns how many generations of the line have ended.
func (c *counter) ended() int64 {
	line, _, err := c.inspected.WrittenLine(c.t.Context(), "drop")
	stage.Must(c.t, err)
	return line.Generation - 1
}
