package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/auth"
	"github.com/firstcome/firstcome/internal/httpd"
	"github.com/firstcome/firstcome/internal/issue"
	"github.com/firstcome/firstcome/internal/ledger"
	"github.com/firstcome/firstcome/internal/sqldb"
	"github.com/firstcome/firstcome/internal/trust"
)

type serveCmd struct {
	ledgerFlag
	SecretFile string         `placeholder:"FILE" help:"File with the secret of the coupon codes, at least 32 bytes or 64 hexadecimal digits (default: created at the first start and kept beside the ledger as FILE.secret). FIRSTCOME_SECRET may hold the secret instead."`
	Listen     listenAddress  `default:"127.0.0.1:8080" placeholder:"HOST:PORT" help:"Where to serve the API (default: 127.0.0.1:8080). An address other than loopback requires a key or a token configuration."`
	Ops        opsAddress     `placeholder:"HOST:PORT" help:"Where to serve metrics and profiles, never in public; off to serve none (default: the port of --listen + 1, on 127.0.0.1)."`
	Console    consoleAddress `placeholder:"on" help:"Where to serve the console, the pages for people: on (at --listen, on loopback only), off, or HOST:PORT of its own (default: on if --listen is loopback, otherwise off)."`
	TZ         zoneName       `name:"tz" placeholder:"ZONE" help:"Time zone of the times that people read and type in the console and in its exports, like America/New_York (default: Asia/Seoul on Korean pages, otherwise UTC)."`
	CreateKey  bool           `help:"If the ledger has no key, create the first admin key and print it, once, to standard output."`
	TLSCert    string         `name:"tls-cert" placeholder:"FILE" help:"PEM file of the certificate and its chain. Without the file the API is plain HTTP."`
	TLSKey     string         `name:"tls-key" placeholder:"FILE" help:"PEM file of the certificate's private key."`
	gateFlags
	Facts topicURL `placeholder:"kafka://HOST:PORT/TOPIC" help:"Publish facts about coupons to a Kafka topic: kafka://USER:PASSWORD@HOST:PORT,HOST:PORT/TOPIC, or kafkas:// with TLS; see docs/events.md (default: nowhere). If the URL has a password, set FIRSTCOME_FACTS instead."`
	tokenFlags
	limitFlags
	AnswerWait    time.Duration `default:"5s" help:"How long a claim may wait for its turn, then for the gate's decision, and then for the ledger, each, before it is answered 503, ask again (default: 5s)."`
	DrainDelay    time.Duration `default:"0s" help:"How long to keep accepting requests after SIGTERM, while /readyz reports that the node is not ready, so that load balancers notice (default: 0s)."`
	IdleTimeout   time.Duration `default:"120s" help:"How long an idle connection waits for its next request before it is closed: longer than your load balancer keeps it (default: 120s)."`
	ShutdownGrace time.Duration `default:"30s" help:"How long requests in flight may take after --drain-delay (default: 30s)."`
	LogLevel      string        `enum:"debug,info,warn,error" default:"info" placeholder:"info" help:"Log debug, info, warn or error and above (default: info)."`
	LogFormat     string        `enum:"text,json" default:"text" placeholder:"text" help:"Log text or json (default: text)."`

	files   files
	dropped func() int64 // how many lines of the log were dropped; nil if there is no log
}

// files has the contents of the files that the flags name. check reads each file once, because it may be a pipe, as with <(…).
type files struct {
	secret []byte      // the text of the code secret; nil if there is none yet
	tls    *tls.Config // nil for plain HTTP
	jwt    *auth.JWT   // nil if users have no tokens
}

// tokenFlags determine which of users' tokens (JWT) are accepted.
type tokenFlags struct {
	JWTSecretFile string   `name:"jwt-secret-file" placeholder:"FILE" help:"File with the secret of users' tokens with HS256 (at least 32 bytes), HS384 (48) or HS512 (64): as it is, or after base64: or hex:. FIRSTCOME_JWT_SECRET may hold the secret instead."`
	JWTPublicKey  string   `name:"jwt-public-key" placeholder:"FILE" help:"File with the public key of users' tokens with RS256 or ES256 in PEM, or with a JWK set of several keys. The file is read again every second."`
	JWTAlgorithms []string `name:"jwt-algorithms" placeholder:"HS256" help:"Allow only these algorithms (default: all for which there is a key)."`
	JWTUserClaim  string   `name:"jwt-user-claim" default:"sub" placeholder:"sub" help:"The claim that holds the user's id (default: sub)."`
	JWTIssuer     string   `name:"jwt-issuer" placeholder:"ISS" help:"Refuse tokens without this iss."`
	JWTAudience   string   `name:"jwt-audience" placeholder:"AUD" help:"Refuse tokens without this aud."`
}

