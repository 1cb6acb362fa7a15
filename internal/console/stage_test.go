package console_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/audit"
	"github.com/firstcome/firstcome/internal/auth"
	"github.com/firstcome/firstcome/internal/console"
	"github.com/firstcome/firstcome/internal/figures"
	"github.com/firstcome/firstcome/internal/gate"
	"github.com/firstcome/firstcome/internal/issue"
	"github.com/firstcome/firstcome/internal/ledger"
	"github.com/firstcome/firstcome/internal/operate"
	"github.com/firstcome/firstcome/internal/record"
	"github.com/firstcome/firstcome/internal/zone"
	"github.com/firstcome/firstcome/test/services"
	"github.com/firstcome/firstcome/test/stage"
)

func TestMain(m *testing.M) { services.Main(m) }

// A house is a console with a ledger of its own, served on loopback.
type house struct {
	t      testing.TB
	ledger *ledger.Ledger
	file   string // the ledger's file
	issuer *issue.Issuer
	auth   *auth.Authenticator
	config console.Options
	// counter counts only what a test tells it: claim does not count.
	counter *figures.Counter
	// gate is a fake gate beside the ledger, or nil if the ledger decides. claim records what it issues.
	gate *stage.Gate
	// remote is a real gate beside the ledger, or nil if there is none. record waits until the ledger has every coupon of it.
	remote farGate
	record func()
	// eyes stand between the node and the gate beside the ledger, fake or real. It is nil if there is no such gate.
	eyes *eyes
	// over is the Router to that gate, or nil if there is none.
	over *gate.Router
	// decides decides claims and keeps the lines. coupons has the holders.
	decides decider
	coupons gate.Coupons
	// mender rebuilds that gate.
	mender mender
	// asking is called with each request before it is answered, unless it is nil.
	asking func(*http.Request)
	// asked is called with the operation and the status of each answered request, unless it is nil.
	asked func(operation string, status int)
	url   string
	now   atomic.Pointer[func() time.Time] // the machine's clock if nil; any goroutine may read it
}

// A farGate is a gate beside the ledger.
type farGate interface {
	gate.Gate
	Retire(ctx context.Context, id firstcome.CampaignID) error
}

// A decider decides claims and keeps lines: the ledger, or a gate beside it.
type decider interface {
	gate.Decider
	gate.Line
	gate.Places
}

// eyes pass calls to a gate beside the ledger, unless they are shut.
type eyes struct {
	farGate
	why atomic.Pointer[error] // why they are shut; nil if they are open
}

// shut returns why the gate does not answer, or nil if it does.
func (e *eyes) shut() error {
	if why := e.why.Load(); why != nil {
		return *why
	}
	return nil
}

// State implements gate.Gate. The state of an unverified or a lost gate says so.
func (e *eyes) State(ctx context.Context, id firstcome.CampaignID) (gate.State, error) {
	switch why := e.shut(); {
	case errors.Is(why, gate.ErrUnverified):
		return gate.State{Unverified: true, Frozen: errors.Is(why, record.ErrRebuilding)}, nil
	case errors.Is(why, gate.ErrGone):
		return gate.State{Gone: true}, nil
	case why != nil:
		return gate.State{}, why
	}
	return e.farGate.State(ctx, id)
}

// Claim implements gate.Decider.
func (e *eyes) Claim(ctx context.Context, id firstcome.CampaignID, users []firstcome.UserID) ([]firstcome.Decision, error) {
	if why := e.shut(); why != nil {
		return nil, why
	}
	return e.farGate.Claim(ctx, id, users)
}

// Place implements gate.Places.
func (e *eyes) Place(ctx context.Context, id firstcome.CampaignID, user firstcome.UserID) (firstcome.Place, firstcome.Coupon, error) {
	if why := e.shut(); why != nil {
		return firstcome.Place{}, firstcome.Coupon{}, why
	}
	return e.farGate.Place(ctx, id, user)
}

