package api

import (
	"context"
	"log/slog"
	"net/http"
	"net/netip"
	"net/url"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"github.com/firstcome/firstcome/internal/auth"
)

// Handler returns the public surface.
func (s *Server) Handler() http.Handler {
	f := &front{server: s, mux: http.NewServeMux()}
	for _, r := range s.routes() {
		f.mux.Handle(r.method+" "+r.path, &guard{server: s, route: r})
		if !slices.Contains(f.methods, r.method) {
			f.methods = append(f.methods, r.method)
		}
	}
	f.mux.HandleFunc("/", f.lost)
	handler := letAsk(s.CORSOrigins, f.methods, f)
	if s.Log.Enabled(context.Background(), slog.LevelDebug) {
		return &accessLog{next: handler, log: s.Log}
	}
	return handler
}

// A front refuses paths that ServeMux would redirect, and answers those without a route.
type front struct {
	server  *Server
	mux     *http.ServeMux
	methods []string
}

func (f *front) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if path := r.URL.EscapedPath(); strings.Contains(path, "/.") && hasDots(path) || strings.Contains(path, "//") {
		setCommonHeaders(w)
		writeProblem(w, malformed("the path has a segment that is empty, . or .."))
		return
	}
	f.mux.ServeHTTP(w, slashed(r))
}

// A slashUser in a request's context says that its path names the user whose id is a slash.
type slashUser struct{}

// slashed has the path of a request name another user, if it names the one whose id is a slash: ServeMux takes such a segment for the end of
// the path, and for no wildcard.
func slashed(r *http.Request) *http.Request {
	if !strings.Contains(r.URL.RawPath, "/%2") {
		return r
	}
	segments := strings.Split(r.URL.EscapedPath(), "/")
	at := slices.IndexFunc(segments, func(s string) bool { return strings.EqualFold(s, "%2F") })
	if at < 1 || segments[at-1] != "claims" && segments[at-1] != "users" {
		return r
	}
	segments[at] = "-"
	path := *r.URL
	path.RawPath = strings.Join(segments, "/")
	path.Path, _ = url.PathUnescape(path.RawPath) // it could be, before
	r = r.WithContext(context.WithValue(r.Context(), slashUser{}, true))
	r.URL = &path
	return r
}

// hasDots tells whether a segment of the path is . or .. as it stands.
func hasDots(path string) bool {
	for segment := range strings.SplitSeq(path, "/") {
		if segment == "." || segment == ".." {
			return true
		}
	}
	return false
}

// lost answers for a path without a route for this method.
func (f *front) lost(w http.ResponseWriter, r *http.Request) {
	setCommonHeaders(w)
	var allowed []string
	for _, method := range f.methods {
		probe := http.Request{Method: method, URL: r.URL, Host: r.Host}
		if _, pattern := f.mux.Handler(&probe); pattern != "/" {
			allowed = append(allowed, method)
		}
	}
	if len(allowed) == 0 {
		writeProblem(w, notFound())
		return
	}
	w.Header().Set("Allow", strings.Join(allowed, ", "))
	writeProblem(w, newProblem(methodNotAllowed, "this is not done with "+r.Method))
}

func setCommonHeaders(w http.ResponseWriter) {
	h := w.Header()
	h["Cache-Control"] = noStore
	h["X-Content-Type-Options"] = noSniff
}

// A guard lets permitted callers through to a route, and answers its errors.
type guard struct {
	server *Server
	route  route
}

func (g *guard) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	defer g.server.survive(w, r)
	setCommonHeaders(w)
	caller, err := g.admit(r)
	if err == nil {
		err = checkQuery(r, g.route.params)
	}
	if err == nil {
		if (r.Method == http.MethodGet || r.Method == http.MethodHead) && g.route.length == short {
			var over context.CancelFunc
			r, over = reading(r)
			defer over()
		}
		err = g.route.serve(w, r, caller)
	}
	if err != nil {
		g.server.refuse(w, r, err)
	}
}

// readWait is how long a request may read: as long as a write waits for the ledger.
// Reads take milliseconds unless something hangs.
const readWait = 10 * time.Second

// reading returns a request that ends after readWait.
func reading(r *http.Request) (*http.Request, context.CancelFunc) {
	ctx, cancel := context.WithTimeout(r.Context(), readWait)
	return r.WithContext(ctx), cancel
}

