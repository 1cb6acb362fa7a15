package main

import (
	"context"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/client"
	"github.com/firstcome/firstcome/test/services"
)

// answering returns what has a new campaign's coupons claimed from nodes, all of them
// in turn, and waits until all is recorded if somebody records.
func (b *bench) answering(ctx context.Context, answer firstcome.AnswerWhen, connections int, recorded bool, nodes ...*server) func() figure {
	from := 0
	return func() figure {
		id := b.campaign(ctx, nodes[0], -1, answer)
		from += b.claims
		t := target{servers: nodes, campaigns: []string{id}, user: sequential(from)}
		f := drive(ctx, t, b.claims, connections, 0, "issued")
		if recorded {
			drained(ctx, nodes[0], id)
		}
		return f
	}
}

// drained returns when the ledger has all that was issued, so that the next claim has
// the machine for itself.
func drained(ctx context.Context, node *server, id string) {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	calls := client.New("http://"+node.address, "")
	defer calls.CloseIdle()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for {
		c := value(calls.Campaign(ctx, id))
		if c.Issued != nil && c.Recorded == *c.Issued {
			return
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			must(fmt.Errorf("the ledger has %d coupons, and not yet all: %w", c.Recorded, ctx.Err()))
		}
	}
}

// decided: winners that are answered when Redis has decided, against winners of a node
// on SQLite; first with nobody who records, then with a recorder in the same node.
func decided(ctx context.Context, b *bench) {
	sqlite := b.firstcome(ctx, "decided.db")
	defer sqlite.stop()
	for _, role := range []string{"api", "all"} {
		b.decidedBy(ctx, role, sqlite)
	}
}

func (b *bench) decidedBy(ctx context.Context, role string, sqlite *server) {
	var h hosts
	defer h.close()
	args := h.fleet(ctx, services.MariaDB)
	node := b.node(ctx, append(args, "--role", role)...)
	defer node.stop()
	records := role == "all"
	c := b.pair(b.answering(ctx, firstcome.Decided, 64, records, node), b.answering(ctx, "", 64, false, sqlite))
	what, want := "winners, 64 connections, Redis decides, answered when decided, nobody records", wantDecided
	if records {
		what, want = "… while MariaDB records", ""
	}
	b.printRate(what, c, "on SQLite", want)
	b.printCPU(c, "")
}

// recorded: winners that Redis decides, and that are answered when the database has
// them: how many a second at the most, and how long they wait at 70 % of that, in turn.
func recorded(ctx context.Context, b *bench) {
	b.recordedBy(ctx, services.MariaDB, wantRecorded)
	b.recordedBy(ctx, services.PostgreSQL, "")
}

func (b *bench) recordedBy(ctx context.Context, kind services.Kind, want string) {
	var h hosts
	defer h.close()
	args := h.fleet(ctx, kind)
	node := b.node(ctx, args...)
	defer node.stop()
	b.againstItself(ctx, &h, kind, node)
	const connections, seconds = 256, 5
	issue := b.answering(ctx, firstcome.Recorded, connections, true, node)
	var rates, p50, p99, longest []float64
	for range b.rounds {
		most := issue()
		f := b.paced(ctx, node, 0.7*most.perSecond, seconds, connections)
		l := f.result.Latency
		rates, p50, p99, longest = append(rates, most.perSecond), append(p50, l.P50), append(p99, l.P99), append(longest, l.Max)
	}
	b.print(fmt.Sprintf("… latency, open loop, %d s at 70 %% of %s", seconds, perSecond(median(rates))), latencies(median(p50), median(p99), slices.Max(longest)), "", "", want)
}

// againstItself measures how many winners a second such a node answers, against one of which the database decides itself.
func (b *bench) againstItself(ctx context.Context, h *hosts, kind services.Kind, node *server) {
	alone := h.database(ctx, kind)
	itself := b.node(ctx, "--ledger", alone)
	defer itself.stop()
	for _, connections := range []int{64, 256} {
		c := b.pair(b.answering(ctx, firstcome.Recorded, connections, true, node), b.answering(ctx, "", connections, false, itself))
		b.printRate(fmt.Sprintf("winners, %d connections, Redis decides, answered when recorded by %s", connections, kind), c, "which decides itself", wantItself)
	}
}

// paced has so many claims of a new campaign sent a second, for some seconds, and
// waits until all is recorded.
func (b *bench) paced(ctx context.Context, node *server, rate, seconds float64, connections int) figure {
	id := b.campaign(ctx, node, -1, firstcome.Recorded)
	f := drive(ctx, at(node, id, sequential(0)), int(rate*seconds), connections, rate, "issued")
	drained(ctx, node, id)
	return f
}

// nodes: two nodes of a fleet together against one of them, over as many connections.
// Of the same thing twice the ratio would be 1, and what it is instead is the noise:
// each round measures the one node before and after the two.
func nodes(ctx context.Context, b *bench) {
	var h hosts
	defer h.close()
	args := h.fleet(ctx, services.MariaDB)
	var two []*server
	for range 2 {
		node := b.node(ctx, append(args, "--role", "api")...)
		defer node.stop()
		two = append(two, node)
	}
	const connections = 256
	one, both := b.answering(ctx, firstcome.Decided, connections, false, two[0]), b.answering(ctx, firstcome.Decided, connections, false, two...)
	var noise []float64
	before := one()
	c := b.pair(both, func() figure {
		after := one()
		noise = append(noise, math.Abs(after.perSecond/before.perSecond-1))
		middle := after
		middle.perSecond = (before.perSecond + after.perSecond) / 2
		before = after
		return middle
	})
	b.printRate(fmt.Sprintf("winners, %d connections, Redis decides, two nodes", connections), c, "one node", wantNodes)
	b.print("… noise: one node against itself", "", "", fmt.Sprintf("± %.2f", median(noise)), "")
}