// limitFlags limit the resources that clients may use.
type limitFlags struct {
	MaxConnections count          `default:"8192" help:"Connections at once, and never more than the limit of open files allows (default: 8192)."`
	MaxStreams     count          `default:"10000" help:"Users who follow their places by a stream at once, and never more than two thirds of what the limit of open files allows. Further users are answered 503 and read the line instead (default: 10000)."`
	Lanes          string         `enum:"on,off" default:"on" placeholder:"on" help:"Answer plain, short requests without net/http, unless there is TLS: on, or off to let net/http answer all requests (default: on)."`
	MaxWaiting     count          `default:"16384" help:"Claims of one campaign that may wait for the gate. Further claims are answered 503 (default: 16384)."`
	MaxLine        count          `default:"1000000" help:"Users in the waiting line of one campaign. Further claims are answered 503 (default: 1000000)."`
	UserRate       perSecond      `default:"0" placeholder:"N" help:"Requests a second of one user (default: 0, no limit)."`
	AddressRate    perSecond      `default:"0" placeholder:"N" help:"Requests a second from one address, to the API and the console (default: 0, no limit)."`
	TrustedProxy   []netip.Prefix `placeholder:"RANGE" help:"Proxies whose X-Forwarded-For header has the client's address, like 10.0.0.0/8 (default: none)."`
	CORSOrigin     []origin       `name:"cors-origin" placeholder:"ORIGIN" help:"Exact origins whose pages may call the API, like https://app.shop.example (default: none)."`
}

const (
	// userBurst is how many requests of one user may come at once under --user-rate: a double click and its retries.
	userBurst = 10
	// addressBurst is how many requests may come from one address at once under --address-rate: an office behind one address.
	addressBurst = 100
	// rememberedLimits is the number of users or addresses whose rate is kept: some 30 MB when full.
	rememberedLimits = 100_000
)

func (c *serveCmd) Help() string {
	return `Without a key in the ledger and without a token configuration, the server is in development mode: every
caller is admin, and the server listens on loopback only. To serve other machines, first create a key with

  firstcome key create --ledger sqlite:FILE --name NAME --role admin

or let the first start create a key and print it once with --create-key, or configure users' tokens.
The mode is fixed at the start: after its last key is revoked, a running server refuses every caller.`
}

// check returns the mistakes in the flags and in their files, before anything is opened.
func (c *serveCmd) check(t terminal) []error {
	errs := c.gateFlags.check()
	if (c.TLSCert == "") != (c.TLSKey == "") {
		errs = append(errs, errors.New("--tls-cert and --tls-key go together: name both or neither"))
	}
	errs = append(errs, c.checkConsole()...)
	var err error
	if c.files.secret, err = secretText(t, c.SecretFile, c.Ledger.path()); err != nil {
		errs = append(errs, err)
	} else if c.files.secret == nil && sqldb.OnServer(c.Ledger.path()) {
		errs = append(errs, errNoSecret)
	} else if c.files.secret != nil {
		if _, err := parseSecret(c.files.secret); err != nil {
			errs = append(errs, err)
		}
	}
	if _, err := os.Stat(c.Ledger.path()); errors.Is(err, os.ErrNotExist) && !sqldb.OnServer(c.Ledger.path()) && !c.hasTokens(t) && !c.CreateKey && !c.Listen.isLoopback() {
		errs = append(errs, c.refuseOpen()) // before a ledger is created
	}
	if c.files.tls, err = c.tls(); err != nil {
		errs = append(errs, err)
	}
	if c.files.jwt, err = c.jwt(t); err != nil {
		errs = append(errs, err)
	}
	return errs
}

// checkConsole returns the mistakes in the console's address.
func (c *serveCmd) checkConsole() []error {
	switch {
	case c.silent() && c.Console != "" && c.Console != consoleOff:
		return []error{errors.New("--console: a node that only records serves no pages: set --console at a node that answers")}
	case c.Console == consoleOn && !c.Listen.isLoopback():
		return []error{fmt.Errorf("--console on: other machines can reach --listen %s, and their requests could take all connections of the console: give the console an address of its own, like --console 10.0.0.5:8090", c.Listen)}
	}
	return nil
}

func (c *serveCmd) Run(ctx context.Context, t terminal) error {
	signal.Ignore(syscall.SIGPIPE) // a log whose reader is gone ends no node
	log, lines := newLog(t.err, c.LogLevel, c.LogFormat)
	defer lines.Close()
	c.dropped = lines.dropped.Load
	n, err := newNode(ctx, c, log, func(ctx context.Context, l *ledger.Ledger) (bool, error) { return c.mode(ctx, t, l) })
	if err != nil {
		return err
	}
	c.announce(n)
	if isTerminal(t.raw()) {
		c.welcome(t, n)
	}
	if err := n.run(ctx); err != nil {
		return err
	}
	log.Info("stopped")
	return nil
}

// warnings returns what an operator may not have intended in flags that fit together.
func (f *limitFlags) warnings() (all []string) {
	for _, p := range f.TrustedProxy {
		if p.Bits() == 0 {
			all = append(all, "--trusted-proxy "+p.String()+" trusts every client: each can name any address in X-Forwarded-For, so --address-rate limits none of them. Name only your proxies")
		}
	}
	return all
}

