package api

import (
	"cmp"
	"context"
	_ "embed"
	"log/slog"
	"net/http"
	"net/netip"
	"sync"
	"time"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/auth"
	"github.com/firstcome/firstcome/internal/codes"
	"github.com/firstcome/firstcome/internal/gate"
	"github.com/firstcome/firstcome/internal/ledger"
	"github.com/firstcome/firstcome/internal/operate"
)

// Options has the dependencies and limits of a Server.
type Options struct {
	Ledger Ledger
	Keys   auth.KeySource
	Terms  *TermsCache // reads the terms in Ledger
	Claims Claims
	Codes  Codes         // lists of imported codes
	Gate   gate.Counters // nil if the ledger decides
	// Places reads the lines of the gate that decides.
	Places gate.Places
	// Audit audits a campaign. It returns ErrAuditRunning while another audit runs.
	Audit func(ctx context.Context, id firstcome.CampaignID) (Audited, error)
	// Operator executes every change of a campaign.
	Operator *operate.Operator
	Auth     *auth.Authenticator
	Log      *slog.Logger // slog.Default() if nil
	// PartTime is how long sending a part of a streamed answer may take. If 0, it is partTime.
	PartTime time.Duration
	// Observer is notified of outcomes and errors. Health answers /readyz.
	Observer Observer
	Health   Health
	// UserLimit limits the rate of claims for a user and of requests with a user's own token. AddressLimit limits the rate of
	// requests from a client's address. If nil, there is no limit.
	UserLimit, AddressLimit *auth.Limiter
	// TrustedProxies are the proxies whose X-Forwarded-For is trusted.
	TrustedProxies []netip.Prefix
	// MaxStreams is how many streams of places may be open at once. If 0, it is defaultStreams. FollowEvery is the time
	// between two reads of a line for its streams. If 0, it is followEvery.
	MaxStreams  int
	FollowEvery time.Duration
	// CORSOrigins are the other origins whose pages may send requests. See ParseOrigin.
	CORSOrigins []string
}

// An Observer is notified of the outcomes of claims and of errors.
type Observer interface {
	// Claimed is called for a claim that is answered with an outcome. took is the time since its whole body arrived.
	Claimed(id firstcome.CampaignID, outcome firstcome.Outcome, took time.Duration)
	// Decided is called for each outcome of a direct issue.
	Decided(id firstcome.CampaignID, outcome firstcome.Outcome)
	// Undecided is called for a claim that ended with an error. ctx is the claim's context.
	Undecided(ctx context.Context, id firstcome.CampaignID, err error)
	// Warn logs a warning. It may drop repeated warnings, because errors come in thousands.
	Warn(text string, args ...any)
}

// A Health answers health checks.
type Health interface {
	// Drain makes the node permanently not ready.
	Drain()
	// Ready answers GET /readyz. Only if mayLook returns true may it query the ledger.
	Ready(w http.ResponseWriter, r *http.Request, mayLook func(*http.Request) bool)
}

// A Server is the HTTP API. Create it with New.
type Server struct {
	*core
	campaigns   campaigns
	claims      *claims
	lines       lines
	streams     streams
	coupons     coupons
	codes       codeLists
	facts       facts
	deadLetters deadLetters
	auditLog    auditLog

	drain sync.Once
}

// A core is the state that the API's resources share.
type core struct {
	Options
	buffers  sync.Pool // of *buffer
	existing existing
	origins  http.CrossOriginProtection
	draining chan struct{} // closed by Server.Drain
}

// partTime is the default Options.PartTime, the same as for a whole answer.
const partTime = 30 * time.Second

const (
	// exports is how many exports may run at once, and exportsOfKey how many per key. Each export holds one of the ledger's
	// four read connections until its client has received everything.
	exports, exportsOfKey = 2, 1
	// followsOfKey is how many requests per key may wait for facts at once. A follower needs one per campaign, and some shops
	// run a process per campaign.
	followsOfKey = 256
	// One address may have 1/streamsOfAddress of all streams, but at least streamsOfUser. This applies to streams with users'
	// own tokens, if Options.AddressLimit is set.
	streamsOfAddress = 16
)

// New returns the Server.
func New(c Options) *Server {
	c.Log, c.PartTime = cmp.Or(c.Log, slog.Default()), cmp.Or(c.PartTime, partTime)
	c.MaxStreams, c.FollowEvery = cmp.Or(c.MaxStreams, defaultStreams), cmp.Or(c.FollowEvery, followEvery)
	shared := &core{
		Options:  c,
		buffers:  sync.Pool{New: func() any { return &buffer{} }},
		existing: existing{ledger: c.Ledger, room: make(chan struct{}, mostUnknown)},
		draining: make(chan struct{}),
	}
	s := &Server{
		core: shared, campaigns: campaigns{shared}, claims: &claims{shared}, lines: newLines(shared),
		codes:   codeLists{core: shared, imports: auth.Room{All: 1}},
		coupons: coupons{core: shared, exports: auth.Room{Each: exportsOfKey, All: exports}},
		facts:   facts{core: shared, follows: auth.Room{Each: followsOfKey}}, deadLetters: deadLetters{shared}, auditLog: auditLog{shared},
	}
	s.streams = streams{
		core: shared, claims: s.claims, joins: make(chan *follower), lines: make(chan lineRead), answers: make(chan answerRead),
		openings: make(chan struct{}, mostOpenings), campaigns: map[firstcome.CampaignID]*campaignStreams{},
		addresses: auth.Room{Each: max(streamsOfUser, c.MaxStreams/streamsOfAddress)},
	}
	for _, origin := range c.CORSOrigins {
		if err := s.origins.AddTrustedOrigin(origin); err != nil {
			panic(err) // cannot happen: ParseOrigin checked the origins
		}
	}
	return s
}

