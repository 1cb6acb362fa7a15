package api

import (
	"context"
	_ "embed"
	"net"
	"net/http"
	"net/http/pprof"
	"time"

	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/firstcome/firstcome/internal/auth"
)

const about = `This is firstcome: it gives a limited number of coupons to the people who ask first.

/openapi.yaml describes its HTTP API, which is below /v1. /livez and /readyz say how this node is.
`

// about answers GET /: whoever comes by with a browser is told what this is.
func (s *Server) about(w http.ResponseWriter, _ *http.Request, _ auth.Caller) error {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	_, err := w.Write([]byte(about))
	return err
}

// livez answers GET /livez: the process answers. It touches nothing.
func (s *Server) livez(w http.ResponseWriter, _ *http.Request, _ auth.Caller) error {
	writeBody(w, http.StatusOK, []byte(`{"status":"ok"}`))
	return nil
}

// A readiness is the answer of /readyz. Version and Ledger are shown if asked for.
type readiness struct {
	Status  string `json:"status"` // ready or draining
	Version string `json:"version,omitempty"`
	Ledger  string `json:"ledger,omitempty"` // ok, or what is wrong with it
}

// ledgerPatience is how long /readyz?verbose waits for the ledger.
const ledgerPatience = time.Second

// readyz answers GET /readyz. Only what is this node's own makes it unready: a
// ledger that is down is shown, and answered by truthful 503s.
func (s *Server) readyz(w http.ResponseWriter, r *http.Request, _ auth.Caller) error {
	return s.tellReadiness(w, r, s.mayLook)
}

// opsReadyz is readyz for whoever reaches the ops listener.
func (s *Server) opsReadyz(w http.ResponseWriter, r *http.Request, _ auth.Caller) error {
	return s.tellReadiness(w, r, func(*http.Request) bool { return true })
}

func (s *Server) tellReadiness(w http.ResponseWriter, r *http.Request, mayLook func(*http.Request) bool) error {
	status, answer := http.StatusOK, readiness{Status: "ready"}
	if s.isDraining() {
		status, answer.Status = http.StatusServiceUnavailable, "draining"
		w.Header()["Retry-After"] = seconds(unavailableRetry)
	}
	if r.URL.Query().Has("verbose") && mayLook(r) {
		answer.Version, answer.Ledger = s.Version, s.ledgerState(r.Context())
	}
	return writeJSON(w, status, answer)
}

// mayLook tells whether the ledger may be asked for who sent a request: who has a key. Else strangers
// could keep the ledger busy; they are told what a probe needs, and no more.
func (s *Server) mayLook(r *http.Request) bool {
	_, err := (&guard{server: s, route: route{who: seesAll | support | viewer | service}}).admit(r)
	return err == nil
}

func (s *Server) ledgerState(ctx context.Context) string {
	ctx, cancel := context.WithTimeout(ctx, ledgerPatience)
	defer cancel()
	if err := s.Ledger.Ping(ctx); err != nil {
		s.metrics.warn(s.Log, "the ledger cannot be read", "err", err)
		return "cannot be read: the log says why"
	}
	if s.metrics.unwritten.Load() {
		return "did not take the last write: the log says why"
	}
	return "ok"
}

//go:embed openapi.yaml
var openAPI []byte

// openAPI answers GET /openapi.yaml.
func (s *Server) openAPI(w http.ResponseWriter, _ *http.Request, _ auth.Caller) error {
	w.Header().Set("Content-Type", "application/yaml")
	_, _ = w.Write(openAPI)
	return nil
}

// Ops returns what only operators may see: metrics, profiles and health. It
// belongs on a listener of its own, never on the public one. At a loopback address it answers to who asks for one.
func (s *Server) Ops() http.Handler {
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.HandlerFor(s.Registry, promhttp.HandlerOpts{}))
	mux.HandleFunc("/debug/pprof/", pprof.Index)
	mux.HandleFunc("/debug/pprof/cmdline", pprof.Cmdline)
	mux.HandleFunc("/debug/pprof/profile", pprof.Profile)
	mux.HandleFunc("/debug/pprof/symbol", pprof.Symbol)
	mux.HandleFunc("/debug/pprof/trace", pprof.Trace)
	mux.Handle("GET /livez", &guard{server: s, route: route{who: everyone, serve: s.livez}})
	mux.Handle("GET /readyz", &guard{server: s, route: route{who: everyone, params: "verbose", serve: s.opsReadyz}})
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		at, _ := r.Context().Value(http.LocalAddrContextKey).(*net.TCPAddr)
		if at != nil && at.IP.IsLoopback() && !isLoopback(r.Host) {
			setCommonHeaders(w)
			writeProblem(w, newProblem(notLoopback, "at a loopback address metrics and profiles are for who asks localhost or that address"))
			return
		}
		mux.ServeHTTP(w, r)
	})
}
