package ledger_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/ledger"
	"github.com/firstcome/firstcome/internal/sqlgate"
	"github.com/firstcome/firstcome/test/conform"
)

// A subject is a ledger that decides, as conform.Gate looks at it. The test sets its clock.
type subject struct {
	*ledger.Ledger
	*sqlgate.Gate
	clock atomic.Int64
}

func (s *subject) now() time.Time        { return time.Unix(0, s.clock.Load()) }
func (s *subject) SetClock(at time.Time) { s.clock.Store(at.UnixNano()) }

func (s *subject) Create(ctx context.Context, id firstcome.CampaignID, terms firstcome.Terms) error {
	return s.Ledger.Campaigns.Create(ctx, "test", id, terms)
}

func (s *subject) SetTerms(ctx context.Context, id firstcome.CampaignID, edit func(*firstcome.Terms)) error {
	_, err := s.Ledger.Campaigns.SetTerms(ctx, "test", id, 0, edit)
	return err
}

func (s *subject) Change(ctx context.Context, id firstcome.CampaignID, to string) error {
	_, err := s.Ledger.Campaigns.ChangeState(ctx, "test", id, 0, firstcome.ChangeKind(to))
	return err
}

func (s *subject) Void(ctx context.Context, id firstcome.CampaignID, number int64) error {
	_, err := s.Ledger.Campaigns.Void(ctx, "test", id, number, "test")
	return err
}

func (s *subject) Instants(ctx context.Context, id firstcome.CampaignID) (firstcome.Instants, error) {
	c, err := s.Reads.Campaign(ctx, id)
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
	s.Gate = s.Ledger.Gate
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
	s.Gate = s.Ledger.Gate
	return nil
}

func TestClaimsAndChangesThroughAnIssuerAreLinearizable(t *testing.T) {
	t.Parallel()
	conform.Linearizable(t, newKillable)
}