// LineOf implements gate.Places.
func (e *eyes) LineOf(ctx context.Context, id firstcome.CampaignID) (gate.LineState, error) {
	if why := e.shut(); why != nil {
		return gate.LineState{}, why
	}
	return e.farGate.LineOf(ctx, id)
}

// CouponOf implements gate.Coupons.
func (e *eyes) CouponOf(ctx context.Context, id firstcome.CampaignID, user firstcome.UserID) (firstcome.Coupon, error) {
	if why := e.shut(); why != nil {
		return firstcome.Coupon{}, why
	}
	return e.farGate.CouponOf(ctx, id, user)
}

// openHouse opens a house in development mode, unless change says otherwise. Its ledger decides.
func openHouse(t testing.TB, change ...func(*house)) *house {
	t.Helper()
	return openHouseOn(t, services.Ledgers[services.SQLite](t), change...)
}

// openHouseOn opens a house on a ledger.
func openHouseOn(t testing.TB, ledger string, change ...func(*house)) *house {
	t.Helper()
	h := &house{t: t, file: ledger}
	h.openLedger("")
	h.decides, h.coupons, h.issuer = h.ledger.Gate, h.ledger.Gate, issue.NewIssuer(h.ledger.Gate, issue.Options{})
	claims := &issue.Answerer{Issuer: h.issuer, Coupons: h.ledger.Gate}
	h.config = console.Options{Places: h.ledger.Gate, Operator: operate.New(operate.Ledger{Campaigns: h.ledger.Campaigns, Letters: h.ledger.Recorder, Reads: h.ledger.Reads}, h.issuer, claims)}
	return h.open(nil, change...)
}

// openFar opens a house whose campaigns a gate beside the ledger decides.
func openFar(t testing.TB, change ...func(*house)) *house {
	t.Helper()
	h := &house{t: t, file: services.Ledgers[services.SQLite](t), gate: stage.NewGate(0)}
	h.openLedger("far away")
	h.gate.Lease, h.eyes = 0, &eyes{farGate: h.gate}
	over := &gate.Router{Gate: h.eyes, Retired: h.ledger.Gate, Ledger: h.ledger.Recorder, Watch: &h.mender}
	h.decides, h.coupons, h.over, h.issuer = over, over, over, issue.NewIssuer(over, issue.Options{})
	claims := &issue.Answerer{Issuer: h.issuer, Coupons: h.gate}
	operator := operate.NewRemote(operate.Ledger{Campaigns: h.ledger.Campaigns, Letters: h.ledger.Recorder, Reads: h.ledger.Reads}, h.issuer, claims, gate.NewChanger(h.ledger.Campaigns, over, nil), h.gate, &h.mender)
	lag := func(context.Context) ([]record.Lag, error) { return nil, nil } // claim records every coupon
	recorder := func() record.Stats { return record.Stats{Breaker: "closed"} }
	h.config = console.Options{Places: over, Operator: operator, Gate: over, Journal: &console.Journal{Gate: "far away", Lag: lag, Recorder: recorder, Troubles: h.mender.all}}
	return h.open(over, change...)
}

func (h *house) openLedger(gate string) {
	h.t.Helper()
	var err error
	h.ledger, err = ledger.Open(context.Background(), h.file, ledger.Options{Owner: "a test", Secret: stage.Secret(), Clock: h.clock, Gate: gate})
	stage.Must(h.t, err)
	h.t.Cleanup(func() { stage.Must(h.t, h.ledger.Close()) })
	stage.Run(h.t, h.ledger.Run)
}

