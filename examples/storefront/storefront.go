package main

import (
	"crypto/rand"
	"embed"
	"encoding/json"
	"io/fs"
	"net/http"
	"net/http/httputil"
	"net/url"
	"strings"
	"time"

	"github.com/golang-jwt/jwt/v5"
)

//go:embed page
var files embed.FS

// A storefront serves the page and tells it who the user is.
type storefront struct {
	server   *url.URL
	direct   string // the page asks there; empty: this process passes its requests on
	campaign string
	secret   []byte // of the tokens, shared with firstcome
	open     bool   // firstcome is in development mode, and reads no tokens
}

// tokenLife is how long a token is good for. The page fetches a new one when one is over.
const tokenLife = 15 * time.Minute

// passed are the requests that a user's page makes, and no others: in development mode firstcome
// takes every caller for an admin.
var passed = []string{
	"GET /v1/campaigns/{id}",
	"GET /v1/campaigns/{id}/line",
	"POST /v1/campaigns/{id}/claims",
	"GET /v1/campaigns/{id}/claims/{user}",
	"DELETE /v1/campaigns/{id}/claims/{user}",
	"GET /v1/campaigns/{id}/claims/{user}/events",
	"GET /v1/users/{user}/coupons",
}

func (s *storefront) handler() http.Handler {
	mux := http.NewServeMux()
	page, err := fs.Sub(files, "page")
	if err != nil {
		panic(err) // the directory is embedded
	}
	mux.Handle("GET /", http.FileServerFS(page))
	mux.HandleFunc("GET /session", s.session)
	if s.direct == "" {
		proxy := &httputil.ReverseProxy{Rewrite: s.passOn, FlushInterval: -1} // events go on at once
		for _, route := range passed {
			mux.Handle(route, proxy)
		}
	}
	return s.guarded(mux)
}

// passOn readies a page's request for firstcome: with the user's token and without the shop's cookies.
func (s *storefront) passOn(r *httputil.ProxyRequest) {
	r.SetURL(s.server)
	r.Out.Header.Del("Cookie")
	if s.open {
		asItCame(r)
		return
	}
	r.SetXForwarded()
	r.Out.Header.Del("Origin") // the page's origin is ours: firstcome needs to allow none
}

// asItCame leaves in a request what firstcome looks at in development mode. There it answers to this machine's own requests only, neither to a
// proxy nor to another site's page.
func asItCame(r *httputil.ProxyRequest) {
	r.Out.Host = r.In.Host
	for _, name := range []string{"Forwarded", "X-Forwarded-For", "X-Forwarded-Host", "X-Forwarded-Proto"} {
		if came, ok := r.In.Header[name]; ok {
			r.Out.Header[name] = came
		}
	}
}

// session tells the page who the user is and gives it a token of theirs.
func (s *storefront) session(w http.ResponseWriter, r *http.Request) {
	user, now := whoIs(w, r), time.Now()
	token, err := jwt.NewWithClaims(jwt.SigningMethodHS256, jwt.MapClaims{
		"sub": user, "iat": now.Unix(), "exp": now.Add(tokenLife).Unix(),
	}).SignedString(s.secret)
	if err != nil {
		http.Error(w, "no token", http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	_ = json.NewEncoder(w).Encode(map[string]string{
		"user_id": user, "token": token, "campaign": s.campaign, "server": strings.TrimRight(s.direct, "/"),
	})
}

// whoIs returns the user of a session. Put your shop's login here: this one welcomes everybody as a new guest.
func whoIs(w http.ResponseWriter, r *http.Request) string {
	const name = "guest"
	if cookie, err := r.Cookie(name); err == nil && len(cookie.Value) == len(rand.Text()) {
		return name + "-" + cookie.Value
	}
	guest := rand.Text()
	http.SetCookie(w, &http.Cookie{Name: name, Value: guest, Path: "/", HttpOnly: true, SameSite: http.SameSiteLaxMode, MaxAge: 30 * 24 * 3600})
	return name + "-" + guest
}

// guarded sets the headers of a page that loads nothing from elsewhere and has no script or style inline.
func (s *storefront) guarded(next http.Handler) http.Handler {
	policy := "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self' " + s.direct +
		"; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Content-Security-Policy", policy)
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Referrer-Policy", "no-referrer")
		next.ServeHTTP(w, r)
	})
}
