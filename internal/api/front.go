package api

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/firstcome/firstcome/client"
)

// Handler returns the handler of the whole API.
func (s *Server) Handler() http.Handler {
	f := &front{core: s.core, mux: http.NewServeMux()}
	for _, r := range s.routes() {
		f.mux.Handle(r.method+" "+r.path, &guard{core: s.core, route: r})
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

// A front refuses paths that ServeMux would redirect, and answers paths without a route.
type front struct {
	*core
	mux     *http.ServeMux
	methods []string
}

func (f *front) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if path := r.URL.EscapedPath(); strings.Contains(path, "/.") && hasDots(path) || strings.Contains(path, "//") {
		f.refuse(w, r, malformed("the path has a segment that is empty, . or .."))
		return
	}
	f.mux.ServeHTTP(w, slashed(r))
}

// slashUser is a context key. It marks a request whose path names the user with the id /.
type slashUser struct{}

// slashed replaces the user id / in a path by another one and marks the request with slashUser. ServeMux would read such a
// segment as the end of the path, and not match the wildcard.
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
	path.Path, _ = url.PathUnescape(path.RawPath) // it was unescaped before, so this cannot fail
	r = r.WithContext(context.WithValue(r.Context(), slashUser{}, true))
	r.URL = &path
	return r
}

// hasDots reports whether a segment of the escaped path is . or ..
func hasDots(path string) bool {
	for segment := range strings.SplitSeq(path, "/") {
		if segment == "." || segment == ".." {
			return true
		}
	}
	return false
}

// lost answers a request without a route: 405 if its path has other methods, otherwise 404.
func (f *front) lost(w http.ResponseWriter, r *http.Request) {
	var allowed []string
	for _, method := range f.methods {
		probe := http.Request{Method: method, URL: r.URL, Host: r.Host}
		if _, pattern := f.mux.Handler(&probe); pattern != "/" {
			allowed = append(allowed, method)
		}
	}
	if len(allowed) == 0 {
		f.refuse(w, r, notFound())
		return
	}
	w.Header().Set("Allow", strings.Join(allowed, ", "))
	f.refuse(w, r, newProblem(methodNotAllowed, "this path does not support "+r.Method))
}

// refuse answers a request that reaches no guard, and counts it for its address.
func (f *front) refuse(w http.ResponseWriter, r *http.Request, p *client.Problem) {
	setCommonHeaders(w)
	if wait, ok := f.AllowAddress(r); !ok {
		p = problemOf(tooOften(wait))
	}
	writeProblem(w, p)
}

func setCommonHeaders(w http.ResponseWriter) {
	h := w.Header()
	h["Cache-Control"] = noStore
	h["X-Content-Type-Options"] = noSniff
}

// An accessLog logs every request at debug level. It logs the route instead of the path, which may name a user, and never
// a header or a body.
type accessLog struct {
	next http.Handler
	log  *slog.Logger
}

func (a *accessLog) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	started := time.Now()
	watched := &watchedWriter{ResponseWriter: w, status: http.StatusOK}
	defer func() {
		a.log.DebugContext(r.Context(), "request", "method", r.Method, "route", r.Pattern, "status", watched.status, "took", time.Since(started))
	}()
	a.next.ServeHTTP(watched, r)
}

// A watchedWriter keeps the status for the access log.
type watchedWriter struct {
	http.ResponseWriter
	status int
}

func (w *watchedWriter) WriteHeader(status int) {
	w.status = status
	w.ResponseWriter.WriteHeader(status)
}

// Unwrap is for http.ResponseController.
func (w *watchedWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// A crossOrigin implements CORS. It lets pages of the configured origins send requests and read the answers. Before a
// request that a plain form cannot send, such as one with a token, a browser sends a preflight. CORS does not restrict
// other clients.
type crossOrigin struct {
	origins map[string][]string // as header values
	methods []string            // all methods, as one header value
	next    http.Handler
}

// Header values of crossOrigin. A page may set every header that its preflight asks for, because tracing scripts add their
// own. Without such a list, it may set the headers that the API reads.
var (
	varyOrigin     = []string{"Origin"}
	allowedHeaders = []string{"Authorization, Content-Type, If-Match, Last-Event-ID"}
	exposedHeaders = []string{"Retry-After, ETag, WWW-Authenticate"}
	preflightAge   = []string{"600"} // seconds; short, so that a removed origin is soon refused
)

// letAsk adds CORS for the origins to next, which serves the methods. Without origins it returns next.
func letAsk(origins, methods []string, next http.Handler) http.Handler {
	if len(origins) == 0 {
		return next
	}
	c := &crossOrigin{map[string][]string{}, []string{strings.Join(methods, ", ")}, next}
	for _, origin := range origins {
		c.origins[origin] = []string{origin}
	}
	return c
}

func (c *crossOrigin) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h["Vary"] = varyOrigin
	origin := c.origins[r.Header.Get("Origin")]
	if origin != nil {
		h["Access-Control-Allow-Origin"] = origin
		h["Access-Control-Expose-Headers"] = exposedHeaders
	}
	if r.Method != http.MethodOptions || r.Header.Get("Access-Control-Request-Method") == "" {
		c.next.ServeHTTP(w, r)
		return
	}
	setCommonHeaders(w)
	if origin == nil {
		writeProblem(w, newProblem(crossSite, "pages of this origin may not ask: --cors-origin names those that may"))
		return
	}
	h["Access-Control-Allow-Methods"] = c.methods
	h["Access-Control-Allow-Headers"] = allowedHeaders
	if asked := r.Header["Access-Control-Request-Headers"]; len(asked) > 0 && asked[0] != "" {
		h["Access-Control-Allow-Headers"] = asked
	}
	h["Access-Control-Max-Age"] = preflightAge
	w.WriteHeader(http.StatusNoContent)
}

// ParseOrigin checks an origin and returns it. The origin must be written as browsers send it, like
// https://app.shop.example, and without wildcards.
func ParseOrigin(text string) (string, error) {
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "" || strings.Contains(u.Host, "*") ||
		text != u.Scheme+"://"+strings.ToLower(u.Host) || u.Port() == defaultPort[u.Scheme] || strings.HasSuffix(u.Host, ":") {
		return "", fmt.Errorf("%q is no origin as browsers send it: scheme, host in lower case, and a port only if it is not the scheme's own, like https://app.shop.example", text)
	}
	return text, nil
}

var defaultPort = map[string]string{"http": "80", "https": "443"}
