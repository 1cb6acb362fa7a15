package ledger_test

import (
	"context"
	"database/sql"
	"testing"
	"time"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/flow"
	"github.com/firstcome/firstcome/internal/ledger"
	"github.com/firstcome/firstcome/test/conform"
	"github.com/firstcome/firstcome/test/services"
)

// onServers runs a test on each kind of database that nodes may share.
func onServers(t *testing.T, test func(t *testing.T, kind services.Kind)) {
	for _, kind := range []services.Kind{services.MariaDB, services.PostgreSQL} {
		t.Run(string(kind), func(t *testing.T) {
			t.Parallel() // they wait for their servers
			test(t, kind)
		})
	}
}

// cooling is a subject of which nodes share the gate.
type cooling struct{ subject }

// Cools is how long stock that came back cools at the gate.
func (*cooling) Cools() time.Duration { return 250 * time.Millisecond }

// A round is a subject of three nodes on one database, each of which gets every
// third claim. Changes pass through the first.
type round struct {
	cooling
	nodes []*ledger.Ledger
	next  int
}

func (r *round) Claim(ctx context.Context, id firstcome.CampaignID, users []firstcome.UserID) ([]firstcome.Decision, error) {
	r.next++
	return r.nodes[r.next%len(r.nodes)].Claim(ctx, id, users)
}

func (r *round) Holders(ctx context.Context, id firstcome.CampaignID, each func(firstcome.UserID)) (int64, error) {
	return r.nodes[r.next%len(r.nodes)].Holders(ctx, id, each)
}

// freshOn returns a subject on a new database.
func freshOn(kind services.Kind) func(t *testing.T) conform.Subject {
	return func(t *testing.T) conform.Subject {
		r := &round{}
		r.SetClock(conform.Epoch)
		name := kind.Database(t)
		for range 3 {
			r.nodes = append(r.nodes, start(t, name, r.now))
		}
		r.Ledger = r.nodes[0]
		return r
	}
}

func TestTheServersGatesConform(t *testing.T) {
	onServers(t, func(t *testing.T, kind services.Kind) { conform.Gate(t, freshOn(kind)) })
}

// A cluster is three nodes on one database, by the server's clock.
type cluster struct {
	cooling
	nodes []flow.Gate
}

func (c *cluster) Nodes() []flow.Gate { return c.nodes }

func freshCluster(t *testing.T, kind services.Kind) *cluster {
	c := &cluster{}
	name := kind.Database(t)
	for range 3 {
		l := start(t, name, nil)
		c.nodes = append(c.nodes, l)
	}
	c.Ledger = c.nodes[0].(*ledger.Ledger)
	return c
}

func TestClaimsAndChangesThroughThreeNodesAreLinearizable(t *testing.T) {
	onServers(t, func(t *testing.T, kind services.Kind) {
		conform.Linearizable(t, func(t *testing.T) conform.Subject { return freshCluster(t, kind) })
	})
}

// rawServer opens a database beside the ledger, as an intruder would.
func rawServer(t testing.TB, name string) *sql.DB {
	t.Helper()
	db, err := services.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	return db
}
