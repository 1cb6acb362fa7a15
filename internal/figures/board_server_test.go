//go:build !check

package figures_test

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/figures"
	"github.com/firstcome/firstcome/internal/ledger"
	"github.com/firstcome/firstcome/test/services"
	"github.com/firstcome/firstcome/test/stage"
)

// TestNodesHearOfEachOtherThroughTheLedger counts claims on two nodes, one of which stops, on each database server.
func TestNodesHearOfEachOtherThroughTheLedger(t *testing.T) {
	for _, kind := range []services.Kind{services.MariaDB, services.PostgreSQL} {
		t.Run(string(kind), func(t *testing.T) {
			t.Parallel()
			l, err := ledger.Open(t.Context(), kind.Database(t), ledger.Options{Owner: "a test", Secret: stage.Secret()})
			stage.Must(t, err)
			defer l.Close()
			a, b := boardOn(l.Deployment, "a"), boardOn(l.Deployment, "b")
			for range 3 {
				b.Counter.Claimed("spring", firstcome.SoldOut, 3*time.Millisecond)
			}
			var breaker atomic.Value
			breaker.Store("closed")
			b.Recorder = func() string { return breaker.Load().(string) }
			var relay atomic.Value
			relay.Store("closed")
			b.Relay = func() string { return relay.Load().(string) }
			stopA := stage.Run(t, a.Run)
			stopB := stage.Run(t, b.Run)
			seen := func(ok func(all map[string]figures.Node) bool) {
				t.Helper()
				for end := time.Now().Add(time.Minute); ; {
					nodes, err := a.Nodes(t.Context())
					stage.Must(t, err)
					all := map[string]figures.Node{}
					for _, n := range nodes {
						all[n.Host] = n
					}
					if ok(all) {
						return
					}
					if time.Now().After(end) {
						t.Fatalf("a sees %+v", all)
					}
				}
			}
			seen(func(all map[string]figures.Node) bool {
				n := all["b"]
				return len(all) == 2 && n.Campaigns["spring"].Claims[firstcome.SoldOut] == 3 && !n.Silent() && n.StoppedAt.IsZero() && n.Role == "all" && n.Version == "test" &&
					!n.StartedAt.IsZero() && !n.StartedAt.After(n.SeenAt)
			})
			seen(func(all map[string]figures.Node) bool { return all["b"].Breaker == "closed" && all["a"].Breaker == "" })
			breaker.Store("open")
			seen(func(all map[string]figures.Node) bool {
				return all["b"].Breaker == "open" && all["b"].Relay == "closed"
			})
			relay.Store("half-open")
			seen(func(all map[string]figures.Node) bool { return all["b"].Relay == "half-open" && all["a"].Relay == "" })
			stopB()
			seen(func(all map[string]figures.Node) bool {
				n := all["b"]
				return !n.StoppedAt.IsZero() && !n.Silent()
			})
			stopA()
		})
	}
}
