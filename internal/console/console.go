// Package console serves the web pages on which people watch, manage and verify a drop.
//
// # A page
//
// pages.go lists every page with its path and the roles that may see it. A handler is a method. It either reads data and renders
// a template of pages/ (view.go), or performs a form's action and redirects (303). So every page works without JavaScript.
// Related handlers are methods of one type, such as couponHandlers; all share a core. Each sentence is written in both languages
// where it is used, in a template as {{t "한국어" "English"}}.
//
// # Authorization
//
// A person logs in with an API key. session.go encrypts the key's ID in a cookie, and each request looks the key up again.
// Every change goes through operate.Operator, as in the API.
package console

import (
	"cmp"
	"context"
	"log/slog"
	"math"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/auth"
	"github.com/firstcome/firstcome/internal/doctor"
	"github.com/firstcome/firstcome/internal/figures"
	"github.com/firstcome/firstcome/internal/gate"
	"github.com/firstcome/firstcome/internal/ledger"
	"github.com/firstcome/firstcome/internal/operate"
	"github.com/firstcome/firstcome/internal/recovery"
)

// Options configures a Console.
type Options struct {
	Ledger     Ledger
	Deployment Deployment
	// LastRebuild returns the result of a campaign's last rebuild: see epoch.Epochs.
	LastRebuild func(ctx context.Context, id firstcome.CampaignID) (recovery.Rebuilt, error)
	Gate        gate.Counters // nil if the ledger decides
	Places      gate.Places
	Operator    *operate.Operator
	Watcher     *figures.Watcher
	Journal     *Journal // nil if the ledger decides
	// Excel sends all coupons of a campaign to an actor, as api.Server.Excel does.
	Excel func(w http.ResponseWriter, r *http.Request, actor string, of ledger.Status, zone *time.Location, korean bool) error
	// Decided is called with the outcome of each direct issue, as in api.Observer. It may be nil.
	Decided func(firstcome.CampaignID, firstcome.Outcome)
	// Doctor checks this node's configuration. If nil, there are no checks.
	Doctor func(context.Context) doctor.Findings
	// Prove audits a campaign for its page.
	Prove Prove
	Auth  *auth.Authenticator
	// AllowAddress limits requests by the client's address, as api.Server.AllowAddress does. If nil, there is no limit.
	AllowAddress func(*http.Request) (wait time.Duration, ok bool)
	// Secret encrypts the sessions. Every node of a deployment has the same secret.
	Secret firstcome.Secret
	// Secure means that the pages are served only over TLS.
	Secure bool
	// Zone is the time zone in which people read and type times. If nil, it is Asia/Seoul on Korean pages, and otherwise UTC.
	Zone  *time.Location
	Log   *slog.Logger     // slog.Default() if nil
	Clock func() time.Time // time.Now if nil
}

// A Ledger has the reads that the pages need: see ledger.Reads. Changes go through Options.Operator.
type Ledger interface {
	Terms(ctx context.Context, id firstcome.CampaignID, version int64) (firstcome.Terms, error)
	Campaign(ctx context.Context, id firstcome.CampaignID) (ledger.Status, error)
	List(ctx context.Context, f ledger.Listing) ([]ledger.Status, error)
	Campaigns(ctx context.Context, after firstcome.CampaignID, limit int) ([]ledger.Status, error)

	Coupons(ctx context.Context, id firstcome.CampaignID, p ledger.Page, each func(firstcome.Coupon) error) error
	ByCode(ctx context.Context, id firstcome.CampaignID, code string) (ledger.Holding, error)
	Find(ctx context.Context, id firstcome.CampaignID, c ledger.Choice) (found []firstcome.Coupon, next int64, err error)
	Wallet(ctx context.Context, user firstcome.UserID, after firstcome.CampaignID, limit int) ([]firstcome.Coupon, error)

	StepsAt(ctx context.Context, id firstcome.CampaignID, numbers []int64) ([]ledger.Step, error)
	Course(ctx context.Context, id firstcome.CampaignID, last int64, most int) ([]ledger.Step, error)
	Voids(ctx context.Context, id firstcome.CampaignID, most int) ([]ledger.VoidStep, error)

	Changes(ctx context.Context, id firstcome.CampaignID, after int64, limit int, each func(c firstcome.Change, refused bool) error) error
	AuditLog(ctx context.Context, f ledger.LogFilter) ([]ledger.LogEntry, error)

	DeadLetters(ctx context.Context, p ledger.Letters) ([]ledger.DeadLetter, error)
	LettersToResolve(ctx context.Context, of ledger.Letters) (some []ledger.DeadLetter, all int64, err error)
	LetterCauses(ctx context.Context, id firstcome.CampaignID) ([]ledger.LetterCause, error)
	Lost(ctx context.Context, id firstcome.CampaignID) ([]firstcome.Range, error)
}

