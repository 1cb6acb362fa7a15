package main

import (
	"context"
	"fmt"
	"strconv"

	"github.com/firstcome/firstcome/test/services"
)

// fewer is by how much fewer claims the reference of the SQL gates gets than they do,
// so that a round takes about as long.
const fewer = 15

// sqlGates: winners where MariaDB or PostgreSQL decides, against one transaction a
// claim with SELECT … FOR UPDATE: the same tables of the same server, as many
// connections to it as clients have to the reference.
func sqlGates(ctx context.Context, b *bench) error {
	for _, kind := range []services.Kind{services.MariaDB, services.PostgreSQL} {
		if err := b.sqlGate(ctx, kind); err != nil {
			return fmt.Errorf("%s: %w", kind, err)
		}
	}
	return nil
}

func (b *bench) sqlGate(ctx context.Context, kind services.Kind) error {
	var h hosts
	defer h.close()
	ledger, err := h.database(ctx, kind)
	if err != nil {
		return err
	}
	node, err := b.node(ctx, "--ledger", ledger)
	if err != nil {
		return err
	}
	defer node.stop()
	for _, connections := range []int{64, 256} {
		plain, err := b.reference(ctx, "-locking", ledger, "-connections", strconv.Itoa(connections))
		if err != nil {
			return err
		}
		issue := func(to *server, claims int) func() (figure, error) {
			return func() (figure, error) {
				id, err := b.campaign(ctx, node, -1)
				if err != nil {
					return figure{}, err
				}
				return drive(ctx, at(to, id, sequential(0)), claims, connections, 0, "issued")
			}
		}
		c, err := b.pair(issue(node, b.claims), issue(plain, max(b.claims/fewer, 1)))
		plain.stop()
		if err != nil {
			return err
		}
		b.printRate(fmt.Sprintf("winners, %d connections, %s decides", connections, kind), c, "a transaction each", wantSQLGate)
		b.printCPU(c, "")
	}
	return nil
}
