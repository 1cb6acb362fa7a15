//go:build !check

package main

import (
	"log/slog"
	"sync"
	"testing"

	"github.com/firstcome/firstcome/internal/ledger"
	"github.com/firstcome/firstcome/test/services"
	"github.com/firstcome/firstcome/test/stage"
)

// TestNodesThatStartAtOnceAgreeOnTheNameOfARedis starts four nodes of one ledger at a Redis without a name.
func TestNodesThatStartAtOnceAgreeOnTheNameOfARedis(t *testing.T) {
	for what, c := range map[string]struct {
		campaigns bool             // that another Redis decides
		isNew     func(n int) bool // the value of --new-gate at each node
		unnamed   func(n int) bool // whether the gate may be without a name at each node in the end
	}{
		"a first start": {false, func(int) bool { return false }, func(int) bool { return false }},
		"emptied":       {true, func(int) bool { return false }, func(int) bool { return true }},
		"meant":         {true, func(int) bool { return true }, func(int) bool { return false }},
		"meant by half": {true, func(n int) bool { return n%2 == 0 }, func(n int) bool { return n%2 == 1 }},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			name, url := services.PostgreSQL.Database(t), services.Redis.Database(t)
			l, err := ledger.Open(t.Context(), name, ledger.Options{Secret: stage.Secret(), Gate: "redis:gone"})
			stage.Must(t, err)
			stop := stage.Serve(t, l)
			if c.campaigns {
				stage.Must(t, l.Campaigns.Create(t.Context(), "test", "c", stage.Terms(1)))
			}
			stop()
			var nodes [4]*remoteGate
			var starting sync.WaitGroup
			for n := range nodes {
				l, err := ledger.Open(t.Context(), name, ledger.Options{Secret: stage.Secret()})
				stage.Must(t, err)
				t.Cleanup(func() { _ = l.Close() })
				nodes[n] = &remoteGate{base: &base{ledger: l, secret: stage.Secret(), flags: &serveCmd{gateFlags: gateFlags{Gate: gateName(url), NewGate: c.isNew(n)}}, log: slog.New(slog.DiscardHandler)}}
				starting.Go(func() {
					if err := nodes[n].dial(t.Context(), gateName(url).kind()); err != nil {
						t.Error(err)
					}
				})
			}
			starting.Wait()
			named := map[string]int{}
			for n, node := range nodes {
				t.Cleanup(node.close)
				name := node.ledger.GateName()
				if named[name]++; name == "" && !c.unnamed(n) {
					t.Errorf("node %d says that Redis has no name", n)
				}
			}
			delete(named, "")
			if (what == "emptied") != (len(named) == 0) || len(named) > 1 {
				t.Errorf("Redis is %v", named)
			}
		})
	}
}
