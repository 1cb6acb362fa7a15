package main

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/gate"
	"github.com/firstcome/firstcome/internal/issue"
	"github.com/firstcome/firstcome/internal/kafka"
	"github.com/firstcome/firstcome/internal/ledger"
	"github.com/firstcome/firstcome/internal/line"
	"github.com/firstcome/firstcome/internal/ops"
	"github.com/firstcome/firstcome/internal/record"
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

// String returns the name without user, password and options.
func (g gateName) String() string {
	u, err := url.Parse(string(g))
	if err != nil || u.Host == "" {
		return string(g)
	}
	return u.Scheme + "://" + u.Host + u.Path
}

// kind returns the gate's kind, or nil if the ledger decides.
func (g gateName) kind() gateKind {
	scheme, _, _ := strings.Cut(string(g), ":")
	return gateKinds[scheme]
}

// url returns the gate's URL, or an empty string if the ledger decides.
func (g gateName) url() string {
	if g == "ledger" {
		return ""
	}
	return string(g)
}

// gateFlags choose the gate, and how its coupons get into the ledger.
type gateFlags struct {
	Gate        gateName    `default:"ledger" placeholder:"ledger" help:"What decides claims: ledger, or redis://USER:PASSWORD@HOST:PORT/DB, or rediss:// with TLS and, if the system does not know the certificate's authority, ?sslrootcert=FILE (default: ledger). If the URL has a password, set FIRSTCOME_GATE instead."`
	Role        string      `enum:"all,api,recorder" default:"all" placeholder:"all" help:"With Redis as the gate: all, api (answers and does not record), or recorder (records and does not answer) (default: all)."`
	NewGate     bool        `help:"Name a Redis that has no name, although campaigns are decided by another Redis. These campaigns stay lost. Use this for one start, with a Redis that is meant to be new."`
	Rebuild     string      `enum:"named,auto" default:"named" placeholder:"named" help:"Which Redis a node rebuilds by itself from the ledger: named, a Redis that still has the gate's name, or auto, also a Redis that was emptied, or whose epoch has ended while no node reaches another Redis. Use auto only if no other Redis can be at the address (default: named)."`
	AnyEviction bool        `help:"Accept a Redis that may evict keys. An eviction stops a campaign, and may lose its unrecorded coupons."`
	Backlog     count       `default:"1000000" help:"Coupons of a campaign that may wait for the ledger. Above this, claims are answered 503 (default: 1000000)."`
	Journal     journalName `placeholder:"redis" help:"Where coupons wait for the ledger, with Redis as the gate: redis, or kafka://USER:PASSWORD@HOST:PORT,HOST:PORT/TOPIC, a private topic between Redis and the ledger, or kafkas:// with TLS. All nodes must name the same (default: redis). If the URL has a password, set FIRSTCOME_JOURNAL instead."`
	Line        topicURL    `placeholder:"kafka://HOST:PORT/TOPIC" help:"With Redis as the gate: keep a copy of the campaigns' waiting lines in a Kafka topic, kafka://USER:PASSWORD@HOST:PORT,HOST:PORT/TOPIC, so that users keep their places if Redis loses data. All nodes must name the same; see docs/operate.md (default: no copy). If the URL has a password, set FIRSTCOME_LINE instead."`
	RecordRate  perSecond   `default:"0" placeholder:"N" help:"The most coupons a second that a recorder writes, for a database that other programs use too (default: 0, no limit)."`
}

// silent reports whether a node of this role only records.
func (c *gateFlags) silent() bool { return c.Role == "recorder" }

