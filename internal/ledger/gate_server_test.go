//go:build !check

package ledger_test

import (
	"context"
	"testing"
	"time"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/gate"
	"github.com/firstcome/firstcome/internal/sqlgate"
	"github.com/firstcome/firstcome/test/conform"
	"github.com/firstcome/firstcome/test/services"
)

// A fleet is a subject of three nodes on one database, each of which gets every third claim. Changes pass through
// the first.
type fleet struct {
	subject
	nodes []gate.Decider
	next  int
}

// newFleet returns a fleet on a new database, which decides by the test's clock or the server's.
func newFleet(t *testing.T, kind services.Kind, servers bool) *fleet {
	f := &fleet{}
	f.SetClock(conform.Epoch)
	name, clock := kind.Database(t), f.now
	if servers {
		clock = nil
	}
	for range 3 {
		node := start(t, name, clock)
		if f.Ledger == nil {
			f.Ledger, f.Gate = node, node.Gate
		}
		f.nodes = append(f.nodes, node.Gate)
	}
	return f
}

// Quarantine is how long returned stock is quarantined at the gate.
func (*fleet) Quarantine() time.Duration { return 250 * time.Millisecond }

func (f *fleet) Nodes() []gate.Decider { return f.nodes }

// turn returns the next node.
func (f *fleet) turn() *sqlgate.Gate {
	f.next++
	return f.nodes[f.next%len(f.nodes)].(*sqlgate.Gate)
}

func (f *fleet) Claim(ctx context.Context, id firstcome.CampaignID, users []firstcome.UserID) ([]firstcome.Decision, error) {
	return f.turn().Claim(ctx, id, users)
}

func (f *fleet) Issue(ctx context.Context, order gate.Order, id firstcome.CampaignID, users []firstcome.UserID) ([]firstcome.Decision, error) {
	return f.turn().Issue(ctx, order, id, users)
}

func (f *fleet) Serve(ctx context.Context, id firstcome.CampaignID, limit int) (gate.Served, error) {
	return f.turn().Serve(ctx, id, limit)
}

func (f *fleet) Leave(ctx context.Context, id firstcome.CampaignID, user firstcome.UserID) (firstcome.Place, error) {
	return f.turn().Leave(ctx, id, user)
}

func (f *fleet) Holders(ctx context.Context, id firstcome.CampaignID, each func(firstcome.UserID)) (int64, error) {
	return f.nodes[f.next%len(f.nodes)].Holders(ctx, id, each)
}

func TestClaimsAndChangesThroughThreeNodesAreLinearizable(t *testing.T) {
	onServers(t, func(t *testing.T, kind services.Kind) {
		conform.Linearizable(t, func(t *testing.T) conform.Subject { return newFleet(t, kind, true) })
	})
}
