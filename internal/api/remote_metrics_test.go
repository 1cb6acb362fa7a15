package api_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/api"
	"github.com/firstcome/firstcome/internal/flow"
)

// A failingGate is a remote gate that does nothing but fail.
type failingGate struct {
	flow.RemoteGate
	err error
}

func (g *failingGate) Claim(context.Context, firstcome.CampaignID, []firstcome.UserID) ([]firstcome.Decision, error) {
	return nil, g.err
}

// A fatalError is what only an operator ends.
type fatalError struct{ error }

func (fatalError) Fatal() bool { return true }

// A oneBatch is a source with one batch, and a keeper that takes it at the second try.
type oneBatch struct {
	batch flow.Batch
	tries int
	done  chan struct{}
}

func (s *oneBatch) Drain(ctx context.Context, to flow.Sink) error {
	_, err := to(ctx, s.batch)
	if err == nil {
		close(s.done)
		<-ctx.Done()
	}
	return err
}

func (s *oneBatch) Record(context.Context, firstcome.CampaignID, []firstcome.Coupon) (flow.Settled, error) {
	if s.tries++; s.tries == 1 {
		return flow.Settled{}, errors.New("the ledger is away")
	}
	return flow.Settled{Through: 2}, nil
}

func (s *oneBatch) Bury(context.Context, firstcome.CampaignID, []flow.DeadLetter) (flow.Settled, error) {
	return flow.Settled{}, nil
}

// metrics returns what a server's ops address says.
func (s *shop) metrics() string {
	s.t.Helper()
	w := httptest.NewRecorder()
	s.server.Ops().ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/metrics", http.NoBody))
	text, err := io.ReadAll(w.Body)
	if err != nil || w.Code != http.StatusOK {
		s.t.Fatalf("/metrics answers %d, %v", w.Code, err)
	}
	return string(text)
}

func (s *shop) wantMetrics(want ...string) {
	s.t.Helper()
	text := s.metrics()
	for _, line := range want {
		if !strings.Contains(text, "\n"+line) {
			s.t.Errorf("the metrics have no %s", line)
		}
	}
}

func TestTheMetricsOfARemoteGateSayWhatIsNotRecorded(t *testing.T) {
	gate := &failingGate{}
	source := &oneBatch{done: make(chan struct{})}
	source.batch = flow.Batch{Campaign: "c", Coupons: []firstcome.Coupon{
		{Campaign: "c", Number: 1, User: "a", IssuedAt: time.Now().Add(-time.Minute)}, {Campaign: "c", Number: 2, User: "b"},
	}}
	recorder := flow.NewRecorder(source, source, flow.RecorderLimits{})
	var asked []flow.Revision
	var lagError error
	s := open(t, func(s *shop, c *api.Config) {
		s.issuer = flow.NewIssuer(gate, flow.Limits{})
		c.Issuer = s.issuer
		c.Remote = &api.Remote{
			Gate: gate, Name: "redis:x", Changer: flow.NewChanger(s.ledger, gate), Recorded: flow.NewRecorded(gate), Recorder: recorder,
			Lag: func(_ context.Context, active []flow.Revision) ([]flow.Lag, error) {
				asked = active
				return []flow.Lag{{Campaign: "c", Numbers: 3, Oldest: 2 * time.Second}, {Campaign: "d", Numbers: 4, Oldest: time.Second}}, lagError
			},
		}
	})
	if _, err := s.ledger.Create(t.Context(), "test", "c", firstcome.Terms{Name: "c", Quantity: 5, Answer: firstcome.Recorded, Benefit: []byte(`{}`)}); err != nil {
		t.Fatal(err)
	}
	journal := `{gate="redis:x",ledger="` + s.ledger.Identity() + `"} `
	s.wantMetrics(`firstcome_backlog_coupons`+journal+`7`, `firstcome_backlog_age_seconds`+journal+`2`, `firstcome_gate_up 1`, `firstcome_ledger_up 1`,
		`firstcome_open_dead_letters 0`, `firstcome_pending_changes 0`, `firstcome_unrecorded_claims 0`, `firstcome_gate_epoch{campaign="c"} 1`,
		`firstcome_breaker_state`+journal+`0`, `firstcome_changes_total{result="refused"} 0`, `firstcome_dead_letters_total 0`)
	if len(asked) != 1 || asked[0] != (flow.Revision{Campaign: "c", Version: 1, Epoch: 1, Marker: asked[0].Marker}) {
		t.Errorf("the backlog is that of %v", asked)
	}

	running, stop := context.WithCancel(t.Context())
	ran := make(chan error, 1)
	go func() { ran <- recorder.Run(running) }()
	<-source.done
	stop()
	if err := <-ran; err != nil {
		t.Error(err)
	}
	s.wantMetrics(`firstcome_recorded_coupons_total 2`, `firstcome_recorded_batches_total 1`, `firstcome_record_retries_total 1`,
		`firstcome_record_seconds_count 2`, `firstcome_record_lag_seconds_bucket{le="30"} 0`, `firstcome_record_lag_seconds_count 1`)

	lagError = errors.New("no answer")
	s.wantMetrics(`firstcome_gate_up 0`, `firstcome_ledger_up 1`)
	if strings.Contains(s.metrics(), "\nfirstcome_backlog_coupons") {
		t.Error("a gate that does not answer has a backlog")
	}
}

