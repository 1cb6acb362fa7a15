package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"runtime"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/api"
	"github.com/firstcome/firstcome/internal/auth"
	"github.com/firstcome/firstcome/internal/console"
	"github.com/firstcome/firstcome/internal/figures"
	"github.com/firstcome/firstcome/internal/gate"
	"github.com/firstcome/firstcome/internal/httpd"
	"github.com/firstcome/firstcome/internal/issue"
	"github.com/firstcome/firstcome/internal/kafka"
	"github.com/firstcome/firstcome/internal/ledger"
	"github.com/firstcome/firstcome/internal/line"
	"github.com/firstcome/firstcome/internal/operate"
	"github.com/firstcome/firstcome/internal/ops"
)

// A node is a whole server in this process: ledger, issuer, keys, HTTP. Create it with newNode, and run it once with run.
type node struct {
	*base
	remote      *remoteGate      // nil if the ledger decides
	facts       *kafka.Publisher // nil if facts are not published
	development bool             // every caller is admin
	terms       *api.TermsCache
	ops         net.Listener // nil if metrics and profiles are off

	// The other parts are for callers. All but counter and board are nil if this node only records.
	issuer   *issue.Issuer
	lines    *line.Dispatcher
	operator *operate.Operator
	auditor  *auditor
	counter  *figures.Counter
	board    *figures.Board
	watcher  *figures.Watcher // nil if there is no console
	people   *console.Console // nil if there is no console
	auth     *auth.Authenticator
	api      *api.Server
	server   *httpd.Server
	http     net.Listener
	pages    *httpd.Server // the console's own server; nil if the console is off or on the API's listener
	console  net.Listener  // for pages
}

// A base has the fields that the parts of a node share.
type base struct {
	flags   *serveCmd
	log     *slog.Logger
	monitor *ops.Monitor
	ledger  *ledger.Ledger
	secret  firstcome.Secret
}

// An admission reports whether the node is in development mode. It is called once the ledger is open. Its error means that the node may not serve.
type admission func(context.Context, *ledger.Ledger) (open bool, err error)

// newNode opens the ledger, then the gate, then the listeners. After that clients can connect. They are answered once the node runs.
func newNode(ctx context.Context, c *serveCmd, log *slog.Logger, admit admission) (*node, error) {
	n := &node{base: &base{flags: c, log: log, monitor: ops.New(log, thisBuild().Version, thisBuild().Commit)}}
	options := ledger.Options{Owner: "serving " + string(c.Listen), MaxLine: int64(c.MaxLine), Backlog: int64(c.Backlog), OnCommit: n.monitor.Commit, OnMove: n.monitor.Moved}
	var err error
	if n.ledger, n.secret, err = openLedger(ctx, c.Ledger.path(), options, c.files.secret); err != nil {
		return nil, err
	}
	if err := n.open(ctx, admit); err != nil {
		return nil, errors.Join(err, n.close())
	}
	return n, nil
}

func (n *node) open(ctx context.Context, admit admission) error {
	var err error
	if n.development, err = admit(ctx, n.ledger); err != nil {
		return err
	}
	if kind := n.flags.Gate.kind(); kind != nil {
		if n.remote, err = openRemoteGate(ctx, n.base, kind); err != nil {
			return err
		}
	}
	if err := n.compareSecret(ctx); err != nil {
		return err
	}
	if n.flags.dropped != nil {
		n.monitor.WatchLog(n.flags.dropped)
	}
	n.monitor.WatchLedger(n.ledger)
	n.terms = api.NewTermsCache(n.ledger.Reads.Terms)
	if err := n.openFacts(); err != nil {
		return err
	}
	n.counter = figures.NewCounter(nil)
	if n.remote != nil {
		n.remote.watched()
		n.remote.rebuild.Terms = n.terms.Terms
		n.remote.rebuild.LookBack(ctx)
		n.remote.logForgotten(ctx)
	}
	if err := n.listen(ctx); err != nil {
		return err
	}
	n.board = &figures.Board{Node: n.self(), Counter: n.counter, Recorder: n.remote.breaker, Relay: n.remote.relayBreaker, Rows: n.ledger.Deployment, Warn: n.monitor.Warn}
	if n.flags.silent() {
		return nil
	}
	return n.openAPI(ctx)
}

