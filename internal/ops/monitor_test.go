package ops_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/issue"
	"github.com/firstcome/firstcome/internal/ledger"
	"github.com/firstcome/firstcome/internal/ops"
	"github.com/firstcome/firstcome/test/services"
	"github.com/firstcome/firstcome/test/stage"
)

func TestMain(m *testing.M) { services.Main(m) }

// A watched ledger reports to a Monitor, whose log is a text.
type watched struct {
	*ops.Monitor
	t      testing.TB
	ledger *ledger.Ledger
	file   string       // the ledger's
	log    bytes.Buffer // slog writes a line at a time, under its lock
}

// watch opens a ledger for the gate with a name, or "" for the ledger itself, and watches it.
func watch(t testing.TB, gate string) *watched {
	t.Helper()
	w := &watched{t: t}
	w.Monitor = ops.New(slog.New(slog.NewTextHandler(&w.log, nil)), "v9", "abc")
	path := filepath.Join(t.TempDir(), "firstcome.db")
	var err error
	w.file = path
	w.ledger, err = ledger.Open(t.Context(), path, ledger.Options{Secret: stage.Secret(), Gate: gate, OnCommit: w.Commit})
	stage.Must(t, err)
	stage.Serve(t, w.ledger)
	w.WatchLedger(w.ledger)
	return w
}

func (w *watched) create(id firstcome.CampaignID, quantity int64) {
	w.t.Helper()
	stage.Must(w.t, w.ledger.Campaigns.Create(w.t.Context(), "test", id, stage.Terms(quantity)))
}

// get asks the ops listener.
func (w *watched) get(path string) (status int, body string) {
	w.t.Helper()
	answer := httptest.NewRecorder()
	w.Handler().ServeHTTP(answer, httptest.NewRequest(http.MethodGet, path, http.NoBody))
	text, err := io.ReadAll(answer.Body)
	stage.Must(w.t, err)
	return answer.Code, string(text)
}

func (w *watched) want(lines ...string) {
	w.t.Helper()
	_, text := w.get("/metrics")
	for _, line := range lines {
		if !strings.Contains(text, "\n"+line) {
			w.t.Errorf("the metrics have no %s", line)
		}
	}
}

func (w *watched) wantNone(lines ...string) {
	w.t.Helper()
	_, text := w.get("/metrics")
	for _, line := range lines {
		if strings.Contains(text, "\n"+line) {
			w.t.Errorf("the metrics have %s", line)
		}
	}
}

func TestTheMetricsSayWhatIsOnSaleAndWhichFirstcomeThisIs(t *testing.T) {
	w := watch(t, "")
	w.create("c", 3)
	w.create("endless", firstcome.Unlimited)
	w.create("over", 3)
	stage.Must(t, stage.Err(w.ledger.Campaigns.ChangeState(t.Context(), "test", "over", 0, firstcome.ChangeClose)))
	stage.Must(t, stage.Err(w.ledger.Gate.Claim(t.Context(), "c", []firstcome.UserID{"mina"})))
	stage.Must(t, stage.Err(w.ledger.Campaigns.Void(t.Context(), "test", "c", 1, "test")))
	w.want(`firstcome_quantity_coupons{campaign="c"} 3`, `firstcome_in_force_coupons{campaign="c"} 0`, `firstcome_issued_coupons{campaign="c"} 1`,
		`firstcome_issued_coupons{campaign="endless"} 0`, `firstcome_campaigns_without_series 0`, `firstcome_ledger_up 1`, `firstcome_ledger_old_transaction_seconds 0`, `firstcome_commit_seconds_count `,
		`firstcome_build_info{commit="abc",goversion="go`, `go_goroutines `, `go_memstats_heap_alloc_bytes `, `process_resident_memory_bytes `, `process_open_fds `)
	w.wantNone(`firstcome_quantity_coupons{campaign="endless"}`, `firstcome_in_force_coupons{campaign="over"}`)
}

// TestOnlyAClaimThatMayHaveBeenDecidedIsUnknown checks that a client cannot page an operator by asking for a missing campaign, by asking too often,
// or by leaving.
func TestOnlyAClaimThatMayHaveBeenDecidedIsUnknown(t *testing.T) {
	w := watch(t, "")
	w.WatchClaims(issue.NewIssuer(w.ledger.Gate, issue.Options{}), func() (open, evicted, shed int64) { return 3, 2, 1 })
	left, leave := context.WithCancel(t.Context())
	leave()
	w.Undecided(t.Context(), "spring", errors.New("no answer"))
	for _, why := range []error{firstcome.ErrTooMany, firstcome.ErrGateUnavailable, firstcome.ErrGateFull, firstcome.ErrLineFull, firstcome.ErrStopping} {
		w.Undecided(t.Context(), "spring", fmt.Errorf("decide: %w", why))
	}
	w.Undecided(left, "spring", firstcome.ErrGateMismatch)
	w.Undecided(left, "spring", firstcome.ErrNoCampaign)
	w.Undecided(left, "spring", context.Canceled)
	w.Decided("spring", firstcome.Issued)
	w.Claimed("spring", firstcome.SoldOut, time.Second)
	_, text := w.get("/metrics")
	got := map[string]int{}
	for _, found := range regexp.MustCompile(`(?m)^firstcome_claims_total\{outcome="(\w+)"\} (\d+)$`).FindAllStringSubmatch(text, -1) {
		got[found[1]], _ = strconv.Atoi(found[2])
	}
	want := map[string]int{"unknown": 1, "shed": 1, "gate_unavailable": 1, "gate_full": 1, "line_full": 1, "stopping": 1, "mismatch": 1, "not_found": 1, "gone": 1}
	for _, o := range firstcome.Outcomes() {
		want[o.String()] = 0
	}
	want["issued"], want["sold_out"] = 1, 1
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the claims by outcome (-want +got):\n%s", diff)
	}
	w.want(`firstcome_claim_seconds_count 1`, `firstcome_open_connections 3`, `firstcome_evicted_connections_total 2`, `firstcome_shed_connections_total 1`,
		`firstcome_waiting_claims 0`, `firstcome_shed_claims_total 0`)
}

func TestTheMetricsSayWhatTheIssuerDoesAtTheGate(t *testing.T) {
	w := watch(t, "")
	issuer := issue.NewIssuer(w.ledger.Gate, issue.Options{OnBatch: w.Batch})
	w.WatchClaims(issuer, func() (open, evicted, shed int64) { return 0, 0, 0 })
	w.create("c", 3)
	if _, err := issuer.Claim(t.Context(), "c", "mina"); err != nil {
		t.Error(err)
	}
	if _, err := issuer.Claim(t.Context(), "nowhere", "mina"); !errors.Is(err, firstcome.ErrNoCampaign) {
		t.Errorf("a claim of no campaign ends with %v", err)
	}
	w.want(`firstcome_batch_claims_count 2`, `firstcome_gate_seconds_count 2`, `firstcome_batch_failures_total 0`)
	if strings.Contains(w.log.String(), "not decided") {
		t.Errorf("it is logged: %s", &w.log)
	}
}

func TestWhatFailsThousandsOfTimesIsLoggedOnceASecond(t *testing.T) {
	w := watch(t, "")
	for range 1000 {
		w.Warn("it fails")
	}
	if n := strings.Count(w.log.String(), "it fails"); n < 1 || n > 5 {
		t.Errorf("it is logged %d times", n)
	}
}
