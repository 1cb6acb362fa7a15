package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/client"
	"github.com/firstcome/firstcome/test/services"
)

// A setup is a node on servers that this command starts: durable ones, as for production.
type setup struct {
	name   string
	ledger services.Kind
	redis  bool // Redis decides
	answer firstcome.AnswerWhen
	idle   bool // nobody records
}

var setups = []setup{
	{name: "MariaDB decides", ledger: services.MariaDB},
	{name: "PostgreSQL decides", ledger: services.PostgreSQL},
	{name: "Redis decides, answered when decided, nobody records", ledger: services.MariaDB, redis: true, answer: firstcome.Decided, idle: true},
	{name: "Redis decides, answered when decided", ledger: services.MariaDB, redis: true, answer: firstcome.Decided},
	{name: "Redis decides, answered when recorded by MariaDB", ledger: services.MariaDB, redis: true, answer: firstcome.Recorded},
	{name: "Redis decides, answered when recorded by PostgreSQL", ledger: services.PostgreSQL, redis: true, answer: firstcome.Recorded},
}

// fleet: winners at one node of each set-up, against the bare handler.
func fleet(ctx context.Context, b *bench) error {
	for _, s := range setups {
		err := s.measure(ctx, b)
		if errors.Is(err, services.ErrMissing) {
			b.print("winners, "+s.name, fmt.Sprintf("skipped: %v", err), "", "", "")
			continue
		}
		if err != nil {
			return fmt.Errorf("%s: %w", s.name, err)
		}
	}
	return nil
}

func (s setup) measure(ctx context.Context, b *bench) error {
	args, closed, err := s.start(ctx)
	if err != nil {
		return err
	}
	defer closed()
	node, err := b.serve(ctx, []string{"FIRSTCOME_SECRET=a secret of benchmarks, of 32 bytes and more"}, args...)
	if err != nil {
		return err
	}
	defer node.stop()
	bare, err := b.bare(ctx)
	if err != nil {
		return err
	}
	defer bare.stop()
	return s.pair(ctx, b, node, bare)
}

// start starts the servers and returns the node's arguments.
func (s setup) start(ctx context.Context) (args []string, closed func(), err error) {
	var servers []*services.Server
	closed = func() {
		for _, server := range servers {
			_ = server.Close() // which only leaves its directory behind
		}
	}
	begin := func(kind services.Kind) (string, error) {
		server, err := kind.Start(ctx)
		if err != nil {
			return "", err
		}
		servers = append(servers, server)
		return server.Database(ctx)
	}
	ledger, err := begin(s.ledger)
	args = []string{"--ledger", ledger}
	if err == nil && s.redis {
		var gate string
		gate, err = begin(services.Redis)
		args = append(args, "--gate", gate)
	}
	if s.idle {
		args = append(args, "--role", "api")
	}
	if err != nil {
		closed()
	}
	return args, closed, err
}

// pair measures the node and the bare handler in turn, at 64 connections.
func (s setup) pair(ctx context.Context, b *bench, node, bare *server) error {
	from := 0
	issue := func() (figure, error) {
		id, err := b.answering(ctx, node, s.answer)
		if err != nil {
			return figure{}, err
		}
		from += b.claims
		f, err := drive(ctx, target{node, []string{id}, sequential(from)}, b.claims, 64, 0, "issued")
		if err == nil && !s.idle {
			err = recorded(ctx, node, id) // so that the bare handler has the machine for itself
		}
		return f, err
	}
	id, err := b.answering(ctx, node, s.answer)
	if err != nil {
		return err
	}
	if err := copyAnswer(ctx, node, bare, id, "somebody"); err != nil {
		return err
	}
	reference := func() (figure, error) {
		return drive(ctx, target{bare, []string{id}, sequential(0)}, b.claims, 64, 0, "issued")
	}
	got, ref, r, cpu, cpuGot, cpuRef, err := b.pair(issue, reference)
	if err != nil {
		return err
	}
	b.print("winners, 64 connections, "+s.name, perSecond(got), perSecond(ref)+" bare", ratio(r), "")
	b.print("… node's CPU a claim", fmt.Sprintf("%.1f µs", cpuGot), fmt.Sprintf("%.1f µs", cpuRef), ratio(cpu), "")
	return nil
}

// recorded returns when the ledger has all that was issued.
func recorded(ctx context.Context, node *server, id string) error {
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
