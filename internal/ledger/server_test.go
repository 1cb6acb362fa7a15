package ledger_test

import (
	"database/sql"
	"testing"
	"time"

	"github.com/firstcome/firstcome/internal/flow"
	"github.com/firstcome/firstcome/internal/ledger"
	"github.com/firstcome/firstcome/test/conform"
	"github.com/firstcome/firstcome/test/services"
)

// onServers runs a test on each kind of database that nodes may share.
func onServers(t *testing.T, test func(t *testing.T, kind services.Kind)) {
	for _, kind := range []services.Kind{services.MariaDB, services.PostgreSQL} {
		t.Run(string(kind), func(t *testing.T) { test(t, kind) })
	}
}

// holding is a subject of which nodes share the gate.
type holding struct{ subject }

// Holds is how long the gate holds stock that came back.
func (*holding) Holds() time.Duration { return 250 * time.Millisecond }

// freshOn returns a subject on a new database.
func freshOn(kind services.Kind) func(t *testing.T) conform.Subject {
	return func(t *testing.T) conform.Subject {
		s := &holding{}
		s.SetClock(conform.Epoch)
		s.Ledger = start(t, kind.Database(t), s.now)
		return s
	}
}

func TestTheServersGatesConform(t *testing.T) {
	onServers(t, func(t *testing.T, kind services.Kind) { conform.Gate(t, freshOn(kind)) })
}

// A cluster is three nodes on one database, by the server's clock.
type cluster struct {
	holding
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
