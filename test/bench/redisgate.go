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
func (b *bench) answering(ctx context.Context, answer firstcome.AnswerWhen, connections int, recorded bool, nodes ...*server) func() (figure, error) {
	from := 0
	return func() (figure, error) {
		id, err := b.campaign(ctx, nodes[0], -1, answer)
		if err != nil {
			return figure{}, err
		}
		from += b.claims
		t := target{servers: nodes, campaigns: []string{id}, user: sequential(from)}
		f, err := drive(ctx, t, b.claims, connections, 0, "issued")
		if err == nil && recorded {
			err = settled(ctx, nodes[0], id)
		}
		return f, err
	}
}

// settled returns when the ledger has all that was issued, so that the next claim has
// the machine for itself.
func settled(ctx context.Context, node *server, id string) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	calls := client.New("http://"+node.address, "")
	defer calls.CloseIdle()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for {
		c, err := calls.Campaign(ctx, id)
		if err != nil || c.Recorded == c.Issued {
			return err
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return fmt.Errorf("the ledger has %d of %d coupons: %w", c.Recorded, c.Issued, ctx.Err())
		}
	}
}

// decided: winners that are answered when Redis has decided, against winners of a node
// on SQLite; first with nobody who records, then with a recorder in the same node.
func decided(ctx context.Context, b *bench) error {
	sqlite, err := b.firstcome(ctx, "decided.db")
	if err != nil {
		return err
	}
	defer sqlite.stop()
	for _, role := range []string{"api", "all"} {
		if err := b.decidedBy(ctx, role, sqlite); err != nil {
			return err
		}
	}
	return nil
}

func (b *bench) decidedBy(ctx context.Context, role string, sqlite *server) error {
	var h hosts
	defer h.close()
	args, err := h.fleet(ctx, services.MariaDB)
	if err != nil {
		return err
	}
	node, err := b.node(ctx, append(args, "--role", role)...)
	if err != nil {
		return err
	}
	defer node.stop()
	records := role == "all"
	c, err := b.pair(b.answering(ctx, firstcome.Decided, 64, records, node), b.answering(ctx, "", 64, false, sqlite))
	if err != nil {
		return err
	}
	what, want := "winners, 64 connections, Redis decides, answered when decided, nobody records", wantDecided
	if records {
		what, want = "… while MariaDB records", ""
	}
	b.printRate(what, c, "on SQLite", want)
	b.printCPU(c, "")
	return nil
}

// recorded: winners that Redis decides, and that are answered when the database has
// them: how many a second at the most, and how long they wait at 70 % of that, in turn.
func recorded(ctx context.Context, b *bench) error {
	if err := b.recordedBy(ctx, services.MariaDB, wantRecorded); err != nil {
		return err
	}
	return b.recordedBy(ctx, services.PostgreSQL, "")
}

func (b *bench) recordedBy(ctx context.Context, kind services.Kind, want string) error {
	var h hosts
	defer h.close()
	args, err := h.fleet(ctx, kind)
	if err != nil {
		return err
	}
	node, err := b.node(ctx, args...)
	if err != nil {
		return err
	}
	defer node.stop()
	if err := b.againstItself(ctx, &h, kind, node); err != nil {
		return err
	}
	const connections, seconds = 256, 5
	issue := b.answering(ctx, firstcome.Recorded, connections, true, node)
	var rates, p50, p99, longest []float64
	for range b.rounds {
		most, err := issue()
		if err != nil {
			return err
		}
		f, err := b.paced(ctx, node, 0.7*most.perSecond, seconds, connections)
		if err != nil {
			return err
		}
		l := f.result.Latency
		rates, p50, p99, longest = append(rates, most.perSecond), append(p50, l.P50), append(p99, l.P99), append(longest, l.Max)
	}
	b.print(fmt.Sprintf("… latency, open loop, %d s at 70 %% of %s", seconds, perSecond(median(rates))), latencies(median(p50), median(p99), slices.Max(longest)), "", "", want)
	return nil
}

// againstItself measures how many winners a second such a node answers, against one of which the database decides itself.
func (b *bench) againstItself(ctx context.Context, h *hosts, kind services.Kind, node *server) error {
	alone, err := h.database(ctx, kind)
	if err != nil {
		return err
	}
	itself, err := b.node(ctx, "--ledger", alone)
	if err != nil {
		return err
	}
	defer itself.stop()
	for _, connections := range []int{64, 256} {
		c, err := b.pair(b.answering(ctx, firstcome.Recorded, connections, true, node), b.answering(ctx, "", connections, false, itself))
		if err != nil {
			return err
		}
		b.printRate(fmt.Sprintf("winners, %d connections, Redis decides, answered when recorded by %s", connections, kind), c, "which decides itself", wantItself)
	}
	return nil
}

// paced has so many claims of a new campaign sent a second, for some seconds, and
// waits until all is recorded.
func (b *bench) paced(ctx context.Context, node *server, rate, seconds float64, connections int) (figure, error) {
	id, err := b.campaign(ctx, node, -1, firstcome.Recorded)
	if err != nil {
		return figure{}, err
	}
	f, err := drive(ctx, at(node, id, sequential(0)), int(rate*seconds), connections, rate, "issued")
	if err == nil {
		err = settled(ctx, node, id)
	}
	return f, err
}

// nodes: two nodes of a fleet together against one of them, over as many connections.
// Of the same thing twice the ratio would be 1, and what it is instead is the noise:
// each round measures the one node before and after the two.
func nodes(ctx context.Context, b *bench) error {
	var h hosts
	defer h.close()
	args, err := h.fleet(ctx, services.MariaDB)
	if err != nil {
		return err
	}
	var two []*server
	for range 2 {
		node, err := b.node(ctx, append(args, "--role", "api")...)
		if err != nil {
			return err
		}
		defer node.stop()
		two = append(two, node)
	}
	const connections = 256
	one, both := b.answering(ctx, firstcome.Decided, connections, false, two[0]), b.answering(ctx, firstcome.Decided, connections, false, two...)
	var noise []float64
	before, err := one()
	if err != nil {
		return err
	}
	c, err := b.pair(both, func() (figure, error) {
		after, err := one()
		noise = append(noise, math.Abs(after.perSecond/before.perSecond-1))
		middle := after
		middle.perSecond = (before.perSecond + after.perSecond) / 2
		before = after
		return middle, err
	})
	if err != nil {
		return err
	}
	b.printRate(fmt.Sprintf("winners, %d connections, Redis decides, two nodes", connections), c, "one node", wantNodes)
	b.print("… noise: one node against itself", "", "", fmt.Sprintf("± %.2f", median(noise)), "")
	return nil
}
