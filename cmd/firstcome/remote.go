package main

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/flow"
	"github.com/firstcome/firstcome/internal/gate"
	"github.com/firstcome/firstcome/internal/kafka"
	"github.com/firstcome/firstcome/internal/ledger"
	"github.com/firstcome/firstcome/internal/ops"
	"github.com/firstcome/firstcome/internal/recovery"
)

// A gateName is ledger, or the URL of a gate beside it.
type gateName string

func (g *gateName) UnmarshalText(text []byte) error {
	name := string(text)
	if name != "ledger" {
		kind := gateName(name).kind()
		if kind == nil {
			return errors.New("a gate is ledger, redis://HOST:PORT/DB, or rediss:// with TLS")
		}
		if err := kind.check(name); err != nil {
			return err
		}
	}
	*g = gateName(text)
	return nil
}

// String returns the name as it may be shown.
func (g gateName) String() string {
	u, err := url.Parse(string(g))
	if err != nil || u.Host == "" {
		return string(g)
	}
	return u.Scheme + "://" + u.Host + u.Path
}

// kind returns the gate's kind, or nil where the ledger decides.
func (g gateName) kind() gateKind {
	scheme, _, _ := strings.Cut(string(g), ":")
	return gateKinds[scheme]
}

// url is Redis's, or empty where the ledger decides.
func (g gateName) url() string {
	if g == "ledger" {
		return ""
	}
	return string(g)
}

// gateFlags say what decides, and how what it decides gets into the ledger.
type gateFlags struct {
	Gate        gateName    `default:"ledger" placeholder:"ledger" help:"What decides claims: ledger, or redis://USER:PASSWORD@HOST:PORT/DB, or rediss:// with TLS and, where the system does not know its authority, ?sslrootcert=FILE (default: ledger). FIRSTCOME_GATE keeps the password out of sight."`
	Role        string      `enum:"all,api,recorder" default:"all" placeholder:"all" help:"With Redis as the gate: all, api (answers and does not record), or recorder (records and does not answer) (default: all)."`
	NewGate     bool        `help:"Give a Redis a name that has none, though campaigns are decided by another one, and stay lost. For one start, where Redis is meant to be new."`
	Rebuild     string      `enum:"named,auto" default:"named" placeholder:"named" help:"Which Redis a node rebuilds by itself from the ledger: named, one that still has the gate's name, or auto, also one that was emptied, or that is in an epoch that has ended while no node reaches another. Name auto only where no other Redis can be at the address (default: named)."`
	AnyEviction bool        `help:"Accept a Redis that may evict keys: coupons are lost when it does."`
	Backlog     count       `default:"1000000" help:"Coupons of a campaign that may wait for the ledger; with more, claims are answered 503 (default: 1000000)."`
	Journal     journalName `placeholder:"redis" help:"Where coupons wait for the ledger, with Redis as the gate: redis, or kafka://USER:PASSWORD@HOST:PORT,HOST:PORT/TOPIC, a private topic that they pass behind Redis, or kafkas:// with TLS; the same at every node (default: redis). FIRSTCOME_JOURNAL keeps the password out of sight."`
	Line        lineName    `placeholder:"gate" help:"Where the waiting lines of campaigns are kept, with Redis as the gate: gate, or also a copy in kafka://USER:PASSWORD@HOST:PORT,HOST:PORT/TOPIC, so that places survive if Redis loses its memory; the same at every node; see docs/operate.md (default: gate)."`
	RecordRate  perSecond   `default:"0" placeholder:"N" help:"Coupons a second that a recorder writes, for a database that others use too (default: 0, no limit)."`
}

// records tells whether a node of this role records.
func (c *gateFlags) records() bool { return c.Role != "api" }

// silent tells whether a node of this role does nothing else.
func (c *gateFlags) silent() bool { return c.Role == "recorder" }