func TestEveryFailureOfAGateIsCountedByItsClass(t *testing.T) {
	gate := &failingGate{}
	s := open(t, func(s *shop, c *api.Config) {
		s.issuer = flow.NewIssuer(gate, flow.Limits{})
		c.Issuer = s.issuer
		c.Remote = &api.Remote{Gate: gate, Name: "redis:x", Changer: flow.NewChanger(s.ledger, gate), Recorded: flow.NewRecorded(gate)}
	})
	ran := make(chan error, 1)
	running, stop := context.WithCancel(t.Context())
	go func() { ran <- s.issuer.Run(running) }()
	for class, err := range map[string]error{
		"safe": firstcome.ErrBusy, "unknown": errors.New("no answer"), "fatal": fatalError{errors.New("no right")},
		"lost": flow.ErrLost, "mismatch": firstcome.ErrGateMismatch,
	} {
		gate.err = err
		if _, got := s.issuer.Claim(t.Context(), "c", "u"); !errors.Is(got, err) {
			t.Errorf("a claim at a gate that fails with %v ends with %v", err, got)
		}
		s.wantMetrics(`firstcome_gate_failures_total{class="` + class + `"} 1`)
	}
	stop()
	if err := <-ran; err != nil {
		t.Error(err)
	}
}

// A lostGate has lost every campaign.
type lostGate struct{}

func (lostGate) State(context.Context, firstcome.CampaignID) (flow.GateState, error) {
	return flow.GateState{}, flow.ErrLost
}

func (lostGate) Retire(context.Context, firstcome.CampaignID) error { return nil }

// A bookOfTwo is a ledger with a campaign to retire and one to forget.
type bookOfTwo struct{}

func (bookOfTwo) Retirable(context.Context, time.Duration) ([]firstcome.CampaignID, error) {
	return []firstcome.CampaignID{"over"}, nil
}

func (bookOfTwo) Retire(context.Context, firstcome.CampaignID, flow.GateState, time.Duration) (bool, error) {
	return true, nil
}

func (bookOfTwo) Unforgotten(context.Context, time.Duration) ([]firstcome.CampaignID, error) {
	return []firstcome.CampaignID{"retired"}, nil
}

func (bookOfTwo) Forgotten(context.Context, firstcome.CampaignID) error { return nil }

func TestTheMetricsSayWhatIsRetiredAndWhatIsAlarming(t *testing.T) {
	gate := &failingGate{}
	retirer := flow.NewRetirer(bookOfTwo{}, lostGate{}, 0)
	var alarms int64
	var logged bytes.Buffer
	s := open(t, func(s *shop, c *api.Config) {
		c.Remote = &api.Remote{
			Gate: gate, Name: "redis:x", Changer: flow.NewChanger(s.ledger, gate), Recorded: flow.NewRecorded(gate),
			Retirer: retirer, Alarms: func() int64 { return alarms },
		}
		c.Log = slog.New(slog.NewTextHandler(&logged, nil))
	})
	s.wantMetrics(`firstcome_retirements_total{result="failed"} 0`, `firstcome_journal_alarms_total 0`)
	if err := retirer.Look(t.Context()); !errors.Is(err, flow.ErrLost) {
		t.Errorf("the look ends with %v", err)
	}
	if text := logged.String(); !strings.Contains(text, "was not retired") || !strings.Contains(text, "retire over: "+flow.ErrLost.Error()) {
		t.Errorf("the log says %q", text)
	}
	alarms = 3
	s.wantMetrics(`firstcome_retirements_total{result="failed"} 1`, `firstcome_retirements_total{result="forgotten"} 1`,
		`firstcome_retirements_total{result="retired"} 0`, `firstcome_journal_alarms_total 3`)
}

func TestAClaimOfACampaignThatIsNotThereIsNoFailure(t *testing.T) {
	var logged bytes.Buffer
	s := open(t, func(_ *shop, c *api.Config) { c.Log = slog.New(slog.NewTextHandler(&logged, nil)) })
	if r := s.claim("nowhere", "mina"); r.status != 404 {
		t.Errorf("a claim of no campaign got %d", r.status)
	}
	s.wantMetrics(`firstcome_batch_failures_total 0`)
	if strings.Contains(logged.String(), "not decided") {
		t.Errorf("it is logged: %s", logged.String())
	}
}
