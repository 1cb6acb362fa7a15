package ops

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/http"
	"net/http/pprof"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/auth"
	"github.com/firstcome/firstcome/internal/ledger"
)

// Handler serves what only operators may see: metrics, profiles and health. It belongs on a listener of its own, never
// on the public one. On a loopback address it only answers requests for a loopback address.
func (m *Monitor) Handler() http.Handler {
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{}))
	mux.HandleFunc("/debug/pprof/", pprof.Index)
	mux.HandleFunc("/debug/pprof/cmdline", pprof.Cmdline)
	mux.HandleFunc("/debug/pprof/profile", pprof.Profile)
	mux.HandleFunc("/debug/pprof/symbol", pprof.Symbol)
	mux.HandleFunc("/debug/pprof/trace", pprof.Trace)
	mux.HandleFunc("GET /livez", live)
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, r *http.Request) {
		m.Health.Ready(w, r, func(*http.Request) bool { return true })
	})
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Cache-Control", "no-store")
		at, _ := r.Context().Value(http.LocalAddrContextKey).(*net.TCPAddr)
		if at != nil && at.IP.IsLoopback() && !auth.IsLoopback(r.Host) {
			http.Error(w, "ask for localhost or the loopback address itself: metrics and profiles answer no other host name here", http.StatusForbidden)
			return
		}
		r.Body = http.MaxBytesReader(w, r.Body, maxBody) // pprof reads symbols from the body
		mux.ServeHTTP(w, r)
	})
}

// maxBody is the longest body, in bytes, and idleTime how long a connection may wait for its next request: scrapes come each minute or sooner.
const (
	maxBody  = 64 << 10
	idleTime = 2 * time.Minute
)

// Serve serves Handler on ln until ctx ends. Then it cuts off answers under way, because no client depends on them.
func (m *Monitor) Serve(ctx context.Context, ln net.Listener) error {
	server := &http.Server{Handler: m.Handler(), ReadHeaderTimeout: 5 * time.Second, IdleTimeout: idleTime}
	stop := context.AfterFunc(ctx, func() { _ = server.Close() })
	defer stop()
	if err := server.Serve(ln); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serve metrics: %w", err)
	}
	return nil
}

// A Health reports whether a node is ready, and how its ledger and its gate are. It is a part of a Monitor.
type Health struct {
	version   string
	warn      func(text string, args ...any)
	ledger    *ledger.Ledger                        // nil until Monitor.WatchLedger
	pingGate  func(context.Context) error           // nil: the ledger decides
	troubles  func() map[firstcome.CampaignID]error // see recovery.Watch.Troubles; nil: the ledger decides
	unwritten atomic.Bool                           // the last transaction failed
	moved     atomic.Bool                           // SQLite's file was moved or deleted
	draining  atomic.Bool
	foreigns  struct {
		mu    sync.Mutex // guards what follows
		asked time.Time
		all   bool
	}
}

// Drain makes the node report that it is not ready, from now on. It may be called more than once.
func (h *Health) Drain() { h.draining.Store(true) }

// foreignEvery is how often the ledger is asked whether this node decides any campaign.
const foreignEvery = 5 * time.Second

// foreign reports whether the node decides none of the open campaigns, because they have another gate or code secret: then another node should get
// the claims. While the ledger does not answer, it repeats its last result. A Redis without a name does not count: it was emptied, and an operator
// orders its rebuild through this very node.
func (h *Health) foreign(ctx context.Context) bool {
	if h.ledger == nil || h.ledger.GateName() == "" {
		return false
	}
	h.foreigns.mu.Lock()
	defer h.foreigns.mu.Unlock()
	if now := time.Now(); now.Sub(h.foreigns.asked) > foreignEvery {
		h.foreigns.asked = now
		ctx, cancel := context.WithTimeout(ctx, ledgerPatience)
		defer cancel()
		if open, others, err := h.ledger.Foreign(ctx, now); err == nil {
			h.foreigns.all = open > 0 && others == open
		}
	}
	return h.foreigns.all
}

// A readiness is the answer of /readyz. Version, Ledger and Gate are only in a verbose answer.
type readiness struct {
	Status  string `json:"status"` // ready, draining, ledger_moved: SQLite's file is gone, or mismatch: this node decides none of the open campaigns
	Version string `json:"version,omitempty"`
	Ledger  string `json:"ledger,omitempty"` // ok, or what is wrong with the ledger
	Gate    string `json:"gate,omitempty"`   // what is wrong with the gate beside the ledger; empty if nothing is known to be wrong
}