// check returns the flags that do not fit together.
func (c *gateFlags) check() (errs []error) {
	if c.NewGate && c.Gate.url() == "" {
		errs = append(errs, errors.New("--new-gate: where the ledger decides, there is no Redis to name. Leave --new-gate out, or name the gate with --gate redis://…"))
	}
	if c.Rebuild == rebuildAuto && c.Gate.url() == "" {
		errs = append(errs, errors.New("--rebuild auto: where the ledger decides, there is no Redis to rebuild. Leave --rebuild out, or name the gate with --gate redis://…"))
	}
	if c.Rebuild == rebuildAuto && c.NewGate {
		errs = append(errs, errors.New("--rebuild auto gives an emptied Redis its old name again, and --new-gate gives it a new name: leave one of the flags out"))
	}
	if c.Role != "all" && c.Gate.url() == "" {
		errs = append(errs, fmt.Errorf("--role %s: where the ledger decides, it also records, and every node does the same. Leave --role out, or name the gate with --gate redis://…", c.Role))
	}
	if c.Journal != "" && c.Gate.url() == "" {
		errs = append(errs, errors.New("--journal: where the ledger decides, it also records, and no coupon waits for it. Leave --journal out, or name the gate with --gate redis://…"))
	}
	if c.Line != "" && c.Gate.url() == "" {
		errs = append(errs, errors.New("--line: where the ledger decides, waiting lines are in its database, so no place is lost. Leave --line out, or name the gate with --gate redis://…"))
	}
	return errs
}

// rebuildAuto is the value of --rebuild with which a node rebuilds without an operator: see recovery.Machine.
const rebuildAuto = "auto"

// knownAs returns the old name for a Redis without a name, or an empty string if it must not get one. named has the gates that campaigns name: if
// there are several, the old name is unknown.
func (c *gateFlags) knownAs(named []ledger.OtherGate) string {
	if c.Rebuild != rebuildAuto || len(named) != 1 {
		return ""
	}
	return named[0].Name
}

// links are the connections of a node with a gate beside the ledger.
type links struct {
	gate    servingGate
	journal *kafka.Journal // the topic between Redis and the ledger; nil if there is none
	lineLog *kafka.LineLog // nil if waiting lines are not logged
}

// close closes the connections that were opened.
func (l links) close() {
	if l.lineLog != nil {
		l.lineLog.Close()
	}
	if l.journal != nil {
		l.journal.Close()
	}
	l.gate.Close()
}

// A remoteGate has the parts of a node with a gate beside the ledger. Create it with newRemoteGate.
type remoteGate struct {
	*base
	links
	router   *gate.Router
	changer  *gate.Changer
	retirer  *recovery.Retirer
	rebuild  *recovery.Machine
	alarm    alarm
	waiter   *issue.Waiter    // nil if this node answers no callers
	teller   *line.Teller     // nil if this node answers no callers
	recorder *record.Recorder // nil if this node does not record
	relay    *record.Recorder // from the journal on Redis to the topic; nil if this node does not relay
}

// openRemoteGate connects to the gate and its topics.
func openRemoteGate(ctx context.Context, b *base, kind gateKind) (*remoteGate, error) {
	watch := recovery.NewWatch(b.monitor.Refused)
	l, err := b.connect(ctx, kind, watch)
	if err != nil {
		return nil, err
	}
	return newRemoteGate(b, l, watch), nil
}

// connect opens the connections. The ledger decides whether a Redis without a name may get one: if campaigns name another gate, the Redis may have
// been emptied, and only an operator knows whether it should be a gate.
func (b *base) connect(ctx context.Context, kind gateKind, watch *recovery.Watch) (l links, err error) {
	named, err := b.ledger.OtherGates(ctx)
	if err != nil {
		return l, err
	}
	if l.gate, err = b.reach(ctx, kind, watch, named); err != nil {
		return l, fmt.Errorf("--gate: %w", err)
	}
	defer func() {
		if err != nil {
			l.close()
		}
	}()
	for _, warning := range l.gate.Warnings() {
		b.log.Warn("the gate: " + warning)
	}
	var topic string
	if l.journal, err = b.openJournal(ctx, l.gate.journal, b.alarm(watch)); err == nil {
		if l.journal != nil {
			topic, _ = l.journal.Topic()
		}
		err = b.ledger.UseGate(ctx, ledger.RemoteGate{Gate: l.gate.Name(), Topic: topic, Abandons: b.flags.Journal == onRedis})
	}
	if err != nil {
		return l, fmt.Errorf("--journal: %w", err)
	}
	if l.lineLog, err = b.openLog(ctx); err != nil {
		return l, err
	}
	return l, b.compareGate(ctx, l.gate.Name())
}