// announce logs where the node serves, and warns of settings that an operator may not have intended.
func (c *serveCmd) announce(n *node) {
	log := n.log
	log.Info("serving", "version", thisBuild().Version, "address", n.address(), "tls", c.files.tls != nil,
		"ops", n.opsAddress(), "console", n.consoleURL(), "gate", c.Gate.String(), "role", c.Role, "journal", c.Journal.String(), "facts", c.Facts.String(), "ledger", sqldb.Masked(c.Ledger.path()), "development", n.development)
	if n.development {
		log.Warn("development mode: there is no key and no token configuration, so every caller is admin")
	}
	for _, warning := range c.warnings() {
		log.Warn(warning)
	}
	if n.ops != nil && !listenAddress(c.Ops.beside(c.Listen)).isLoopback() {
		log.Warn("metrics and profiles require no key, and other machines can reach them", "ops", n.opsAddress())
	}
}

// welcome prints, for a person at a terminal, where the server is and what to type next.
func (c *serveCmd) welcome(t terminal, n *node) {
	if n.api == nil {
		fmt.Fprintf(t.out, "\nThis node records coupons that other nodes issue, and answers no requests.\n\n")
		return
	}
	url := c.url(n.http)
	console := ""
	if at := n.consoleURL(); at != "off" {
		console = "\nIts console, for people:  " + at
	}
	server := ""
	if url != defaultServer {
		server = " --server " + url
	}
	mode := "every caller needs a key or a user's token. Commands take their key from FIRSTCOME_KEY."
	if n.development {
		mode = "development mode: there is no key, so every caller is admin."
	}
	fmt.Fprintf(t.out, `
firstcome serves at %s%s
%s

In another terminal:
  firstcome campaign create spring --quantity 100%s
  firstcome claim spring mina%s
  firstcome audit --server %s

`, url, console, mode, server, server, url)
}

// queue returns the limits on claims that wait for the gate.
func (c *serveCmd) queue() issue.Options {
	return issue.Options{Waiting: int(c.MaxWaiting), Gate: c.AnswerWait}
}

// limit sets the limits on connections, and on the time that their requests may take.
func (c *serveCmd) limit(o *httpd.Options) {
	o.MaxConnections, o.IdleTimeout, o.ShutdownGrace, o.HandlerWait = int(c.MaxConnections), c.IdleTimeout, c.ShutdownGrace, longerWait(c.AnswerWait)
}

// limiter returns a limiter of rate, or nil if rate is 0. As many requests as in one second may come at once, and at least burst.
func limiter(rate perSecond, burst float64) *auth.Limiter {
	if rate == 0 {
		return nil
	}
	return auth.NewLimiter(float64(rate), int(max(burst, float64(rate))), rememberedLimits)
}

// longerWait returns how much longer than by default a claim may wait in all: for its turn, for the gate, and for the ledger.
func longerWait(answerWait time.Duration) time.Duration {
	const byDefault = 5 * time.Second
	return 3 * max(0, answerWait-byDefault)
}

// mode reports whether the server is in development mode. It refuses to serve other machines without any credentials, and creates the first key with
// --create-key. A ledger whose last key was revoked does not return to development mode.
func (c *serveCmd) mode(ctx context.Context, t terminal, l *ledger.Ledger) (open bool, err error) {
	keys, err := l.Deployment.Keys(ctx)
	switch {
	case err != nil:
		return false, err
	case len(keys) > 0:
		return false, nil
	case c.CreateKey:
		return false, c.createFirstKey(ctx, t)
	case c.hasTokens(t):
		return false, nil
	case c.Listen.isLoopback() && (c.Console.own() == "" || c.Console.own().isLoopback()):
		return true, nil
	}
	return false, usageError{c.refuseOpen()}
}

func (c *serveCmd) refuseOpen() error {
	return fmt.Errorf(`--listen %s: other machines could call this server, and there is no key, so every caller would be admin. Create a key with
    firstcome key create%s --name first --role admin
  or let this start create a key and print it once, with
    firstcome serve --listen %s%s --create-key
  or configure users' tokens with --jwt-public-key or FIRSTCOME_JWT_SECRET`, c.Listen, c.Ledger.flag(), c.Listen, c.Ledger.flag())
}

func (c *serveCmd) createFirstKey(ctx context.Context, t terminal) error {
	plain, _, err := createKey(ctx, c.Ledger.path(), "first", firstcome.Admin)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(t.out, "The first admin key. The key is shown only this once. Keep it as FIRSTCOME_KEY:\n%s\n", plain)
	return err
}

func (c *serveCmd) tls() (*tls.Config, error) {
	if c.TLSCert == "" || c.TLSKey == "" {
		return nil, nil
	}
	certificate, err := trust.Certificate(c.TLSCert, c.TLSKey)
	if err != nil {
		return nil, fmt.Errorf("read --tls-cert and --tls-key: %w", err)
	}
	return &tls.Config{Certificates: []tls.Certificate{certificate}, MinVersion: tls.VersionTLS12, NextProtos: []string{"h2", "http/1.1"}}, nil
}
