package main

import (
	"context"
	"net"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/console"
	"github.com/firstcome/firstcome/internal/doctor"
	"github.com/firstcome/firstcome/internal/figures"
	"github.com/firstcome/firstcome/internal/gate"
	"github.com/firstcome/firstcome/internal/httpd"
	"github.com/firstcome/firstcome/internal/kafka"
	"github.com/firstcome/firstcome/internal/ops"
	"github.com/firstcome/firstcome/internal/record"
	"github.com/firstcome/firstcome/internal/sqldb"
)

// consoleConnections is the most connections to a console with an address of its own. Claims cannot use them up.
const consoleConnections = 256

// openConsole creates the console, on the API's listener or for a listener of its own, as --console says.
func (n *node) openConsole(api *httpd.Options, places gate.Places) {
	own, beside := n.flags.Console.own() != "", n.flags.Console.beside(n.flags.Listen)
	if !own && !beside {
		return
	}
	n.watcher = figures.NewWatcher(n.ledger.Reads, n.remote.decides(), n.board)
	n.watcher.Told = n.counter.Told
	n.people = console.New(console.Options{
		Gate: n.remote.decides(), Journal: n.remote.shown(), Watcher: n.watcher, Prove: n.auditor.prove, Doctor: n.examine, Excel: n.api.Excel,
		Ledger: n.ledger.Reads, Deployment: n.ledger.Deployment, LastRebuild: n.ledger.Epochs.LastRebuild, Places: places, Operator: n.operator, Auth: n.auth, Secret: n.secret, Secure: n.flags.files.tls != nil, Log: n.log, Zone: n.flags.TZ.location(),
		Decided: observers{n.monitor, n.counter}.Decided, AllowAddress: n.api.AllowAddress,
	})
	pages := n.people.Handler()
	if own {
		n.pages = httpd.New(httpd.Options{Handler: pages, TurnAway: turnAway, Log: n.log, MaxConnections: consoleConnections, IdleTimeout: n.flags.IdleTimeout, ShutdownGrace: time.Second})
		return
	}
	api.Handler = besideAPI(pages, api.Handler)
}

// examine checks the ledger, the gate, the topics and this machine, like firstcome doctor. The checks of ledger, gate and topics open connections of
// their own.
func (b *base) examine(ctx context.Context) (found doctor.Findings) {
	path := b.flags.Ledger.path()
	found = append(found, sqldb.Examine(ctx, path)...)
	if kind := b.flags.Gate.kind(); kind != nil {
		found = append(found, kind.examine(ctx, &b.flags.gateFlags)...)
	}
	if b.flags.Facts != "" {
		found = append(found, kafka.Examine(ctx, string(b.flags.Facts), kafka.Facts, "")...)
	}
	if topic := b.flags.Journal.url(); topic != "" {
		found = append(found, kafka.Examine(ctx, topic, kafka.Waits, b.ledger.JournalName())...)
	}
	last, err := b.ledger.Reads.LastDecision(ctx)
	if err == nil {
		found.MachineClock(last)
	}
	found.OpenFiles(int(b.flags.MaxConnections))
	for i := range found {
		found[i].Found = mask(found[i].Found, nil)
	}
	return found
}

// shown returns the journal for the console to show. It returns nil if the ledger decides.
func (r *remoteGate) shown() *console.Journal {
	if r == nil {
		return nil
	}
	j := &console.Journal{Gate: r.gate.Name(), Troubles: r.rebuild.Troubles, Lag: func(ctx context.Context) ([]record.Lag, error) {
		active, err := r.ledger.Recorder.Active(ctx)
		if err != nil {
			return nil, err
		}
		return r.lag(ctx, active)
	}}
	if r.recorder != nil {
		j.Recorder = r.recorder.Stats
	}
	if r.relay != nil {
		j.Relay = r.relay.Stats
	}
	return j
}

// breaker returns the state of the circuit breaker of this node's recorder, or an empty string if the node has no recorder.
func (r *remoteGate) breaker() string {
	if r == nil || r.recorder == nil {
		return ""
	}
	return r.recorder.Stats().Breaker
}

// relayBreaker returns the state of the circuit breaker of this node's relay, or an empty string if the node has no relay.
func (r *remoteGate) relayBreaker() string {
	if r == nil || r.relay == nil {
		return ""
	}
	return r.relay.Stats().Breaker
}

// self describes this node.
func (n *node) self() figures.Node {
	host, _ := os.Hostname() // without a host name, Listen alone names the node
	return figures.Node{Host: host, Listen: n.whereabouts(), Role: n.flags.Role, Version: thisBuild().Version, StartedAt: time.Now()}
}

// besideAPI sends requests for the console's paths to pages, and all others to api.
func besideAPI(pages, api http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if path := r.URL.Path; path == console.Root || strings.HasPrefix(path, console.Root+"/") {
			pages.ServeHTTP(w, r)
			return
		}
		api.ServeHTTP(w, r)
	})
}

// turnAway answers a connection above the limit.
func turnAway(w http.ResponseWriter) {
	http.Error(w, "The console has no room for another connection. Try again in a moment.", http.StatusServiceUnavailable)
}

// consoleURL returns the URL of the console, or off.
func (n *node) consoleURL() string {
	at := n.console
	if n.pages == nil {
		at = n.http
	}
	if at == nil || n.pages == nil && !n.flags.Console.beside(n.flags.Listen) {
		return "off"
	}
	return n.flags.url(at) + console.Root
}

// url returns the URL at which this machine reaches a listener.
func (c *serveCmd) url(at net.Listener) string {
	scheme := "http://"
	if c.files.tls != nil {
		scheme = "https://"
	}
	return scheme + listenAddress(at.Addr().String()).here()
}

// observers passes each outcome of a claim to the metrics and to the campaign's counts.
type observers struct {
	*ops.Monitor
	counter *figures.Counter
}

func (o observers) Claimed(id firstcome.CampaignID, outcome firstcome.Outcome, took time.Duration) {
	o.Monitor.Claimed(id, outcome, took)
	o.counter.Claimed(id, outcome, took)
}

func (o observers) Decided(id firstcome.CampaignID, outcome firstcome.Outcome) {
	o.Monitor.Decided(id, outcome)
	o.counter.Decided(id, outcome)
}

// Served implements line.Options.OnServe.
func (o observers) Served(id firstcome.CampaignID, served gate.Served, took time.Duration, err error) {
	o.Monitor.Served(id, served, took, err)
	o.counter.Served(id, len(served.Coupons))
}

func (o observers) Undecided(ctx context.Context, id firstcome.CampaignID, err error) {
	o.Monitor.Undecided(ctx, id, err)
	o.counter.Undecided(ctx, id, err)
}
