package ledger_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/flow"
	"github.com/firstcome/firstcome/internal/ledger"
	"github.com/firstcome/firstcome/test/conform"
	"github.com/firstcome/firstcome/test/services"
)

// A subject is a ledger that decides, as conform.Gate looks at it. The test sets its clock.
type subject struct {
	*ledger.Ledger
	clock atomic.Int64
}

func (s *subject) now() time.Time        { return time.Unix(0, s.clock.Load()) }
func (s *subject) SetClock(at time.Time) { s.clock.Store(at.UnixNano()) }

func (s *subject) Create(ctx context.Context, id firstcome.CampaignID, terms firstcome.Terms) error {
	return s.Ledger.Create(ctx, "test", id, terms)
}

func (s *subject) SetTerms(ctx context.Context, id firstcome.CampaignID, edit func(*firstcome.Terms)) error {
	_, err := s.Ledger.SetTerms(ctx, "test", id, 0, edit)
	return err
}

func (s *subject) Switch(ctx context.Context, id firstcome.CampaignID, to string) error {
	_, err := s.Ledger.Switch(ctx, "test", id, 0, ledger.Switch(to))
	return err
}

func (s *subject) Void(ctx context.Context, id firstcome.CampaignID, number int64) error {
	_, err := s.Ledger.Void(ctx, "test", id, number, "test")
	return err
}

func (s *subject) Instants(ctx context.Context, id firstcome.CampaignID) (firstcome.Instants, error) {
	c, err := s.Campaign(ctx, id)
	return c.Instants, err
}

// A killable subject is a file, which goes on with a copy of what is in it.
type killable struct {
	subject
	t    *testing.T
	stop func()
}

func newKillable(t *testing.T) conform.Subject {
	s := &killable{t: t}
	s.SetClock(conform.Epoch)
	s.Ledger, s.stop = serve(t, file(t), ledger.Options{Clock: s.now})
	return s
}

// Kill goes on with what was committed, and with nothing that a stop would write.
func (s *killable) Kill() error {
	left := file(s.t)
	if err := s.Backup(s.t.Context(), left); err != nil {
		return err
	}
	s.stop()
	s.Ledger, s.stop = serve(s.t, left, ledger.Options{Clock: s.now})
	return nil
}

func TestTheSQLiteGateConforms(t *testing.T) {
	t.Parallel()
	conform.Gate(t, newKillable)
}

func TestTheSQLiteGatesLinesConform(t *testing.T) {
	t.Parallel()
	conform.Line(t, newKillable)
}

func TestTheSQLiteGatesLinesOfFeedsConform(t *testing.T) {
	t.Parallel()
	conform.Fed(t, newKillable)
}

func TestClaimsAndChangesThroughAnIssuerAreLinearizable(t *testing.T) {
	t.Parallel()
	conform.Linearizable(t, newKillable)
}

// A fleet is a subject of three nodes on one database, each of which gets every third claim. Changes pass through
// the first.
type fleet struct {
	subject
	nodes []flow.Gate
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
		f.nodes = append(f.nodes, start(t, name, clock))
	}
	f.Ledger = f.nodes[0].(*ledger.Ledger)
	return f
}

// Cools is how long stock that came back cools at the gate.
func (*fleet) Cools() time.Duration { return 250 * time.Millisecond }

func (f *fleet) Nodes() []flow.Gate { return f.nodes }

// turn returns the next node.
func (f *fleet) turn() *ledger.Ledger {
	f.next++
	return f.nodes[f.next%len(f.nodes)].(*ledger.Ledger)
}

func (f *fleet) Claim(ctx context.Context, id firstcome.CampaignID, users []firstcome.UserID) ([]firstcome.Decision, error) {
	return f.turn().Claim(ctx, id, users)
}

func (f *fleet) Issue(ctx context.Context, actor string, id firstcome.CampaignID, users []firstcome.UserID) ([]firstcome.Decision, error) {
	return f.turn().Issue(ctx, actor, id, users)
}

func (f *fleet) Serve(ctx context.Context, id firstcome.CampaignID, limit int) (flow.Served, error) {
	return f.turn().Serve(ctx, id, limit)
}

func (f *fleet) Leave(ctx context.Context, id firstcome.CampaignID, user firstcome.UserID) error {
	return f.turn().Leave(ctx, id, user)
}

func (f *fleet) Begin(ctx context.Context, id firstcome.CampaignID, generation, first int64) (firstcome.Line, error) {
	return f.turn().Begin(ctx, id, generation, first)
}

func (f *fleet) ServeTurn(ctx context.Context, id firstcome.CampaignID, turn flow.Turn) (flow.Turned, error) {
	return f.turn().ServeTurn(ctx, id, turn)
}

func (f *fleet) LeaveOf(ctx context.Context, id firstcome.CampaignID, user firstcome.UserID, through firstcome.Ticket) error {
	return f.turn().LeaveOf(ctx, id, user, through)
}

func (f *fleet) Holders(ctx context.Context, id firstcome.CampaignID, each func(firstcome.UserID)) (int64, error) {
	return f.nodes[f.next%len(f.nodes)].Holders(ctx, id, each)
}

func TestF16F27F62TheServersGatesConform(t *testing.T) {
	onServers(t, func(t *testing.T, kind services.Kind) {
		conform.Gate(t, func(t *testing.T) conform.Subject { return newFleet(t, kind, false) })
	})
}

func TestTheServersGatesLinesConform(t *testing.T) {
	onServers(t, func(t *testing.T, kind services.Kind) {
		conform.Line(t, func(t *testing.T) conform.Subject { return newFleet(t, kind, false) })
	})
}

func TestTheServersGatesLinesOfFeedsConform(t *testing.T) {
	onServers(t, func(t *testing.T, kind services.Kind) {
		conform.Fed(t, func(t *testing.T) conform.Subject { return newFleet(t, kind, false) })
	})
}

func TestClaimsAndChangesThroughThreeNodesAreLinearizable(t *testing.T) {
	onServers(t, func(t *testing.T, kind services.Kind) {
		conform.Linearizable(t, func(t *testing.T) conform.Subject { return newFleet(t, kind, true) })
	})
}
