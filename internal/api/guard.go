package api

import (
	"context"
	"errors"
	"net/http"
	"net/netip"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"github.com/firstcome/firstcome/client"
	"github.com/firstcome/firstcome/internal/auth"
)

// A guard lets permitted callers through to a route, and answers its errors.
type guard struct {
	*core
	route route
}

func (g *guard) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	defer g.survive(w, r)
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
		g.refuse(w, r, err)
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
func (g *guard) survive(w http.ResponseWriter, r *http.Request) {
	cause := recover()
	if cause == nil {
		return
	}
	if cause == http.ErrAbortHandler { //nolint:errorlint // net/http compares so, too
		panic(cause)
	}
	g.Log.Error("a request failed on a fault of firstcome", "route", r.Pattern, "cause", cause, "stack", string(debug.Stack()))
	writeProblem(w, newProblem(fault, "a fault of firstcome: its log says more"))
}

// refuse answers with an error.
func (g *guard) refuse(w http.ResponseWriter, r *http.Request, err error) {
	p := problemOf(err)
	if p.Status == http.StatusServiceUnavailable {
		g.Observer.Warn("a request was answered with 503", "route", r.Pattern, "err", err)
	}
	writeProblem(w, p)
}

// admit returns who calls, or why they may not.
func (g *guard) admit(r *http.Request) (auth.Caller, error) {
	if g.route.who == auth.Everyone {
		return auth.Caller{}, nil
	}
	if wait, ok := g.AllowAddress(r); !ok {
		return auth.Caller{}, tooOften(wait)
	}
	if g.route.who == auth.Public {
		return auth.Caller{}, nil
	}
	if g.Auth.Open() {
		if err := g.admitUnnamed(r); err != nil {
			return auth.Caller{}, err
		}
	}
	caller, err := g.Auth.Authenticate(r)
	if err != nil {
		return caller, unauthorized(err)
	}
	if !g.route.who.Has(caller) {
		return caller, newProblem(roleForbidden, "your role may not do this")
	}
	if caller.User != "" {
		return caller, limit(g.UserLimit, string(caller.User))
	}
	return caller, nil
}

// admitUnnamed returns nil unless a foreign page may have made a browser on this machine send a request that needs
// no credentials. Where credentials are needed, such a page has none: a browser adds none by itself.
func (g *guard) admitUnnamed(r *http.Request) error {
	if !auth.IsLoopback(r.Host) {
		return newProblem(notLoopback, "in development mode this server answers to localhost and loopback addresses only")
	}
	if auth.IsProxied(r) {
		return newProblem(notLoopback, "in development mode this server answers to no proxy, because everybody behind it would be admin: make an API key with firstcome key create")
	}
	if err := g.origins.Check(r); err != nil {
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
func (s *core) AllowAddress(r *http.Request) (wait time.Duration, ok bool) {
	if s.AddressLimit == nil {
		return 0, true
	}
	return s.AddressLimit.Allow(s.address(r))
}

// address returns the client's address: the connection's, or, if that is a trusted
// proxy's, the last one in X-Forwarded-For that is not. For IPv6 it returns the network: a
// client has as many addresses as it likes.
func (s *core) address(r *http.Request) string {
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

func (s *core) trusts(a netip.Addr) bool {
	return slices.ContainsFunc(s.TrustedProxies, func(p netip.Prefix) bool { return p.Contains(a) })
}

// challenge is what a 401 without credentials says in WWW-Authenticate (RFC 6750).
const challenge = `Bearer realm="firstcome"`

// unauthorized returns the 401 that says why credentials are refused.
func unauthorized(err error) *client.Problem {
	var refused *auth.Refusal
	if !errors.As(err, &refused) || refused.Why == auth.Missing {
		p := newProblem(credentialsMissing, "credentials are missing: send Authorization: Bearer with an API key or a user's token")
		p.Challenge = challenge
		return p
	}
	code, why := credentialsInvalid, refused.Why.Error()
	if refused.Why == auth.Expired {
		code = tokenExpired
	}
	p := newProblem(code, "the credentials are not good: "+why)
	p.Challenge = challenge + `, error="invalid_token", error_description="` + why + `"`
	return p
}
