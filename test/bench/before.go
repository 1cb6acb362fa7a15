package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/test/services"
)

// before: winners of this tree's firstcome against those of an earlier binary, in the four set-ups. It asks for -before.
//
// Each binary has servers of its own, so that neither finds the other's rows.
func before(ctx context.Context, b *bench) {
	if b.before == "" {
		must(errors.New("name the binary to compare with: git worktree add OLD COMMIT, (cd OLD && make build), and -before OLD/bin/firstcome"))
	}
	var h hosts
	defer h.close()
	earlier := *b
	earlier.binary = b.before
	each := func(start func(*bench) *server) (now, then *server) { return start(b), start(&earlier) }
	redis, redisBefore := each(func(b *bench) *server { return b.node(ctx, h.fleet(ctx, services.MariaDB)...) })
	defer redis.stop()
	defer redisBefore.stop()
	database, databaseBefore := each(func(b *bench) *server { return b.node(ctx, "--ledger", h.database(ctx, services.MariaDB)) })
	defer database.stop()
	defer databaseBefore.stop()
	sqlite, sqliteBefore := each(func(b *bench) *server { return b.firstcome(ctx, fmt.Sprintf("before-%t.db", b == &earlier)) })
	defer sqlite.stop()
	defer sqliteBefore.stop()
	for _, s := range []struct {
		name        string
		now, then   *server
		answer      firstcome.AnswerWhen
		connections int
	}{
		{"SQLite decides", sqlite, sqliteBefore, "", 64},
		{"SQLite decides", sqlite, sqliteBefore, "", 256},
		{"MariaDB decides", database, databaseBefore, "", 256},
		{"Redis decides, answered when decided, MariaDB records", redis, redisBefore, firstcome.Decided, 256},
		{"Redis decides, answered when recorded by MariaDB", redis, redisBefore, firstcome.Recorded, 256},
	} {
		c := b.pair(b.scatter(ctx, s.now, s.answer, s.connections), b.scatter(ctx, s.then, s.answer, s.connections))
		b.printRate(fmt.Sprintf("winners, %d connections, user ids scattered, %s", s.connections, s.name), c, "before", wantBefore)
		b.printCPU(c, "")
	}
}