// openAPI creates the parts that answer callers.
func (n *node) openAPI(ctx context.Context) error {
	c := n.flags
	queue := c.queue()
	queue.OnBatch = n.monitor.Batch
	var decides nodeGate = n.ledger.Gate
	var places gate.Places = n.ledger.Gate
	if n.remote != nil {
		decides, places, queue.Teller = n.remote.router, n.remote.teller, n.remote.teller
	}
	n.lines = line.NewDispatcher(decides, line.Options{Gate: queue.Gate, OnServe: observers{n.monitor, n.counter}.Served, OnLook: n.monitor.LookFailed})
	queue.OnJoin, queue.OnChange = n.lines.Joined, n.lines.Changed
	n.monitor.WatchLines(n.lines, decides.LineOf)
	n.issuer = issue.NewIssuer(decides, queue)
	claims := &issue.Answerer{Issuer: n.issuer, Coupons: decides, Terms: n.terms.Terms, Wait: queue.Gate}
	kept := operate.Ledger{Campaigns: n.ledger.Campaigns, Letters: n.ledger.Recorder, Reads: n.ledger.Reads}
	if r := n.remote; r == nil {
		n.operator = operate.New(kept, n.issuer, claims)
	} else {
		claims.Waiter = r.waiter
		n.operator = operate.NewRemote(kept, n.issuer, claims, r.changer, r.router, r.rebuild)
		if r.lineLog != nil {
			n.operator.Logs = r.lineLog
		}
	}
	n.auditor = &auditor{base: n.base, remote: n.remote, running: make(chan struct{}, audits)}
	n.auth = auth.New(auth.Options{Keys: n.ledger.Deployment, JWT: c.files.jwt, Open: n.development, Log: n.log})
	if err := n.auth.Reload(ctx); err != nil {
		return err
	}
	n.api = api.New(api.Options{
		Ledger: n.ledger.Reads, Codes: n.ledger.Codes, Keys: n.ledger.Deployment, Terms: n.terms, Claims: claims, Gate: n.remote.decides(), Places: places, Operator: n.operator, Auth: n.auth,
		Audit: n.auditor.audit, Log: n.log, Observer: observers{n.monitor, n.counter}, Health: n.monitor.Health,
		UserLimit: limiter(c.UserRate, userBurst), AddressLimit: limiter(c.AddressRate, addressBurst),
		TrustedProxies: c.TrustedProxy, CORSOrigins: texts(c.CORSOrigin), MaxStreams: httpd.DetachedRoom(int(c.MaxStreams)),
	})
	surface := n.api.HTTP()
	c.limit(&surface)
	n.openConsole(&surface, places)
	if c.Lanes == "off" {
		surface.Short = nil
	}
	n.server = httpd.New(surface)
	n.monitor.WatchClaims(n.issuer, n.server.Connections)
	n.monitor.WatchStreams(n.api.Streams)
	return nil
}

// A nodeGate decides this node's claims and keeps its waiting lines: the ledger, or a gate beside it.
type nodeGate interface {
	gate.Decider
	gate.Coupons
	gate.Line
	gate.Places
}

// compareSecret logs how many campaigns have another secret or kind of gate than this node, or codes of an earlier firstcome. Their claims are refused
// until the node has the right one, while other campaigns are served.
func (n *node) compareSecret(ctx context.Context) error {
	others, earlier, err := n.ledger.Mismatched(ctx, n.secret)
	if err == nil && others > 0 {
		n.log.Error("campaigns have another gate or code secret than this node, so none of their claims is decided: name theirs with --gate, and FIRSTCOME_SECRET or --secret-file",
			"campaigns", others, "fingerprint", n.secret.Fingerprint())
	}
	if err == nil && earlier > 0 {
		n.log.Error("an earlier firstcome made the codes of campaigns, so none of their claims is decided: "+earlierCodes, "campaigns", earlier)
	}
	return err
}

func (n *node) listen(ctx context.Context) error {
	var config net.ListenConfig
	var err error
	if !n.flags.silent() {
		if n.http, err = config.Listen(ctx, "tcp", string(n.flags.Listen)); err != nil {
			return listenError("--listen", string(n.flags.Listen), err)
		}
	}
	if at := string(n.flags.Console.own()); at != "" {
		if n.console, err = config.Listen(ctx, "tcp", at); err != nil {
			return listenError("--console", at, err)
		}
	}
	if beside := n.flags.Ops.beside(n.flags.Listen); beside != "" {
		if n.ops, err = config.Listen(ctx, "tcp", beside); err != nil {
			return listenError("--ops", beside, err)
		}
	}
	return nil
}

// whereabouts returns a text that no other node of this host has: the API's address or, if the node only records, the metrics' address. A recorder
// without metrics has no address, and another node may use its --listen, so its process id must do.
func (n *node) whereabouts() string {
	switch {
	case n.http != nil:
		return n.address()
	case n.ops != nil:
		return "metrics at " + n.opsAddress()
	}
	return fmt.Sprintf("process %d", os.Getpid())
}

func listenError(flag, address string, err error) error {
	return fmt.Errorf("%s %s: %w. If another program has the address, stop that program, or choose another address with %s", flag, address, err, flag)
}

