package ops_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/gate"
	"github.com/firstcome/firstcome/internal/ops"
	"github.com/firstcome/firstcome/internal/recovery"
	"github.com/firstcome/firstcome/test/services"
	"github.com/firstcome/firstcome/test/stage"
)

func TestANodeIsReadyUntilItDrains(t *testing.T) {
	w := watch(t, "")
	for path, want := range map[string]string{
		"/livez": `{"status":"ok"}`, "/readyz": `{"status":"ready"}`, "/readyz?verbose": `{"status":"ready","version":"v9","ledger":"ok"}`,
	} {
		if status, body := w.get(path); status != http.StatusOK || body != want {
			t.Errorf("%s answers %d %s", path, status, body)
		}
	}
	w.Health.Drain()
	w.Health.Drain()
	if status, body := w.get("/readyz?verbose"); status != http.StatusServiceUnavailable || body != `{"status":"draining","version":"v9","ledger":"ok"}` {
		t.Errorf("a draining node answers %d %s", status, body)
	}
	if status, _ := w.get("/livez"); status != http.StatusOK {
		t.Errorf("a draining node is said to be dead: %d", status)
	}
}

// TestANodeThatDecidesNoOpenCampaignIsNotReady has campaigns with another code secret, or another gate.
func TestANodeThatDecidesNoOpenCampaignIsNotReady(t *testing.T) {
	for _, row := range []struct {
		foreign, own []firstcome.CampaignID
		closed       bool   // the foreign ones
		column       string // of which they have another value than this node
		want         int
	}{
		{nil, nil, false, "secret", http.StatusOK},
		{[]firstcome.CampaignID{"a", "b"}, nil, false, "secret", http.StatusServiceUnavailable},
		{[]firstcome.CampaignID{"a", "b"}, nil, false, "gate", http.StatusServiceUnavailable},
		{[]firstcome.CampaignID{"a", "b"}, nil, true, "secret", http.StatusOK},
		{[]firstcome.CampaignID{"a"}, []firstcome.CampaignID{"b"}, false, "secret", http.StatusOK},
		{[]firstcome.CampaignID{"a"}, []firstcome.CampaignID{"b"}, false, "gate", http.StatusOK},
	} {
		w := watch(t, "")
		for _, id := range slices.Concat(row.foreign, row.own) {
			w.create(id, 1)
		}
		db := services.Beside(t, w.file)
		for _, id := range row.foreign {
			stage.Must(t, stage.Err(db.Exec(`UPDATE campaigns SET `+row.column+` = 'redis:another', closed = ? WHERE id = ?`, row.closed, id)))
		}
		status, body := w.get("/readyz?verbose")
		if status != row.want || strings.Contains(body, `"status":"mismatch"`) != (row.want != http.StatusOK) || strings.Contains(body, "another gate or code secret") != (row.want != http.StatusOK) {
			t.Errorf("%+v: %d %s", row, status, body)
		}
		told := httptest.NewRecorder()
		w.Health.Ready(told, httptest.NewRequest(http.MethodGet, "/readyz", http.NoBody), func(*http.Request) bool { return false })
		if again := told.Header().Get("Retry-After"); told.Code != row.want || (again == "5") != (row.want != http.StatusOK) {
			t.Errorf("%+v: %d, and to ask again after %q s", row, told.Code, again)
		}
	}
}

// TestVerboseReadinessAsksTheGate also checks that a node stays ready while its gate does not answer.
func TestVerboseReadinessAsksTheGate(t *testing.T) {
	w := watch(t, "redis:one")
	var away error
	w.WatchGate(ops.Gate{Name: "redis:one", Ping: func(context.Context) error { return away }})
	for _, away = range []error{nil, errors.New("connection refused")} {
		status, body := w.get("/readyz?verbose")
		if status != http.StatusOK || strings.Contains(body, `"gate":"does not answer: the log says why"`) != (away != nil) {
			t.Errorf("the gate answers %v: %d %s", away, status, body)
		}
	}
}

