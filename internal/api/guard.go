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

// A guard authenticates and authorizes the callers of a route, and answers the route's errors.
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
	if err == nil {
		return
	}
	p := problemOf(err)
	if p.Status == http.StatusServiceUnavailable {
		g.Observer.Warn("a request was answered with 503", "route", r.Pattern, "err", err)
	}
	writeProblem(w, p)
}

// readWait is how long a request may read from the ledger and the gate, the same as a write waits for the ledger. Reads
// take milliseconds unless something hangs.
const readWait = 10 * time.Second

// reading returns a request whose context ends after readWait.
func reading(r *http.Request) (*http.Request, context.CancelFunc) {
	ctx, cancel := context.WithTimeout(r.Context(), readWait)
	return r.WithContext(ctx), cancel
}

// survive answers 500 if the handler panicked, and logs the stack.
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

// admit returns the caller, or the error that refuses the request.
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

// admitUnnamed protects development mode, which needs no credentials, against web pages. It refuses requests that another
// site's page may have caused in a browser on this machine, and requests from proxies. With credentials such a check is not
// needed: a browser does not add them by itself.
func (g *guard) admitUnnamed(r *http.Request) error {
	if !auth.IsLoopback(r.Host) {
		return newProblem(notLoopback, "in development mode this server answers to localhost and loopback addresses only")
	}
	if auth.IsProxied(r) {
		return newProblem(notLoopback, "in development mode this server answers to no proxy, because every client of the proxy would be admin: create an API key with firstcome key create")
	}
	if err := g.origins.Check(r); err != nil {
		return newProblem(crossSite, "in development mode another site's page may not ask for this: name its origin with --cors-origin, or configure users' tokens")
	}
	return nil
}

// limit counts a request of key. It returns an error if key has exceeded its rate.
func limit(l *auth.Limiter, key string) error {
	if wait, ok := l.Allow(key); !ok {
		return tooOften(wait)
	}
	return nil
}

func tooOften(wait time.Duration) error {
	return later(rateLimited, "you ask too often", wait+jitter(time.Second))
}

// AllowAddress counts a request of the client's address. It reports whether the address is within its rate, and if not,
// how long to wait. Without Options.AddressLimit, ok is always true.
func (s *core) AllowAddress(r *http.Request) (wait time.Duration, ok bool) {
	if s.AddressLimit == nil {
		return 0, true
	}
	return s.AddressLimit.Allow(s.address(r))
}

// address returns the client's address: the connection's, or, if that is a trusted proxy's, the last address in
// X-Forwarded-For that is not a trusted proxy's. For IPv6 it returns the network, because a client can use any address in
// it.
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

// clientNetwork is the prefix length of a client's IPv6 network, in bits (RFC 6177).
const clientNetwork = 64

// parseAddress reads an IP address with or without a port. Some proxies add the client's port.
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

// challenge is the WWW-Authenticate of a 401 for a request without credentials (RFC 6750).
const challenge = `Bearer realm="firstcome"`

// unauthorized returns the 401 for an error of the authenticator.
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
	p := newProblem(code, "the credentials are not valid: "+why)
	p.Challenge = challenge + `, error="invalid_token", error_description="` + why + `"`
	return p
}
