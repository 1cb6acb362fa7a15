package ledger_test

import (
	"context"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/ledger"
	"github.com/firstcome/firstcome/test/conform"
	"github.com/firstcome/firstcome/test/services"
	"github.com/firstcome/firstcome/test/stage"
)

func TestMain(m *testing.M) { services.Main(m) }

func TestTheSQLiteGateConforms(t *testing.T) {
	conform.Gate(t, fresh)
}

func TestClaimsAndChangesThroughAnIssuerAreLinearizable(t *testing.T) {
	conform.Linearizable(t, fresh)
}

func fresh(t *testing.T) conform.Subject {
	s := &killable{t: t}
	s.SetClock(conform.Epoch)
	s.Ledger, s.stop = open(t, filepath.Join(t.TempDir(), "firstcome.db"), s.now)
	t.Cleanup(func() { s.stop() })
	return s
}

// A killable subject is a file, which goes on with a copy of what is in it.
type killable struct {
	subject
	t    *testing.T
	stop func()
}

// Kill goes on with what was committed, and with nothing that a stop would write.
func (s *killable) Kill() error {
	left := filepath.Join(s.t.TempDir(), "firstcome.db")
	if err := s.Backup(s.t.Context(), left); err != nil {
		return err
	}
	s.stop()
	s.Ledger, s.stop = open(s.t, left, s.now)
	return nil
}

// A subject is a ledger whose clock the test sets.
type subject struct {
	*ledger.Ledger
	clock atomic.Int64
}

func (s *subject) now() time.Time        { return time.Unix(0, s.clock.Load()) }
func (s *subject) SetClock(at time.Time) { s.clock.Store(at.UnixNano()) }

func (s *subject) Create(ctx context.Context, id firstcome.CampaignID, terms firstcome.Terms) error {
	_, err := s.Ledger.Create(ctx, "test", id, terms)
	return err
}

func (s *subject) SetTerms(ctx context.Context, id firstcome.CampaignID, edit func(*firstcome.Terms)) error {
	_, err := s.Ledger.SetTerms(ctx, "test", id, 0, edit)
	return err
}

func (s *subject) Switch(ctx context.Context, id firstcome.CampaignID, to string) error {
	_, err := s.Ledger.Switch(ctx, "test", id, ledger.Switch(to))
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

// secret returns the secret of the tests.
func secret(t testing.TB) firstcome.Secret {
	t.Helper()
	return stage.Secret()
}

// start opens a ledger, runs it, and stops it when the test ends.
func start(t testing.TB, path string, clock func() time.Time) *ledger.Ledger {
	t.Helper()
	l, stop := open(t, path, clock)
	t.Cleanup(stop)
	return l
}

// open opens and runs a ledger until stop is called.
func open(t testing.TB, path string, clock func() time.Time) (l *ledger.Ledger, stop func()) {
	t.Helper()
	l, err := ledger.Open(context.Background(), path, ledger.Options{Owner: "a test", Secret: secret(t), Clock: clock})
	stage.Must(t, err)
	return l, run(t, l)
}

// run runs a ledger until stop is called, which closes it.
func run(t testing.TB, l *ledger.Ledger) (stop func()) {
	t.Helper()
	return stage.Serve(t, l)
}