// TestVerboseReadinessNamesTheCampaignsThatTheGateDoesNotDecide names some of many, and stays ready.
func TestVerboseReadinessNamesTheCampaignsThatTheGateDoesNotDecide(t *testing.T) {
	w, away := watch(t, "redis:one"), error(nil)
	machine := recovery.New(nil, nil, nil, recovery.NewWatch(nil), nil)
	w.WatchGate(ops.Gate{Name: "redis:one", Recovery: machine, Ping: func(context.Context) error { return away }})
	said := func(want string) {
		t.Helper()
		if status, body := w.get("/readyz?verbose"); status != http.StatusOK || !strings.Contains(body, want) {
			t.Errorf("it says %d %s, want %s", status, body, want)
		}
	}
	said(`"ledger":"ok"}`)
	for n := range 12 {
		id := firstcome.CampaignID(fmt.Sprintf("c-%02d", n))
		machine.Refuse(id, &gate.StaleEpochError{Campaign: id})
		if n == 0 {
			said(`"gate":"decides nothing of 1 campaigns: c-00. `)
		}
	}
	said(`"gate":"decides nothing of 12 campaigns: c-00, c-01, c-02, c-03, c-04, c-05, c-06, c-07, c-08, c-09 and 2 more. `)
	away = errors.New("connection refused")
	said(`"gate":"does not answer: the log says why; decides nothing of 12 campaigns: `)
	if _, body := w.get("/readyz"); strings.Contains(body, "c-00") {
		t.Errorf("a short answer says %s", body)
	}
}

// TestALargeBodyIsNotRead sends a large body to the handler of net/http/pprof that reads bodies.
func TestALargeBodyIsNotRead(t *testing.T) {
	w := watch(t, "")
	body := strings.NewReader(strings.Repeat("0x1+", 1<<20))
	w.Handler().ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodPost, "/debug/pprof/symbol", body))
	if read := body.Size() - int64(body.Len()); read > 128<<10 {
		t.Errorf("%d bytes were read", read)
	}
}

func TestALedgerThatDoesNotTakeWritesIsShownUntilItDoes(t *testing.T) {
	w := watch(t, "")
	w.Commit(1, time.Millisecond, errors.New("the disk is full"))
	w.want(`firstcome_commit_failures_total 1`)
	if status, body := w.get("/readyz?verbose"); status != http.StatusOK || !strings.Contains(body, `"did not take the last write: the log says why"`) {
		t.Errorf("while it fails: %d %s", status, body)
	}
	w.create("c", 1)
	if status, body := w.get("/readyz?verbose"); status != http.StatusOK || !strings.Contains(body, `"ledger":"ok"`) {
		t.Errorf("once it writes: %d %s", status, body)
	}
}

func TestWhoMayNotLookLearnsNothingOfTheLedger(t *testing.T) {
	w := watch(t, "")
	answer := httptest.NewRecorder()
	w.Health.Ready(answer, httptest.NewRequest(http.MethodGet, "/readyz?verbose", http.NoBody), func(*http.Request) bool { return false })
	if body := answer.Body.String(); body != `{"status":"ready"}` {
		t.Errorf("it answers %s", body)
	}
}

// TestTheOpsListenerOfThisMachineAnswersToItsOwnNames guards against DNS rebinding: a page whose name resolves to this machine could otherwise read
// profiles through a browser on it.
func TestTheOpsListenerOfThisMachineAnswersToItsOwnNames(t *testing.T) {
	ops := httptest.NewServer(watch(t, "").Handler())
	defer ops.Close()
	_, port, err := net.SplitHostPort(ops.Listener.Addr().String())
	stage.Must(t, err)
	for host, want := range map[string]int{"127.0.0.1": 200, "localhost": 200, "[::1]": 200, "evil.example": 403, "localhost.evil.example": 403, "10.0.0.11": 403} {
		for _, path := range []string{"/metrics", "/debug/pprof/cmdline", "/debug/pprof/goroutine?debug=1", "/livez", "/readyz?verbose"} {
			r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, ops.URL+path, http.NoBody)
			stage.Must(t, err)
			r.Host = host + ":" + port
			answer, err := ops.Client().Do(r)
			stage.Must(t, err)
			_ = answer.Body.Close()
			if answer.StatusCode != want {
				t.Errorf("as %s %s answers %d, want %d", host, path, answer.StatusCode, want)
			}
		}
	}
	elsewhere := httptest.NewRequest(http.MethodGet, "http://node-1.internal:8081/metrics", http.NoBody)
	at := context.WithValue(t.Context(), http.LocalAddrContextKey, &net.TCPAddr{IP: net.IPv4(10, 0, 0, 11), Port: 8081})
	answer := httptest.NewRecorder()
	ops.Config.Handler.ServeHTTP(answer, elsewhere.WithContext(at))
	if answer.Code != http.StatusOK {
		t.Errorf("on an inner network, by a name of it, it answers %d", answer.Code)
	}
}