// A Deployment stores API keys and proofs: see ledger.Deployment.
type Deployment interface {
	Keys(ctx context.Context) ([]firstcome.Key, error)
	AddKey(ctx context.Context, actor string, k firstcome.Key) error
	RevokeKey(ctx context.Context, actor, id string) error
	EndSessions(ctx context.Context, id string, until time.Time) error

	KeepProof(ctx context.Context, p ledger.Proof) error
	Proofs(ctx context.Context, ids []firstcome.CampaignID) ([]ledger.Proof, error)
}

// A Console serves the pages. Create it with New.
type Console struct {
	*core
	rooms map[length]*auth.Room
	stop  sync.Once

	logins    loginHandlers
	campaigns campaignHandlers
	live      liveHandlers
	steer     steerHandlers
	coupons   couponHandlers
	customers customerHandlers
	proofs    proofHandlers
	health    healthHandlers
	recording recordingHandlers
	records   recordHandlers
	keys      keyHandlers
}

// A core has the fields that all handlers share.
type core struct {
	Options
	seal     *seal
	sheets   map[language]*sheets
	assets   assets
	prover   *prover
	mux      *http.ServeMux
	stopping chan struct{} // closed by Console.Stop
}

// Run runs the requested proofs, one at a time, until ctx ends.
func (c *Console) Run(ctx context.Context) error { return c.prover.run(ctx) }

// Stop ends every event stream. Browsers then reconnect, to another node. It may be called repeatedly.
func (c *Console) Stop() { c.stop.Do(func() { close(c.stopping) }) }

// New returns the Console.
func New(c Options) *Console {
	c.Log = cmp.Or(c.Log, slog.Default())
	if c.Clock == nil {
		c.Clock = time.Now
	}
	shared := &core{Options: c, seal: newSeal(c.Secret), assets: readAssets(), mux: http.NewServeMux(), stopping: make(chan struct{}), prover: newProver(&c)}
	console := &Console{
		core: shared, logins: loginHandlers{shared}, campaigns: campaignHandlers{shared}, live: liveHandlers{shared}, steer: steerHandlers{shared},
		coupons: couponHandlers{shared}, customers: customerHandlers{shared}, proofs: proofHandlers{shared}, health: healthHandlers{core: shared},
		recording: recordingHandlers{shared}, records: recordHandlers{shared}, keys: keyHandlers{shared},
	}
	console.rooms = map[length]*auth.Room{short: {Each: pagesOfKey, All: mostPages}, endless: {Each: pagesOfKey, All: mostPages}}
	console.sheets = map[language]*sheets{}
	for _, l := range languages {
		console.sheets[l] = parseSheets(c.locale(l), &console.assets)
	}
	console.mux.HandleFunc("GET "+Root+"/assets/{name}", console.serveAsset)
	console.mux.HandleFunc("/", console.serveLost)
	for _, p := range console.pages() {
		console.mux.Handle(p.method+" "+Root+p.path, &door{console, p})
	}
	return console
}

// Root is the path of the console's first page, and the prefix of all others.
const Root = "/console"

// Handler serves Root and everything below it.
func (c *Console) Handler() http.Handler { return c.protect(c.mux) }

// shown returns the path of a page that a browser can load again: the request's own path, or after a form the nearest page above it.
func (c *core) shown(r *http.Request) string {
	path := r.URL.Path
	for r.Method != http.MethodGet && path != Root {
		if _, pattern := c.mux.Handler(&http.Request{Method: http.MethodGet, URL: &url.URL{Path: path}}); pattern != "/" {
			break
		}
		path = path[:strings.LastIndexByte(path, '/')]
	}
	return path
}

// Operations returns the method and path of every page.
func (c *Console) Operations() []string {
	var operations []string
	for _, p := range c.pages() {
		operations = append(operations, p.method+" "+Root+p.path)
	}
	return operations
}

// protect refuses requests from pages of other sites, and sets the security headers of every response.
func (c *Console) protect(next http.Handler) http.Handler {
	cross := http.NewCrossOriginProtection()
	cross.SetDenyHandler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c.newView(w, r).refuse(errCrossSite)
	}))
	guarded := cross.Handler(next)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Content-Security-Policy", "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'")
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Referrer-Policy", "same-origin")
		h.Set("Cross-Origin-Opener-Policy", "same-origin")
		h.Set("Cache-Control", "no-store")
		if c.Auth.Open() && !auth.IsLoopback(r.Host) { // see auth.IsLoopback
			c.newView(w, r).refuse(errOtherHost)
			return
		}
		if c.Auth.Open() && auth.IsProxied(r) {
			c.newView(w, r).refuse(errProxied)
			return
		}
		// Assets do not count: they cost no more than a refusal, whose page needs them.
		if c.AllowAddress != nil && !strings.HasPrefix(r.URL.Path, Root+"/assets/") {
			if wait, ok := c.AllowAddress(r); !ok {
				h.Set("Retry-After", strconv.FormatInt(int64(math.Ceil(wait.Seconds())), 10))
				c.newView(w, r).refuse(errOften)
				return
			}
		}
		guarded.ServeHTTP(w, r)
	})
}
