package main

import (
	"context"
	"fmt"
	"time"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/client"
	"github.com/firstcome/firstcome/internal/load"
	"github.com/firstcome/firstcome/test/services"
)

// A lineGate is a gate whose waiting line is measured.
type lineGate struct {
	name   string
	answer firstcome.AnswerWhen // of its campaigns; empty: the default
	serve  string               // wanted of join and serve together
	node   func(ctx context.Context, b *bench, h *hosts) *server
}

// decides returns a node whose database decides.
func decides(kind services.Kind) func(context.Context, *bench, *hosts) *server {
	return func(ctx context.Context, b *bench, h *hosts) *server {
		return b.node(ctx, "--ledger", h.database(ctx, kind))
	}
}

// Each of these measures joining a waiting line, and joining it and being served together, against issuing by the same
// gate. Who joins a line of Redis is answered once they are in it, so its reference is answered when decided.
var (
	lineOnSQLite = lineGate{"SQLite", "", wantServe, func(ctx context.Context, b *bench, _ *hosts) *server { return b.firstcome(ctx, "line.db") }}
	lineOnRedis  = lineGate{"Redis", firstcome.Decided, wantServe, func(ctx context.Context, b *bench, h *hosts) *server {
		return b.node(ctx, h.fleet(ctx, services.MariaDB)...)
	}}
	lineOnMariaDB    = lineGate{"MariaDB", "", wantServeServer, decides(services.MariaDB)}
	lineOnPostgreSQL = lineGate{"PostgreSQL", "", wantServeServer, decides(services.PostgreSQL)}
)

func lineServers(ctx context.Context, b *bench) {
	lineOnMariaDB.measure(ctx, b)
	lineOnPostgreSQL.measure(ctx, b)
}

func (g lineGate) measure(ctx context.Context, b *bench) {
	var h hosts
	defer h.close()
	s := g.node(ctx, b, &h)
	defer s.stop()
	calls := client.New("http://"+s.address, "")
	defer calls.CloseIdle()
	from := 0
	claim := func(id, outcome string) figure {
		from += b.claims
		return drive(ctx, at(s, id, sequential(from)), b.claims, lineConnections, 0, outcome)
	}
	issue := func() figure {
		id := b.campaign(ctx, s, -1, g.answer)
		f := claim(id, "issued")
		drained(ctx, s, id)
		return f
	}
	slow := int64(1)
	c := b.pair(func() figure {
		id := b.lined(ctx, s, g.answer, &slow)
		f := claim(id, "waiting")
		value(calls.Close(ctx, id)) // so that nobody is served while the next is measured
		return f
	}, issue)
	b.printRate(fmt.Sprintf("joining a line, %d connections, %s decides", lineConnections, g.name), c, "issued", wantJoin)
	b.printCPU(c, "")
	c = b.pair(func() figure {
		id := b.lined(ctx, s, g.answer, nil)
		before, began := s.cpu(), time.Now()
		f := claim(id, "waiting")
		served(ctx, calls, id)
		f.perSecond = float64(b.claims) / time.Since(began).Seconds()
		f.cpu = (s.cpu() - before) / time.Duration(b.claims)
		drained(ctx, s, id)
		return f
	}, issue)
	b.printRate("… joining and being served without a pace", c, "issued", g.serve)
	b.printCPU(c, "")
}

// lineConnections is as many as most rows have.
const lineConnections = 64

// lined makes a campaign with a pace, whose claims are answered as campaign says; nil: as fast as the gate takes it.
func (b *bench) lined(ctx context.Context, s *server, answer firstcome.AnswerWhen, perSecond *int64) string {
	b.made++
	c := client.NewCampaign{
		ID: fmt.Sprintf("bench-%d", b.made), Name: "bench", Answer: string(answer), Pace: &client.Pace{PerSecond: perSecond},
		Coupon: client.CouponSpec{Benefit: []byte(`{"percent":20}`)},
	}
	value(client.New("http://"+s.address, "").CreateCampaign(ctx, c))
	return c.ID
}

// served returns when nobody is in a campaign's line.
func served(ctx context.Context, calls *client.Client, id string) {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for c := value(calls.Campaign(ctx, id)); c.Waiting == nil || *c.Waiting > 0; c = value(calls.Campaign(ctx, id)) {
		select {
		case <-tick.C:
		case <-ctx.Done():
			must(fmt.Errorf("people are still in line, or nobody can tell: %w", ctx.Err()))
		}
	}
}

// pace: how a pace is kept for more than 20 seconds, by the instants of the coupons.
func pace(ctx context.Context, b *bench) {
	var h hosts
	defer h.close()
	postgres := h.database(ctx, services.PostgreSQL)
	for name, nodes := range map[string][]*server{
		"SQLite":                {b.firstcome(ctx, "pace.db")},
		"PostgreSQL, two nodes": {b.node(ctx, "--ledger", postgres), b.node(ctx, "--ledger", postgres)},
	} {
		for _, perSecond := range []int64{500, 2000} {
			b.keepsPace(ctx, name, nodes, perSecond)
		}
		for _, s := range nodes {
			s.stop()
		}
	}
}

func (b *bench) keepsPace(ctx context.Context, name string, nodes []*server, perSecond int64) {
	const seconds = 22
	c := load.Options{
		Server: "http://" + nodes[0].address, Campaign: b.lined(ctx, nodes[0], "", &perSecond),
		Users: int(seconds * perSecond), Follow: true, CDN: true, PaceKept: 0.98,
	}
	for _, s := range nodes[1:] {
		c.Nodes = append(c.Nodes, "http://"+s.address)
	}
	r := value(load.Run(ctx, c))
	if !r.Verdict.OK() {
		must(fmt.Errorf("the run: %v: %v", r.Verdict, r.Verdict.Breaches.Shown))
	}
	b.print(fmt.Sprintf("pace of %d a second for %d s, %s", perSecond, seconds, name), r.Line.PaceKept(), "", "", wantPace)
}