// check returns what does not fit together.
func (c *gateFlags) check() (errs []error) {
	if c.NewGate && c.Gate.url() == "" {
		errs = append(errs, errors.New("--new-gate: where the ledger decides, there is no Redis to name. Leave --new-gate out, or name the gate with --gate redis://…"))
	}
	if c.Rebuild == rebuildAuto && c.Gate.url() == "" {
		errs = append(errs, errors.New("--rebuild auto: where the ledger decides, there is no Redis to rebuild. Leave --rebuild out, or name the gate with --gate redis://…"))
	}
	if c.Rebuild == rebuildAuto && c.NewGate {
		errs = append(errs, errors.New("--rebuild auto gives an emptied Redis its name again, and --new-gate another one: leave one of them out"))
	}
	if c.Role != "all" && c.Gate.url() == "" {
		errs = append(errs, fmt.Errorf("--role %s: where the ledger decides, what is decided is recorded, and every node is the same. Leave --role out, or name the gate with --gate redis://…", c.Role))
	}
	if c.Journal != "" && c.Gate.url() == "" {
		errs = append(errs, errors.New("--journal: where the ledger decides, what is decided is recorded, and nothing waits. Leave --journal out, or name the gate with --gate redis://…"))
	}
	if c.Line.url() != "" && c.Gate.url() == "" {
		errs = append(errs, errors.New("--line: where the ledger decides, waiting lines are in its database, which loses no place. Leave --line out, or name the gate with --gate redis://…"))
	}
	return errs
}

// rebuildAuto is the --rebuild of a node that needs no operator to rebuild: see recovery.Machine.
const rebuildAuto = "auto"

// knownAs returns the name that a Redis without one gets again, given the gates that campaigns name; empty: none. Where they name several,
// nobody knows which of them it is.
func (c *gateFlags) knownAs(named []ledger.OtherGate) string {
	if c.Rebuild != rebuildAuto || len(named) != 1 {
		return ""
	}
	return named[0].Name
}

// A remoteGate is what a node has in addition where Redis decides.
type remoteGate struct {
	*base
	gate     servingGate
	router   *gate.Router
	changer  *flow.Changer
	retirer  *recovery.Retirer
	rebuild  *recovery.Machine
	waiter   *flow.Waiter   // nil: this node answers nobody
	teller   *flow.Teller   // likewise
	recorder *flow.Recorder // nil: this node does not record
	lineLog  *kafka.LineLog // nil: lines are logged nowhere
	journal  *kafka.Journal // the topic that coupons pass; nil: they pass none
	relay    *flow.Recorder // from the journal on Redis into the topic; nil: this node does not relay
}

// dial connects to the gate. The ledger says whether Redis may get a name: while campaigns
// name another gate, one without a name was emptied, and nobody but an operator knows whether it is to be a gate.
func (r *remoteGate) dial(ctx context.Context, kind gateKind) error {
	named, err := r.ledger.OtherGates(ctx)
	if err != nil {
		return err
	}
	far, err := kind.open(ctx, r, named)
	if err != nil {
		return fmt.Errorf("--gate: %w", err)
	}
	for _, warning := range far.Warnings() {
		r.log.Warn("the gate: " + warning)
	}
	r.gate = far
	topic, err := r.openJournal(ctx)
	if err == nil {
		err = r.ledger.UseGate(ctx, ledger.Beside{Gate: far.Name(), Topic: topic, Abandons: r.flags.Journal == onRedis})
	}
	if err != nil {
		return fmt.Errorf("--journal: %w", err)
	}
	if err := r.openLog(ctx); err != nil {
		return err
	}
	return r.compareGate(ctx)
}

// compareGate logs which campaigns are decided by another Redis: their claims are answered 503, while the others are served.
func (r *remoteGate) compareGate(ctx context.Context) error {
	log, name := r.log, r.gate.Name()
	if r.flags.NewGate {
		log.Warn("--new-gate is for one start: leave it out at the next, or a Redis that was emptied gets a name once more", "gate", name)
	}
	others, err := r.ledger.OtherGates(ctx)
	for _, g := range others {
		about := []any{"gate", g.Name, "campaigns", g.Campaigns}
		if name == "" {
			log.Error("this Redis has no name, and campaigns are decided by another one, so none of their claims is decided, and no campaign is made. "+
				"If it is the right one, it was emptied: see docs/runbooks/FirstcomeGateLost.md. If it is meant to be new, start once with --new-gate", about...)
		} else {
			log.Error("campaigns are decided by another Redis than this one, so none of their claims is decided: name theirs with --gate, or see docs/runbooks/FirstcomeGateLost.md",
				append(about, "this", name)...)
		}
	}
	return err
}

