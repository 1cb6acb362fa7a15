//go:build !check

package redis_test

import (
	"context"
	"testing"

	"github.com/firstcome/firstcome/test/services"
	"github.com/firstcome/firstcome/test/stage"
)

// paired starts two servers that sync before they answer, of which one is the other's replica, and does things to them. It returns the primary's URL.
func paired(t *testing.T, do ...func(p *services.Pair, ctx context.Context) error) string {
	t.Helper()
	p := services.RedisPair(t, "--appendfsync", "always")
	for _, one := range do {
		stage.Must(t, one(p, t.Context()))
	}
	return p.Primary.URL()
}

// TestF01F02OnlyARunThatARestartBringsBackWholeIsDurable asks servers that have a replica, had one, or were one, and servers that do not say how they
// sync. Each question is put to a server of its own.
func TestF01F02OnlyARunThatARestartBringsBackWholeIsDurable(t *testing.T) {
	always := []string{"--appendfsync", "always"}
	kill := func(p *services.Pair, _ context.Context) error { return p.Replica.Kill() } // after a promotion this is the old primary
	promote := func(p *services.Pair, ctx context.Context) error { return p.Promote(ctx) }
	restart := func(p *services.Pair, ctx context.Context) error { return p.Primary.Restart(ctx) }
	for name, server := range map[string]struct {
		start   func(t *testing.T) string // returns the server's URL
		durable bool
	}{
		"it syncs before it answers, and is alone": {
			func(t *testing.T) string { return services.Redis.Server(t, always...).URL() }, true,
		},
		"it syncs every second": {
			func(t *testing.T) string { return services.Redis.Server(t, "--appendfsync", "everysec").URL() }, false,
		},
		"it syncs when the system likes": {
			func(t *testing.T) string { return services.Redis.Server(t, "--appendfsync", "no").URL() }, false,
		},
		"it does not sync while it rewrites its file": {
			func(t *testing.T) string {
				return services.Redis.Server(t, append([]string{"--no-appendfsync-on-rewrite", "yes"}, always...)...).URL()
			}, false,
		},
		"it appends to no file": {
			func(t *testing.T) string {
				return services.Redis.Server(t, append([]string{"--appendonly", "no"}, always...)...).URL()
			}, false,
		},
		"its user may not ask how it syncs": {
			func(t *testing.T) string {
				return services.Redis.Server(t, append([]string{"--user", "default", "on", "nopass", "~*", "&*", "+@all", "-config"}, always...)...).URL()
			}, false,
		},
		"it has no command to ask how it syncs": {
			func(t *testing.T) string {
				return services.Redis.Server(t, append([]string{"--rename-command", "CONFIG", ""}, always...)...).URL()
			}, false,
		},
		"it has a replica":              {func(t *testing.T) string { return paired(t) }, false},
		"it had a replica":              {func(t *testing.T) string { return paired(t, kill) }, false},
		"it was promoted, and is alone": {func(t *testing.T) string { return paired(t, promote, kill) }, false},
		// The server has forgotten its replica. But the last decision was another run's, and the ledger knows that that run had a replica.
		"it was promoted, and restarted": {func(t *testing.T) string { return paired(t, promote, restart) }, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := open(t, server.start(t))
			runs, err := g.Runs(t.Context())
			if err != nil || len(runs) != 1 || runs[0].ID == "" {
				t.Fatalf("the runs are %+v, %v", runs, err)
			}
			stage.Same(t, "whether a restart brings it back whole", server.durable, runs[0].Durable)
		})
	}
}
