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
func sqlGates(ctx context.Context, b *bench) {
	for _, kind := range []services.Kind{services.MariaDB, services.PostgreSQL} {
		b.sqlGate(ctx, kind)
	}
}

func (b *bench) sqlGate(ctx context.Context, kind services.Kind) {
	var h hosts
	defer h.close()
	ledger := h.database(ctx, kind)
	node := b.node(ctx, "--ledger", ledger)
	defer node.stop()
	for _, connections := range []int{64, 256} {
		b.againstLocking(ctx, kind, node, ledger, connections)
	}
}

// againstLocking measures a node against a reference on the same ledger.
func (b *bench) againstLocking(ctx context.Context, kind services.Kind, node *server, ledger string, connections int) {
	plain := b.reference(ctx, "-locking", ledger, "-connections", strconv.Itoa(connections))
	defer plain.stop()
	issue := func(to *server, claims int) func() figure {
		return func() figure {
			return drive(ctx, at(to, b.campaign(ctx, node, -1), sequential(0)), claims, connections, 0, "issued")
		}
	}
	c := b.pair(issue(node, b.claims), issue(plain, max(b.claims/fewer, 1)))
	b.printRate(fmt.Sprintf("winners, %d connections, %s decides", connections, kind), c, "a transaction each", wantSQLGate)
	b.printCPU(c, "")
}