// live answers GET /livez: it only shows that the process answers.
func live(w http.ResponseWriter, _ *http.Request) {
	answer(w, http.StatusOK, readiness{Status: "ok"})
}

// Ready answers GET /readyz. Only the node's own state makes it unready: it stops, its file was moved or deleted, or it has another gate or secret than all open campaigns. While
// the ledger is down, the node stays ready and answers claims with 503. A verbose answer shows the state of the ledger to callers that mayLook
// admits.
func (h *Health) Ready(w http.ResponseWriter, r *http.Request, mayLook func(*http.Request) bool) {
	status, said := http.StatusOK, readiness{Status: "ready"}
	if h.draining.Load() {
		status, said.Status = http.StatusServiceUnavailable, "draining"
		w.Header().Set("Retry-After", "1")
	} else if h.moved.Load() {
		status, said.Status = http.StatusServiceUnavailable, "ledger_moved"
		w.Header().Set("Retry-After", "1")
	} else if h.foreign(r.Context()) {
		status, said.Status = http.StatusServiceUnavailable, "mismatch"
		w.Header().Set("Retry-After", strconv.Itoa(int(foreignEvery/time.Second)))
	}
	if r.URL.Query().Has("verbose") && mayLook(r) {
		said.Version, said.Ledger, said.Gate = h.version, h.ledgerState(r.Context()), h.gateState(r.Context())
	}
	answer(w, status, said)
}

func answer(w http.ResponseWriter, status int, said readiness) {
	body, err := json.Marshal(said)
	if err != nil {
		panic(err) // it has only strings
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(body) // a client that has left asks again
}

// ledgerPatience is how long /readyz?verbose waits for the ledger.
const ledgerPatience = time.Second

func (h *Health) ledgerState(ctx context.Context) string {
	if h.moved.Load() {
		return "its file was moved or deleted: docs/runbooks/FirstcomeLedgerDown.md says how to put it back"
	}
	ctx, cancel := context.WithTimeout(ctx, ledgerPatience)
	defer cancel()
	if err := h.ledger.Ping(ctx); err != nil {
		h.warn("the ledger cannot be read", "err", err)
		return "cannot be read: the log says why"
	}
	if h.unwritten.Load() {
		return "did not take the last write: the log says why"
	}
	if counts, err := h.ledger.Reads.Counts(ctx); err == nil && counts.Unreplicated {
		return "commits without the replica that it should wait for: firstcome doctor says what to do"
	}
	return "ok"
}

// gateState reports whether the gate beside the ledger answers, whether another gate than this node's decides campaigns, and which campaigns this
// node's gate does not decide.
func (h *Health) gateState(ctx context.Context) string {
	about := h.everyGate(ctx)
	if stopped := h.stopped(); stopped != "" && about != "" {
		return about + "; " + stopped
	} else if stopped != "" {
		return stopped
	}
	return about
}

// named is how many campaigns a verbose answer names.
const named = 10

// stopped names the campaigns that the gate does not decide, as far as this node knows. It returns an empty string if there are none.
func (h *Health) stopped() string {
	if h.troubles == nil {
		return ""
	}
	ids := slices.Sorted(maps.Keys(h.troubles()))
	if len(ids) == 0 {
		return ""
	}
	text := fmt.Sprintf("decides nothing of %d campaigns: ", len(ids))
	for n, id := range ids[:min(named, len(ids))] {
		if n > 0 {
			text += ", "
		}
		text += string(id)
	}
	if more := len(ids) - named; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text + ". The console's page Recording and firstcome doctor say why"
}

// everyGate is gateState without the state of single campaigns.
func (h *Health) everyGate(ctx context.Context) string {
	ctx, cancel := context.WithTimeout(ctx, ledgerPatience)
	defer cancel()
	if h.pingGate != nil {
		if err := h.pingGate(ctx); err != nil {
			h.warn("the gate does not answer", "err", err)
			return "does not answer: the log says why"
		}
	}
	name := h.ledger.GateName()
	if open, foreign, err := h.ledger.Foreign(ctx, time.Now()); err == nil && name != "" && open > 0 && foreign == open {
		return "all open campaigns have another gate or code secret than this node: the log of the start says which"
	}
	others, err := h.ledger.OtherGates(ctx)
	switch {
	case err != nil || len(others) == 0 || name == "ledger":
		return ""
	case name == "":
		return "this Redis has no name, and campaigns are decided by another: the log of the start says what to do"
	}
	return "campaigns are decided by another Redis than this one: the log of the start says which"
}