// close closes what newNode opened.
func (n *node) close() error {
	n.remote.close()
	errs := []error{n.ledger.Close()}
	for _, ln := range []net.Listener{n.http, n.console, n.ops} {
		if ln != nil {
			if err := ln.Close(); !errors.Is(err, net.ErrClosed) {
				errs = append(errs, err)
			}
		}
	}
	return errors.Join(errs...)
}

// address returns the API's HOST:PORT, or off if this node only records.
func (n *node) address() string { return addressOf(n.http) }

// opsAddress returns HOST:PORT of metrics and profiles, or off.
func (n *node) opsAddress() string { return addressOf(n.ops) }

func addressOf(ln net.Listener) string {
	if ln == nil {
		return "off"
	}
	return ln.Addr().String()
}

// run serves until ctx ends, then stops gracefully. It starts parts that other parts need first, and stops them last:
//
//	start: ledger, issuer, dispatcher, recorder and the gate's other parts, keys, ops, API
//	stop:  not ready → wait for the load balancer → API (answers requests in flight)
//	       → issuer (decides waiting claims) → dispatcher (ends its calls), recorder, keys, ops → ledger (commits waiting writes) → close
//
// If one part fails, the others are stopped in the same order.
func (n *node) run(ctx context.Context) error {
	if os.Getenv("GOMAXPROCS") == "" {
		// The ledger's writer spends much of its time in system calls, and each call holds one of Go's processors for a while. With one processor
		// more than cores, a machine with two cores answers a tenth more claims.
		runtime.GOMAXPROCS(runtime.GOMAXPROCS(0) + 1)
	}
	serving, failed := context.WithCancelCause(ctx)
	defer failed(nil)
	beside, stopBeside := context.WithCancel(context.WithoutCancel(ctx))
	defer stopBeside()
	writing, stopWriting := context.WithCancel(context.WithoutCancel(ctx))
	defer stopWriting()

	var besides, writer errgroup.Group
	start := func(group *errgroup.Group, ctx context.Context, run func(context.Context) error) {
		group.Go(func() error {
			err := run(ctx)
			if err != nil {
				failed(err)
			}
			return err
		})
	}
	start(&writer, writing, n.ledger.Run)
	for _, run := range n.runs() {
		start(&besides, beside, run)
	}
	stopped := n.serve(serving)
	if n.issuer != nil {
		bounded, cancel := context.WithTimeout(context.WithoutCancel(ctx), n.flags.ShutdownGrace)
		stopped = errors.Join(stopped, n.issuer.Stop(bounded))
		cancel()
	}
	stopBeside()
	stopped = errors.Join(stopped, besides.Wait()) // the recorder records the batches that it has
	stopWriting()
	return errors.Join(stopped, writer.Wait(), n.close())
}

// runs returns the functions to run beside the ledger's writer and the API.
func (n *node) runs() []func(context.Context) error {
	runs := append(n.remote.runs(), n.board.Run)
	if n.api != nil {
		runs = append(runs, n.issuer.Run, n.auth.Run, n.api.Run)
	}
	if n.facts != nil {
		runs = append(runs, n.facts.Run)
	}
	if n.watcher != nil {
		runs = append(runs, n.watcher.Run, n.people.Run)
	}
	if n.pages != nil {
		runs = append(runs, func(ctx context.Context) error { return n.pages.Serve(ctx, n.console, n.flags.files.tls) })
	}
	if n.lines != nil {
		runs = append(runs, n.lines.Run)
	}
	if n.ops != nil {
		runs = append(runs, func(ctx context.Context) error { return n.monitor.Serve(ctx, n.ops) })
	}
	return runs
}

// serve serves the API until ctx ends and the requests in flight are answered.
func (n *node) serve(ctx context.Context) error {
	accepting, stopAccepting := context.WithCancel(context.WithoutCancel(ctx))
	defer stopAccepting()
	if n.api == nil {
		<-ctx.Done()
		n.monitor.Health.Drain()
		return nil
	}
	served := make(chan error, 1)
	go func() { served <- n.server.Serve(accepting, n.http, n.flags.files.tls) }()
	select {
	case err := <-served:
		return err
	case <-ctx.Done():
	}
	n.log.Info("stopping", "in", n.flags.DrainDelay, "grace", n.flags.ShutdownGrace)
	n.api.Drain()
	if n.people != nil {
		n.people.Stop()
	}
	n.server.Drain()
	delay := time.NewTimer(n.flags.DrainDelay)
	defer delay.Stop()
	select {
	case err := <-served:
		return err
	case <-delay.C:
	}
	stopAccepting()
	return <-served
}