// open serves the pages of a house.
func (h *house) open(g gate.Counters, change ...func(*house)) *house {
	t := h.t
	t.Helper()
	t.Cleanup(func() { stage.Must(t, h.issuer.Stop(context.Background())) })
	h.auth = auth.New(auth.Options{Open: true})
	h.config.Ledger, h.config.Deployment, h.config.LastRebuild, h.config.Secret, h.config.Log, h.config.Clock = h.ledger.Reads, h.ledger.Deployment, h.ledger.Epochs.LastRebuild, stage.Secret(), slog.New(slog.DiscardHandler), h.clock
	h.counter = figures.NewCounter(h.clock)
	seoul, err := zone.Load("Asia/Seoul")
	stage.Must(t, err)
	self := figures.Node{Host: "here", Listen: "127.0.0.1:8080", Role: "all", Version: "test", StartedAt: time.Now()}
	h.config.Watcher = figures.NewWatcher(h.ledger.Reads, g, &figures.Board{Node: self, Counter: h.counter, Rows: h.ledger.Deployment})
	h.config.Prove, h.config.Zone = h.prove, seoul
	h.config.Excel = func(w http.ResponseWriter, _ *http.Request, _ string, of ledger.Status, zone *time.Location, korean bool) error {
		_, err := fmt.Fprintf(w, "all of %s, %s, korean %t", of.ID, zone, korean)
		return err
	}
	for _, do := range change {
		do(h)
	}
	h.config.Auth = h.auth
	pages := console.New(h.config)
	stage.Run(t, pages.Run)
	server := httptest.NewServer(h.listening(pages.Handler()))
	t.Cleanup(server.Close)
	h.url = server.URL
	return h
}

// listening reports requests to the house.
func (h *house) listening(pages http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if h.asking != nil {
			h.asking(r)
		}
		if h.asked == nil {
			pages.ServeHTTP(w, r)
			return
		}
		answer := &noted{ResponseWriter: w}
		pages.ServeHTTP(answer, r)
		h.asked(r.Pattern, answer.status)
	})
}

// A noted answer notes its status.
type noted struct {
	http.ResponseWriter
	status int
}

func (n *noted) WriteHeader(status int) {
	n.status = status
	n.ResponseWriter.WriteHeader(status)
}

func (n *noted) Unwrap() http.ResponseWriter { return n.ResponseWriter }

// prove audits a campaign's tables.
func (h *house) prove(ctx context.Context, id firstcome.CampaignID, _ *atomic.Int64) (proof console.Proof, err error) {
	proof.Ledger, err = audit.Ledger(ctx, h.ledger.Tables().Source(), id, nil, nil)
	return proof, err
}

// withKeys makes people log in.
func withKeys(h *house) { h.auth = auth.New(auth.Options{Keys: h.ledger.Deployment}) }

func (h *house) clock() time.Time {
	if now := h.now.Load(); now != nil {
		return (*now)()
	}
	return time.Now()
}

// keep sets the clock of the house. Any goroutine may call it.
func (h *house) keep(now func() time.Time) { h.now.Store(&now) }

// stands stops the clock of the house at an instant.
func (h *house) stands(now time.Time) { h.keep(func() time.Time { return now }) }

// key creates an API key with a role.
func (h *house) key(role firstcome.Role) (plain string, key firstcome.Key) {
	h.t.Helper()
	plain, key, err := auth.NewKey("mina of "+string(role), role)
	stage.Must(h.t, err)
	key.CreatedAt = time.Now()
	stage.Must(h.t, h.ledger.Deployment.AddKey(context.Background(), "a test", key))
	stage.Must(h.t, h.auth.Reload(context.Background()))
	return plain, key
}

// campaign creates an open campaign with so many coupons.
func (h *house) campaign(id string, quantity int64) firstcome.CampaignID {
	h.t.Helper()
	terms := firstcome.Terms{Name: "추석 " + id, Quantity: quantity, Answer: firstcome.Recorded}
	stage.Must(h.t, stage.Err(h.config.Operator.Create(context.Background(), "a test", firstcome.CampaignID(id), terms)))
	return firstcome.CampaignID(id)
}

// claim claims for each of the users.
func (h *house) claim(id firstcome.CampaignID, users ...string) {
	h.t.Helper()
	for _, user := range users {
		stage.Must(h.t, stage.Err(h.issuer.Claim(context.Background(), id, firstcome.UserID(user))))
	}
	if h.gate != nil {
		h.gate.Record(h.t, h.ledger.Recorder, id)
	}
}

