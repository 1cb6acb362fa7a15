// Package firstcometest starts firstcome in a test of a service that calls it, as net/http/httptest starts a server.
//
//	s := firstcometest.New(t)
//	shop := NewShop(s.URL, s.NewKey(t, firstcome.Shop)) // the code under test
//
// The server is firstcome's own: the same HTTP API, the same decisions, a ledger in SQLite. It needs no binary and no
// other process, listens on 127.0.0.1, and forgets everything at its end. It has no console and no metrics, takes no
// users' tokens, and limits no rates.
//
// There is no release yet. A module of yours takes the package from a clone of firstcome, here beside it:
//
//	go mod edit -require github.com/firstcome/firstcome@v0.0.0 -replace github.com/firstcome/firstcome=../firstcome
//	go mod tidy
//
// The first test compiles SQLite too, and takes a few minutes.
package firstcometest

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/client"
	"github.com/firstcome/firstcome/internal/api"
	"github.com/firstcome/firstcome/internal/audit"
	"github.com/firstcome/firstcome/internal/auth"
	"github.com/firstcome/firstcome/internal/httpd"
	"github.com/firstcome/firstcome/internal/issue"
	"github.com/firstcome/firstcome/internal/ledger"
	"github.com/firstcome/firstcome/internal/line"
	"github.com/firstcome/firstcome/internal/operate"
	"github.com/firstcome/firstcome/internal/ops"
)

// stopTime is the time-out of a server's end: longer than a claim may wait, even on a busy machine.
const stopTime = time.Minute

// A Server is firstcome on a port of its own. Make one with New or Start.
type Server struct {
	// URL is the server's URL, like http://127.0.0.1:41873.
	URL string
	// Key is an API key of the role admin.
	Key string
	// Client calls the server with Key.
	Client *client.Client

	ledger *ledger.Ledger
	auth   *auth.Authenticator
	issuer *issue.Issuer
	api    *api.Server
	http   *httpd.Server

	// These end in this order.
	serving, beside, writing part
}

// New starts a server that ends with the test. Its warnings go to the test's output.
func New(t testing.TB) *Server {
	t.Helper()
	s, err := start(t.TempDir(), t.Output())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// Start starts a server with its ledger in a directory, for callers without a test, such as TestMain. A directory that
// an ended server had has its campaigns and coupons, but not the secret of their codes: use a new one. The caller calls Close.
func Start(dir string) (*Server, error) { return start(dir, io.Discard) }

func start(dir string, warnings io.Writer) (*Server, error) {
	ctx := context.Background()
	secret, err := newSecret()
	if err != nil {
		return nil, err
	}
	s := &Server{}
	if s.ledger, err = ledger.Open(ctx, filepath.Join(dir, "firstcome.db"), ledger.Options{Owner: "a test", Secret: secret}); err != nil {
		return nil, fmt.Errorf("start firstcome: %w", err)
	}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, errors.Join(fmt.Errorf("start firstcome: %w", err), s.ledger.Close())
	}
	lines := s.wire(slog.New(slog.NewTextHandler(warnings, &slog.HandlerOptions{Level: slog.LevelWarn})))
	s.writing = run(s.ledger.Run)
	s.beside = run(s.issuer.Run, lines.Run, s.auth.Run, s.api.Run)
	s.serving = run(func(ctx context.Context) error { return s.http.Serve(ctx, ln, nil) })
	s.URL = "http://" + ln.Addr().String()
	if s.Key, err = s.addKey(firstcome.Admin); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	s.Client = client.New(s.URL, s.Key)
	return s, nil
}

// wire creates the parts of a node whose ledger decides, as firstcome serve does.
func (s *Server) wire(log *slog.Logger) *line.Dispatcher {
	lines := line.NewDispatcher(s.ledger.Gate, line.Options{})
	s.issuer = issue.NewIssuer(s.ledger.Gate, issue.Options{OnJoin: lines.Joined, OnChange: lines.Changed})
	terms := api.NewTermsCache(s.ledger.Reads.Terms)
	claims := &issue.Answerer{Issuer: s.issuer, Coupons: s.ledger.Gate, Terms: terms.Terms}
	s.auth = auth.New(auth.Options{Keys: s.ledger.Deployment, Log: log})
	monitor := ops.New(log, "test", "")
	monitor.WatchLedger(s.ledger)
	s.api = api.New(api.Options{
		Ledger: s.ledger.Reads, Keys: s.ledger.Deployment, Terms: terms, Claims: claims, Places: s.ledger.Gate, Operator: operate.New(operate.Ledger{Campaigns: s.ledger.Campaigns, Letters: s.ledger.Recorder, Reads: s.ledger.Reads}, s.issuer, claims), Auth: s.auth,
		Audit: s.audit, Log: log, Observer: monitor, Health: monitor.Health,
	})
	s.http = httpd.New(s.api.HTTP())
	return lines
}

// audit checks the promises in the ledger, as firstcome audit does.
func (s *Server) audit(ctx context.Context, id firstcome.CampaignID) (found api.Audited, err error) {
	found.Report, err = audit.Ledger(ctx, s.ledger.Tables().Source(), id, nil, nil)
	return found, err
}

// NewKey returns a new API key of a role. The server knows it when NewKey returns.
func (s *Server) NewKey(t testing.TB, role firstcome.Role) string {
	t.Helper()
	key, err := s.addKey(role)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func (s *Server) addKey(role firstcome.Role) (string, error) {
	plain, key, err := auth.NewKey("a test", role)
	if err != nil {
		return "", err
	}
	ctx := context.Background()
	if err := s.ledger.Deployment.AddKey(ctx, "a test", key); err != nil {
		return "", err
	}
	return plain, s.auth.Reload(ctx)
}

// Close ends the server after it has answered the requests in flight. Streams end at once. Call it once.
func (s *Server) Close() error {
	if s.Client != nil {
		s.Client.CloseIdle()
	}
	s.api.Drain()
	s.http.Drain()
	served := s.serving.stop()
	ctx, cancel := context.WithTimeout(context.Background(), stopTime)
	defer cancel()
	return errors.Join(served, s.issuer.Stop(ctx), s.beside.stop(), s.writing.stop(), s.ledger.Close())
}

func newSecret() (firstcome.Secret, error) {
	key := make([]byte, firstcome.MinSecret)
	rand.Read(key) // never fails: see its documentation
	return firstcome.NewSecret(key)
}

// A part is goroutines that end together.
type part struct {
	end   context.CancelFunc
	group *errgroup.Group
}

func run(all ...func(context.Context) error) part {
	ctx, end := context.WithCancel(context.Background())
	p := part{end, &errgroup.Group{}}
	for _, each := range all {
		p.group.Go(func() error { return each(ctx) })
	}
	return p
}

// stop ends the part, and returns when it has ended.
func (p part) stop() error {
	p.end()
	return p.group.Wait()
}
