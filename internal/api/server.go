package api

import (
	"cmp"
	"context"
	"log/slog"
	"net/http"
	"net/netip"
	"sync"
	"time"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/auth"
	"github.com/firstcome/firstcome/internal/gate"
	"github.com/firstcome/firstcome/internal/ledger"
	"github.com/firstcome/firstcome/internal/operate"
)

// Config is what a Server stands on.
type Config struct {
	Ledger Ledger
	Keys   auth.KeySource
	Terms  *TermsCache // of Ledger
	Claims Claims
	Gate   gate.Counters // nil: the ledger decides
	// Places are those of the gate that decides.
	Places gate.Places
	// Audit audits a campaign, one at a time: ErrAuditRunning says that it does so already.
	Audit func(ctx context.Context, id firstcome.CampaignID) (Audited, error)
	// Operator does what changes a campaign.
	Operator *operate.Operator
	Auth     *auth.Authenticator
	Log      *slog.Logger // nil: slog.Default()
	// PartTime is the time for a part of a streamed answer to leave; zero: partTime.
	PartTime time.Duration
	// Observer hears how claims end; Health answers /readyz.
	Observer Observer
	Health   Health
	// UserLimit bounds claims for a user and requests with a user's own token; AddressLimit
	// bounds requests from a client's address. nil: no limit.
	UserLimit, AddressLimit *auth.Limiter
	// TrustedProxies are believed when they say, in X-Forwarded-For, who the client is.
	TrustedProxies []netip.Prefix
	// MaxStreams is how many people may follow their places by a stream at once; zero: defaultStreams. FollowEvery is how often the
	// lines are read for them; zero: followEvery.
	MaxStreams  int
	FollowEvery time.Duration
	// CORSOrigins are the other origins whose pages may ask: see ParseOrigin.
	CORSOrigins []string
}

// An Observer hears how a Server's claims end, and what goes wrong.
type Observer interface {
	// Claimed hears of a claim that is answered with an outcome, and how long it took once its whole body was there.
	Claimed(id firstcome.CampaignID, outcome firstcome.Outcome, took time.Duration)
	// Decided hears of an outcome of a direct issue.
	Decided(id firstcome.CampaignID, outcome firstcome.Outcome)
	// Undecided hears of a claim, made with ctx, that ended with an error.
	Undecided(ctx context.Context, id firstcome.CampaignID, err error)
	// Warn logs. What goes wrong once goes wrong thousands of times, so not every time is logged.
	Warn(text string, args ...any)
}

// A Health knows how the node is.
type Health interface {
	// Drain makes the node not ready from now on.
	Drain()
	// Ready answers GET /readyz, in full to callers whom mayLook admits.
	Ready(w http.ResponseWriter, r *http.Request, mayLook func(*http.Request) bool)
}

// A Server is the HTTP API. Make one with New.
type Server struct {
	*core
	campaigns   campaigns
	claims      *claims
	lines       lines
	streams     streams
	coupons     coupons
	facts       facts
	deadLetters deadLetters
	auditLog    auditLog

	drain sync.Once
}

// A core is what the resources of the API share.
type core struct {
	Config
	buffers  sync.Pool // of *buffer
	existing existing
	origins  http.CrossOriginProtection
	draining chan struct{} // closed by Server.Drain
}

// partTime is the time for a part of a streamed answer to leave, the same as for a whole one.
const partTime = 30 * time.Second

const (
	// exports is how many whole campaigns may be streamed at once, and exportsOfKey how many to one key: each holds one of the
	// ledger's four reading connections for as long as its client takes.
	exports, exportsOfKey = 2, 1
	// followsOfKey is how many requests of one key wait for facts at once: a follower of a campaign needs one, and some shops have a
	// process for each campaign.
	followsOfKey = 256
	// streamsOfAddress is which part of all streams the users at one address may have, where addresses are limited.
	streamsOfAddress = 16
)

// New returns the Server.
func New(c Config) *Server {
	c.Log, c.PartTime = cmp.Or(c.Log, slog.Default()), cmp.Or(c.PartTime, partTime)
	c.MaxStreams, c.FollowEvery = cmp.Or(c.MaxStreams, defaultStreams), cmp.Or(c.FollowEvery, followEvery)
	shared := &core{
		Config:   c,
		buffers:  sync.Pool{New: func() any { return &buffer{} }},
		existing: newExisting(c.Ledger),
		draining: make(chan struct{}),
	}
	s := &Server{
		core: shared, campaigns: campaigns{shared}, claims: &claims{shared}, lines: newLines(shared),
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
			panic(err) // ParseOrigin has checked them
		}
	}
	return s
}

// Run writes to all who follow their places, until ctx ends. It runs once.
func (s *Server) Run(ctx context.Context) error { return s.streams.run(ctx) }

// Streams returns how many streams are open, how many were dropped because their clients did not read, and how many were
// refused for want of room.
func (s *Server) Streams() (open, dropped, refused int64) {
	return s.streams.open.Load(), s.streams.dropped.Load(), s.streams.refused.Load()
}

// Drain turns /readyz to 503, and ends every wait for facts and every stream. It may be repeated.
func (s *Server) Drain() {
	s.Health.Drain()
	s.drain.Do(func() { close(s.draining) })
}

// A Ledger is what the API reads of one: see ledger.Reads. Changes of a campaign go through Config.Operator.
type Ledger interface {
	Campaigns
	Coupons
	Facts
	Records
}

// Campaigns are a ledger's.
type Campaigns interface {
	Decides(c *ledger.Status) error
	Campaign(ctx context.Context, id firstcome.CampaignID) (ledger.Status, error)
	Campaigns(ctx context.Context, after firstcome.CampaignID, limit int) ([]ledger.Status, error)
	Unclosed(ctx context.Context, limit int) (all []ledger.Shown, more int64, err error)
	Lost(ctx context.Context, id firstcome.CampaignID) ([]ledger.Range, error)
}

// Coupons are a ledger's.
type Coupons interface {
	Coupons(ctx context.Context, id firstcome.CampaignID, p ledger.Page, each func(firstcome.Coupon) error) error
	Export(ctx context.Context, id firstcome.CampaignID, p ledger.Page, each func(c firstcome.Coupon, reason string) error) error
	Find(ctx context.Context, id firstcome.CampaignID, c ledger.Choice) (found []firstcome.Coupon, next int64, err error)
	Wallet(ctx context.Context, user firstcome.UserID, after firstcome.CampaignID, limit int) ([]firstcome.Coupon, error)
}

// Facts are a ledger's.
type Facts interface {
	Facts(ctx context.Context, id firstcome.CampaignID, after int64, limit int, each func(firstcome.Fact) error) error
	NewFacts(id firstcome.CampaignID) (news <-chan struct{}, forget func())
}

// Records say what was done, and what is left to do.
type Records interface {
	Changes(ctx context.Context, id firstcome.CampaignID, after int64, limit int, each func(c firstcome.Change, refused bool) error) error
	DeadLetters(ctx context.Context, p ledger.Letters) ([]ledger.DeadLetter, error)
	LetterCauses(ctx context.Context, id firstcome.CampaignID) ([]ledger.LetterCause, error)
	AuditLog(ctx context.Context, f ledger.LogFilter) ([]ledger.LogEntry, error)
}

// Claims answers claims and repeated questions for a coupon: see issue.Answerer.
type Claims interface {
	Claim(ctx context.Context, id firstcome.CampaignID, user firstcome.UserID) (firstcome.Decision, error)
	CouponOf(ctx context.Context, id firstcome.CampaignID, user firstcome.UserID) (firstcome.Coupon, error)
}