// newRemoteGate creates the parts that bring changes to the gate, and coupons to the ledger.
func newRemoteGate(b *base, l links, watch *recovery.Watch) *remoteGate {
	r := &remoteGate{base: b, links: l, alarm: b.alarm(watch)}
	r.rebuild = recovery.New(b.ledger.Recorder, b.ledger.Epochs, l.relayed(), watch, b.monitor.Rebuilt)
	r.rebuild.Auto = b.flags.Rebuild == rebuildAuto
	var log line.Log // nil if lines are not logged
	if l.lineLog != nil {
		r.rebuild.Log, log = l.lineLog, l.lineLog
	}
	r.router = &gate.Router{Gate: l.gate, Retired: b.ledger.Gate, Ledger: b.ledger.Recorder, Watch: r.rebuild}
	r.changer = gate.NewChanger(b.ledger.Campaigns, r.router, b.monitor.ChangeFailed)
	r.retirer = recovery.NewRetirer(b.ledger.Epochs, l.gate.retires, 0, b.monitor.RetireFailed)
	if !b.flags.silent() {
		r.waiter = issue.NewWaiter(r.router)
		r.teller = line.NewTeller(r.router, log)
	}
	if b.flags.Role != "api" {
		r.recorder, r.relay = b.recorders(l, r.rebuild.Guard(b.ledger.Recorder), r.alarm, r.waiter)
	}
	return r
}

// watched shows the parts to the monitor.
func (r *remoteGate) watched() {
	r.monitor.WatchGate(ops.Gate{
		Name: r.gate.Name(), Changer: r.changer, Retirer: r.retirer, Recovery: r.rebuild, Ping: r.gate.Ping, Lag: r.lag, Waiter: r.waiter, Recorder: r.recorder,
		Topic: r.journal, Relay: r.relay,
	})
}

// compareGate logs which campaigns another Redis decides: their claims are answered 503, while other campaigns are served.
func (b *base) compareGate(ctx context.Context, name string) error {
	log := b.log
	if b.flags.NewGate {
		log.Warn("--new-gate is for one start: leave it out at the next start, or a Redis that is emptied later gets a new name, too", "gate", name)
	}
	others, err := b.ledger.OtherGates(ctx)
	for _, g := range others {
		about := []any{"gate", g.Name, "campaigns", g.Campaigns}
		if name == "" {
			log.Error("this Redis has no name, and campaigns are decided by another Redis, so none of their claims is decided, and no campaign can be created. "+
				"If this is the right Redis, it was emptied: see docs/runbooks/FirstcomeGateLost.md. If this Redis is meant to be new, start once with --new-gate", about...)
		} else {
			log.Error("campaigns are decided by another Redis than this one, so none of their claims is decided: name their Redis with --gate, or see docs/runbooks/FirstcomeGateLost.md",
				append(about, "this", name)...)
		}
	}
	return err
}

// campaignUID returns the UID of a campaign that this node's gate decides.
func (b *base) campaignUID(ctx context.Context, id firstcome.CampaignID) (string, error) {
	c, err := b.ledger.Reads.Campaign(ctx, id)
	if err == nil {
		err = b.ledger.Reads.Decides(&c)
	}
	return c.CampaignUID, err
}

// missing returns the error for a campaign that the gate does not have, or nil if the ledger does not have it either.
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
	case c.Creating():
		return fmt.Errorf("%w: it is being created", firstcome.ErrGateUnavailable)
	}
	return gate.ErrGone
}

// An alarm reports an error of the journal about a campaign to operators.
type alarm = func(firstcome.CampaignID, error)

// alarm returns the alarm of a node. If the ledger was rolled back, recovery checks the campaign at once.
func (b *base) alarm(watch *recovery.Watch) alarm {
	return func(id firstcome.CampaignID, err error) {
		b.monitor.Alarm(id, err)
		if errors.Is(err, gate.ErrLedgerRolledBack) {
			watch.Suspect(id, err)
		}
	}
}

// decides returns the counters of the gate, or nil if r is nil.
func (r *remoteGate) decides() gate.Counters {
	if r == nil {
		return nil
	}
	return r.router
}

// runs returns the functions to run for the gate, beside the node's other parts.
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

// close closes the connections to the gate, if r is not nil.
func (r *remoteGate) close() {
	if r != nil {
		r.links.close()
	}
}