// survive answers for a handler that panicked, and logs where.
func (s *Server) survive(w http.ResponseWriter, r *http.Request) {
	cause := recover()
	if cause == nil {
		return
	}
	if cause == http.ErrAbortHandler { //nolint:errorlint // net/http compares so, too
		panic(cause)
	}
	s.Log.Error("a request failed on a fault of firstcome", "route", r.Pattern, "cause", cause, "stack", string(debug.Stack()))
	writeProblem(w, newProblem(fault, "a fault of firstcome: its log says more"))
}

// refuse answers with an error.
func (s *Server) refuse(w http.ResponseWriter, r *http.Request, err error) {
	p := problemOf(err)
	if p.Status == http.StatusServiceUnavailable {
		s.Observer.Warn("a request was answered with 503", "route", r.Pattern, "err", err)
	}
	writeProblem(w, p)
}

// admit returns who calls, or why they may not.
func (g *guard) admit(r *http.Request) (auth.Caller, error) {
	s := g.server
	if g.route.who == auth.Everyone {
		return auth.Caller{}, nil
	}
	if wait, ok := s.AllowAddress(r); !ok {
		return auth.Caller{}, tooOften(wait)
	}
	if g.route.who == auth.Public {
		return auth.Caller{}, nil
	}
	if s.Auth.Open() {
		if err := s.admitUnnamed(r); err != nil {
			return auth.Caller{}, err
		}
	}
	caller, err := s.Auth.Authenticate(r)
	if err != nil {
		return caller, unauthorized(err)
	}
	if !g.route.who.Has(caller) {
		return caller, newProblem(roleForbidden, "your role may not do this")
	}
	if caller.User != "" {
		return caller, limit(s.UserLimit, string(caller.User))
	}
	return caller, nil
}

// admitUnnamed returns nil unless a foreign page may have made a browser on this machine send a request that needs
// no credentials. Where credentials are needed, such a page has none: a browser adds none by itself.
func (s *Server) admitUnnamed(r *http.Request) error {
	if !auth.IsLoopback(r.Host) {
		return newProblem(notLoopback, "in development mode this server answers to localhost and loopback addresses only")
	}
	if auth.IsProxied(r) {
		return newProblem(notLoopback, "in development mode this server answers to no proxy, because everybody behind it would be admin: make an API key with firstcome key create")
	}
	if err := s.origins.Check(r); err != nil {
		return newProblem(crossSite, "in development mode another site's page may not ask for this: name its origin with --cors-origin, or configure users' tokens")
	}
	return nil
}

// limit returns nil if key may ask now.
func limit(l *auth.Limiter, key string) error {
	if wait, ok := l.Allow(key); !ok {
		return tooOften(wait)
	}
	return nil
}

func tooOften(wait time.Duration) error {
	return later(rateLimited, "you ask too often", wait+jitter(time.Second))
}

// AllowAddress reports whether the client's address may ask now, and if not, how long to wait. It counts the request. Without
// Config.AddressLimit every address may.
func (s *Server) AllowAddress(r *http.Request) (wait time.Duration, ok bool) {
	if s.AddressLimit == nil {
		return 0, true
	}
	return s.AddressLimit.Allow(s.address(r))
}

// address returns the client's address: the connection's, or, if that is a trusted
// proxy's, the last one in X-Forwarded-For that is not. For IPv6 it returns the network: a
// client has as many addresses as it likes.
func (s *Server) address(r *http.Request) string {
	client, ok := parseAddress(r.RemoteAddr)
	if !ok {
		return r.RemoteAddr
	}
	hops := strings.Split(strings.Join(r.Header["X-Forwarded-For"], ","), ",")
	for i := len(hops) - 1; i >= 0 && s.trusts(client); i-- {
		hop, ok := parseAddress(strings.Trim(hops[i], " \t\""))
		if !ok {
			break
		}
		client = hop
	}
	if client.Is4() {
		return client.String()
	}
	return netip.PrefixFrom(client, clientNetwork).Masked().String()
}

// clientNetwork is how many bits of an IPv6 address name the client's network (RFC 6177).
const clientNetwork = 64

// parseAddress reads an IP address, with a port or without: some proxies add the client's.
func parseAddress(text string) (a netip.Addr, ok bool) {
	if at, err := netip.ParseAddrPort(text); err == nil {
		return at.Addr().Unmap().WithZone(""), true
	}
	if inside, ok := strings.CutPrefix(text, "["); ok {
		if text, ok = strings.CutSuffix(inside, "]"); !ok {
			return a, false
		}
	}
	a, err := netip.ParseAddr(text)
	return a.Unmap().WithZone(""), err == nil
}

func (s *Server) trusts(a netip.Addr) bool {
	return slices.ContainsFunc(s.TrustedProxies, func(p netip.Prefix) bool { return p.Contains(a) })
}