// Run serves the streams of places until ctx ends. It must be called once.
func (s *Server) Run(ctx context.Context) error { return s.streams.run(ctx) }

// Streams returns how many streams are open, how many were dropped because their clients did not read, and how many were
// refused because of a limit.
func (s *Server) Streams() (open, dropped, refused int64) {
	return s.streams.open.Load(), s.streams.dropped.Load(), s.streams.refused.Load()
}

// Drain makes /readyz answer 503, and ends every wait for facts and every stream. Further calls do nothing.
func (s *Server) Drain() {
	s.Health.Drain()
	s.drain.Do(func() { close(s.draining) })
}

// A Ledger has the ledger's reads that the API needs. ledger.Reads implements it. Options.Operator changes campaigns.
type Ledger interface {
	Decides(c *ledger.Status) error
	Campaign(ctx context.Context, id firstcome.CampaignID) (ledger.Status, error)
	Campaigns(ctx context.Context, after firstcome.CampaignID, limit int) ([]ledger.Status, error)
	Unclosed(ctx context.Context, limit int) (all []ledger.Shown, more int64, err error)
	Knows(id firstcome.CampaignID) bool
	Exists(ctx context.Context, id firstcome.CampaignID) error
	Lost(ctx context.Context, id firstcome.CampaignID) ([]firstcome.Range, error)
	PrizesGiven(ctx context.Context, id firstcome.CampaignID, t *firstcome.Terms, last int64) ([]ledger.PrizeGiven, error)

	Coupons(ctx context.Context, id firstcome.CampaignID, p ledger.Page, each func(firstcome.Coupon) error) error
	Export(ctx context.Context, id firstcome.CampaignID, p ledger.Page, each func(c firstcome.Coupon, reason string) error) error
	ByCode(ctx context.Context, id firstcome.CampaignID, code string) (ledger.Holding, error)
	Find(ctx context.Context, id firstcome.CampaignID, c ledger.Choice) (found []firstcome.Coupon, next int64, err error)
	Wallet(ctx context.Context, user firstcome.UserID, after firstcome.CampaignID, limit int) ([]firstcome.Coupon, error)

	Facts(ctx context.Context, id firstcome.CampaignID, after int64, limit int, each func(firstcome.Fact) error) error
	NewFacts(id firstcome.CampaignID) (news <-chan struct{}, forget func())

	Changes(ctx context.Context, id firstcome.CampaignID, after int64, limit int, each func(c firstcome.Change, refused bool) error) error
	DeadLetters(ctx context.Context, p ledger.Letters) ([]ledger.DeadLetter, error)
	LetterCauses(ctx context.Context, id firstcome.CampaignID) ([]ledger.LetterCause, error)
	AuditLog(ctx context.Context, f ledger.LogFilter) ([]ledger.LogEntry, error)
}

// Codes has the lists of imported codes. codes.Lists implements it.
type Codes interface {
	Import(ctx context.Context, actor string, id firstcome.CampaignID, prize firstcome.PrizeID, list []string) (codes.Imported, error)
	CodeOf(ctx context.Context, c *firstcome.Coupon, t *firstcome.Terms) (string, error)
	Entries(ctx context.Context, id firstcome.CampaignID) (map[firstcome.PrizeID]int64, error)
}

// Claims decides claims and finds users' coupons. issue.Answerer implements it.
type Claims interface {
	Claim(ctx context.Context, id firstcome.CampaignID, user firstcome.UserID) (firstcome.Decision, error)
	CouponOf(ctx context.Context, id firstcome.CampaignID, user firstcome.UserID) (firstcome.Coupon, error)
}

const about = `This is firstcome: it gives a limited number of coupons to the people who ask first.

/openapi.yaml describes its HTTP API, which is below /v1. /livez and /readyz say how this node is.
`

// about answers GET / with a short description for people.
func (s *Server) about(w http.ResponseWriter, _ *http.Request, _ auth.Caller) error {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	_, err := w.Write([]byte(about))
	return err
}

// livez answers GET /livez. It checks only that the process responds.
func (s *Server) livez(w http.ResponseWriter, _ *http.Request, _ auth.Caller) error {
	writeBody(w, http.StatusOK, []byte(`{"status":"ok"}`))
	return nil
}

// readyz answers GET /readyz.
func (s *Server) readyz(w http.ResponseWriter, r *http.Request, _ auth.Caller) error {
	s.Health.Ready(w, r, s.mayLook)
	return nil
}

// mayLook reports whether a /readyz request may query the ledger, which needs an API key. Otherwise strangers could
// overload the ledger. Without a key, the answer has only what a probe needs.
func (s *Server) mayLook(r *http.Request) bool {
	_, err := (&guard{core: s.core, route: route{who: auth.SeesAll | auth.Support | auth.Viewer | auth.Service | auth.Shop}}).admit(r)
	return err == nil
}

//go:embed openapi.yaml
var openAPI []byte

// openAPI answers GET /openapi.yaml.
func (s *Server) openAPI(w http.ResponseWriter, _ *http.Request, _ auth.Caller) error {
	w.Header().Set("Content-Type", "application/yaml")
	_, _ = w.Write(openAPI)
	return nil
}