// marker returns what the ledger calls a campaign of this node's gate.
func (b *base) marker(ctx context.Context, id firstcome.CampaignID) (string, error) {
	c, err := b.ledger.Reads.Campaign(ctx, id)
	if err == nil {
		err = b.ledger.Reads.Decides(&c)
	}
	return c.Marker, err
}

// epoch returns the epoch of a campaign by the ledger, as far as this node knows; 0: it does not.
func (r *remoteGate) epoch(id firstcome.CampaignID) int64 { return r.rebuild.Epoch(id) }

// missing returns what it means that the gate does not have a campaign.
func (b *base) missing(ctx context.Context, id firstcome.CampaignID) error {
	c, err := b.ledger.Reads.Campaign(ctx, id)
	if errors.Is(err, firstcome.ErrNoCampaign) {
		return nil
	}
	if err == nil {
		err = b.ledger.Reads.Decides(&c)
	}
	switch {
	case err != nil:
		return err
	case !c.RetiredAt.IsZero():
		return gate.ErrRetired
	case c.Unmade():
		return fmt.Errorf("%w: it is being made", firstcome.ErrGateUnavailable)
	}
	return gate.ErrLost
}

// join makes what brings changes to the gate, and what it issued to the ledger.
func (r *remoteGate) join() {
	r.rebuild = recovery.New(r.ledger.Recorder, r.ledger.Epochs, r.relayed(r.gate.recovery), recovery.Events{Rebuilt: r.monitor.Rebuilt, Refused: r.monitor.Refused})
	r.rebuild.Auto = r.flags.Rebuild == rebuildAuto
	var log flow.LineLog // nil: this node has none
	if r.lineLog != nil {
		r.rebuild.Log, log = r.lineLog, r.lineLog
	}
	r.router = &gate.Router{Gate: r.gate, Retired: r.ledger.Gate, Kept: r.ledger.Recorder, Watch: r.rebuild}
	r.changer = flow.NewChanger(r.ledger.Campaigns, r.router, r.monitor.ChangeFailed)
	r.retirer = recovery.NewRetirer(r.ledger.Epochs, r.gate.retires, 0, r.monitor.RetireFailed)
	if !r.flags.silent() {
		r.waiter = flow.NewWaiter(r.router)
		r.teller = flow.NewTeller(r.router, log)
	}
	if r.flags.records() {
		r.records()
	}
	r.monitor.WatchGate(ops.Gate{
		Name: r.gate.Name(), Changer: r.changer, Retirer: r.retirer, Recovery: r.rebuild, Ping: r.gate.Ping, Lag: r.lag, Waiter: r.waiter, Recorder: r.recorder,
		Topic: r.journal, Relay: r.relay,
	})
}

// alarm is told what an operator should know of the journal. A rolled-back ledger is looked at, at once.
func (r *remoteGate) alarm(id firstcome.CampaignID, err error) {
	r.monitor.Alarm(id, err)
	if errors.Is(err, gate.ErrLedgerRolledBack) {
		r.rebuild.Suspect(id, err)
	}
}

// decides returns the gate that counts; nil has none.
func (r *remoteGate) decides() gate.Counters {
	if r == nil {
		return nil
	}
	return r.router
}

// runs returns what runs beside the node's other parts where a gate beside the ledger decides.
func (r *remoteGate) runs() []func(context.Context) error {
	if r == nil {
		return nil
	}
	runs := []func(context.Context) error{r.changer.Run, r.retirer.Run, r.rebuild.Run}
	if r.waiter != nil {
		runs = append(runs, r.waiter.Run)
	}
	if r.lineLog != nil {
		runs = append(runs, r.lineLog.Run)
	}
	switch {
	case r.relay != nil:
		runs = append(runs, r.passing(r.relay.Run), r.passing(r.recorder.Run))
	case r.recorder != nil:
		runs = append(runs, r.recorder.Run)
	}
	if r.flags.Journal == onRedis {
		runs = append(runs, r.leavesJournal)
	}
	return runs
}

// close closes the connections to the gate. Nil has none.
func (r *remoteGate) close() {
	if r == nil || r.gate.Gate == nil {
		return
	}
	if r.lineLog != nil {
		r.lineLog.Close()
	}
	if r.journal != nil {
		r.journal.Close()
	}
	r.gate.Close()
}