// bury claims a coupon that the ledger then refuses.
func (h *house) bury(id firstcome.CampaignID, user, cause string) {
	h.t.Helper()
	stage.Must(h.t, stage.Err(h.issuer.Claim(context.Background(), id, firstcome.UserID(user))))
	h.gate.Bury(h.t, h.ledger.Recorder, id, cause)
}

// A visitor is a person whose browser keeps cookies and follows redirects.
type visitor struct {
	h      *house
	client *http.Client
	lang   string
}

func (h *house) browser() *visitor {
	jar, err := cookiejar.New(nil)
	stage.Must(h.t, err)
	b := &visitor{h: h, lang: "en", client: &http.Client{Jar: jar, Transport: &http.Transport{}}}
	h.t.Cleanup(b.client.CloseIdleConnections)
	return b
}

// login returns the browser of a person who has logged in with a key.
func (h *house) login(plain string) *visitor {
	h.t.Helper()
	b := h.browser()
	if got := b.post("/console/login", url.Values{"key": {plain}}); got.status != http.StatusOK || strings.HasSuffix(got.path, "/login") {
		h.t.Fatalf("log in: %d at %s: %s", got.status, got.path, got.text())
	}
	return b
}

// A shown is a page in a browser.
type shown struct {
	status int
	path   string // its path, after all redirects
	uri    string // path and query
	method string // the method of the request that returned it
	head   http.Header
	body   string
}

func (b *visitor) get(path string) shown {
	b.h.t.Helper()
	return b.do(http.MethodGet, path, nil, nil)
}

func (b *visitor) post(path string, form url.Values) shown {
	b.h.t.Helper()
	return b.do(http.MethodPost, path, form, nil)
}

func (b *visitor) do(method, path string, form url.Values, head http.Header) shown {
	b.h.t.Helper()
	r, err := http.NewRequest(method, b.h.url+path, strings.NewReader(form.Encode()))
	stage.Must(b.h.t, err)
	r.Header.Set("Accept-Language", b.lang)
	if form != nil {
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	for name, values := range head {
		r.Header[name] = values
	}
	w, err := b.client.Do(r)
	stage.Must(b.h.t, err)
	defer w.Body.Close()
	got := shown{status: w.StatusCode, path: w.Request.URL.Path, uri: w.Request.URL.RequestURI(), method: w.Request.Method, head: w.Header}
	if strings.HasPrefix(w.Header.Get("Content-Type"), "text/event-stream") {
		return got // the body of a stream has no end
	}
	body, err := io.ReadAll(w.Body)
	stage.Must(b.h.t, err)
	got.body = string(body)
	return got
}

var (
	markup = regexp.MustCompile(`(?s)<(style|script|template).*?</(style|script|template)>|<span popover.*?</span>|<[^>]*>`)
	spaces = regexp.MustCompile(`\s+`)
	badge  = regexp.MustCompile(`<span class="state ([a-z_]*)">([^<]*)</span>`)
)

// text returns the text that a person reads before opening any explanation.
func (s shown) text() string {
	return strings.TrimSpace(spaces.ReplaceAllString(markup.ReplaceAllString(s.body, " "), " "))
}

// version returns the version in the page's forms.
func (s shown) version() string {
	if found := regexp.MustCompile(`name="version" value="(\d+)"`).FindStringSubmatch(s.body); found != nil {
		return found[1]
	}
	return ""
}

func (h *house) configWithAuth() console.Options {
	h.config.Auth = h.auth
	return h.config
}

// openLetters returns how many dead letters are open.
func (h *house) openLetters() int {
	h.t.Helper()
	letters, err := h.ledger.Reads.DeadLetters(context.Background(), ledger.Letters{Limit: 100})
	stage.Must(h.t, err)
	return len(letters)
}
