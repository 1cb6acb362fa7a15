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
	"github.com/firstcome/firstcome/internal/flow"
	"github.com/firstcome/firstcome/internal/operate"
)

// Config is what a Server stands on.
type Config struct {
	Ledger Ledger
	Terms  *TermsCache // of Ledger
	Claims Claims
	Gate   Gate // nil: the ledger decides
	// Places are those of the gate that decides.
	Places flow.Places
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
	// CORSOrigins are the other origins whose pages may ask: see ParseOrigin.
	CORSOrigins []string
}

// An Observer hears how a Server's claims end, and what goes wrong.
type Observer interface {
	// Decided hears of an outcome that is answered.
	Decided(outcome firstcome.Outcome)
	// Took hears how long a claim with an outcome took once its whole body was there.
	Took(long time.Duration)
	// Undecided hears of a claim, made with ctx, that ended with an error.
	Undecided(ctx context.Context, err error)
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
	Config
	buffers  sync.Pool // of *buffer
	exports  chan struct{}
	searches chan struct{} // one request at a time looks for a code
	followed lines
	origins  http.CrossOriginProtection

	drain    sync.Once
	draining chan struct{} // closed by Drain
}

// partTime is the time for a part of a streamed answer to leave, the same as for a whole one.
const partTime = 30 * time.Second

// exports is how many whole campaigns may be streamed at once: each holds one of
// the ledger's four reading connections for as long as its client takes.
const exports = 2

// New returns the Server.
func New(c Config) *Server {
	c.Log, c.PartTime = cmp.Or(c.Log, slog.Default()), cmp.Or(c.PartTime, partTime)
	s := &Server{
		Config:   c,
		buffers:  sync.Pool{New: func() any { return &buffer{} }},
		exports:  make(chan struct{}, exports),
		searches: make(chan struct{}, 1),
		draining: make(chan struct{}),
	}
	for _, origin := range c.CORSOrigins {
		if err := s.origins.AddTrustedOrigin(origin); err != nil {
			panic(err) // ParseOrigin has checked them
		}
	}
	return s
}

// Drain turns /readyz to 503 and ends every wait for facts. It may be repeated.
func (s *Server) Drain() {
	s.Health.Drain()
	s.drain.Do(func() { close(s.draining) })
}
