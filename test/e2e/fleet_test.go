//go:build linux && !check

package e2e_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/client"
	"github.com/firstcome/firstcome/test/services"
	"github.com/firstcome/firstcome/test/stage"
)

// A fleet is many nodes of one ledger, and of one gate.
type fleet struct {
	t    *testing.T
	args []string // of each node: ledger and gate
	role []string // of those that answer
	own  []string // of those that only record: ledger and gate, as they reach them
	env  []string
	// plans has the variable with the directory of its faults; without one its processes have no fault points: see withPoints.
	plans string

	mu        sync.Mutex // guards what follows
	nodes     []*process // which answer
	recorders []*process // which only record
}

// fleetSecret is the secret of the nodes' coupon codes.
const fleetSecret = "a secret of the tests, 32 bytes and more"

// newFleet starts three nodes on a ledger, with more arguments. gate is a URL of Redis, and then
// two more only record, or empty: then the ledger decides.
func newFleet(t *testing.T, ledger, gate string, more ...string) *fleet {
	t.Helper()
	if gate == "" {
		return (&fleet{t: t, args: append([]string{"--ledger", ledger}, more...)}).open()
	}
	args := append([]string{"--ledger", ledger, "--gate", gate}, more...)
	return (&fleet{t: t, args: args, own: args, role: []string{"--role", "api"}}).open()
}

// open starts the nodes.
func (f *fleet) open() *fleet {
	f.t.Helper()
	f.takePoints()
	f.env = []string{"FIRSTCOME_SECRET=" + fleetSecret}
	if f.nodes == nil {
		f.nodes = make([]*process, 3)
	}
	if f.own != nil {
		f.recorders = make([]*process, 2)
	}
	for n := range f.nodes {
		f.nodes[n] = f.start(f.role...)
	}
	for n := range f.recorders {
		f.recorders[n] = f.start("--role", "recorder")
	}
	return f
}

func (f *fleet) start(args ...string) *process {
	f.t.Helper()
	at := f.args
	if slices.Contains(args, "recorder") {
		at = f.own
	}
	return serve(f.t, launch{args: slices.Concat(args, at), env: f.env, faults: f.plans})
}

// kill kills a node, or one who only records, and starts another in its place.
func (f *fleet) kill(all []*process, n int, args ...string) {
	f.t.Helper()
	f.mu.Lock()
	killed := all[n]
	f.mu.Unlock()
	killed.kill()
	started := f.start(args...)
	f.mu.Lock()
	defer f.mu.Unlock()
	all[n] = started
}

// node returns one of the nodes.
func (f *fleet) node(n int) *process {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.nodes[n%len(f.nodes)]
}

// create makes a campaign that is open.
func (f *fleet) create(id string, quantity int64, answer firstcome.AnswerWhen) {
	f.t.Helper()
	f.createWith(id, quantity, answer, `null`)
}

// createWith is create with prizes, as JSON.
func (f *fleet) createWith(id string, quantity int64, answer firstcome.AnswerWhen, prizes string) {
	f.t.Helper()
	body := fmt.Sprintf(`{"id":%q,"name":%q,"quantity":%d,"answer":%q,"prizes":%s}`, id, id, quantity, answer, prizes)
	p := f.node(0)
	if answer, text := p.ask(http.MethodPost, p.url+"/v1/campaigns", body); answer.StatusCode != http.StatusCreated {
		f.t.Fatalf("create a campaign: %s %s", answer.Status, text)
	}
}

// insistOn has new users claim at one node after the other until ctx ends. Whoever is
// answered asks the next node again; who is not asks the next until there is an answer.
func (c *crowd) insistOn(ctx context.Context, f *fleet) {
	for at := c.random.IntN(100); ctx.Err() == nil; {
		user := c.user()
		for answered := 0; answered < 2; at++ {
			_, err := c.claimWithin(context.WithoutCancel(ctx), f.node(at).calls, user)
			switch {
			case err == nil:
				answered++
			case ctx.Err() != nil:
				return // nobody was told anything that would have to hold
			default:
				<-time.After(time.Duration(1+c.random.IntN(20)) * time.Millisecond)
			}
		}
		// Most tests wait for something while the crowd claims: without this it would take both cores from it.
		<-time.After(time.Duration(c.random.IntN(rounds(15, 1))) * time.Millisecond)
	}
}

// claimWithin claims once, and waits for the answer no longer than the crowd does.
func (c *crowd) claimWithin(ctx context.Context, calls *client.Client, user string) (client.Answer, error) {
	if c.longest > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, c.longest)
		defer cancel()
	}
	return c.claim(ctx, calls, user)
}

// claimUntil has clients insist until stop is called, which waits for them.
func (f *fleet) claimUntil(c *crowd, clients int) (stop func()) {
	ctx, cancel := context.WithCancel(f.t.Context())
	var all sync.WaitGroup
	for range clients {
		all.Go(func() { c.insistOn(ctx, f) })
	}
	return func() {
		cancel()
		all.Wait()
	}
}

// drained waits until the ledger has all that was issued, and returns how long that took.
func (f *fleet) drained(id string) time.Duration {
	f.t.Helper()
	started := time.Now()
	waitFor(f.t, "the ledger to have all that was issued", func() bool {
		c, err := f.node(0).calls.Campaign(f.t.Context(), id)
		return err == nil && c.Issued != nil && c.Recorded == *c.Issued
	})
	return time.Since(started)
}

// verdict holds all answers against the ledger, and the ledger against the promises.
func (f *fleet) verdict(c *crowd) {
	f.t.Helper()
	f.audit()
	c.wereTrue(f.node(0))
}

// audit has firstcome audit read the ledger, and compare the gate with it, and wants no breach.
func (f *fleet) audit() {
	f.t.Helper()
	of := f.args[:2]
	if f.own != nil {
		of = f.args[:4]
	}
	if n := slices.Index(f.args, "--journal"); n >= 0 {
		of = slices.Concat(of, f.args[n:n+2])
	}
	status, out := f.execute(append([]string{"audit"}, of...)...)
	if status != 0 || strings.Contains(out, " at its gate: ") != (f.own != nil) || strings.Contains(out, "not checked") {
		f.t.Errorf("the audit ends with %d:\n%s", status, out)
	}
}

// execute runs firstcome with the fleet's secret.
func (f *fleet) execute(args ...string) (status int, out string) {
	f.t.Helper()
	return executeWith(f.t, f.t.TempDir(), f.env, args...)
}

// A setup is one way to run a fleet.
type setup struct {
	name   string
	ledger services.Kind
	redis  bool // Redis is the gate
	synced bool // and syncs each write, so that it may be killed
	topic  bool // coupons pass a topic behind Redis
}

// A trial is a setup, and when its campaigns are answered.
type trial struct {
	setup
	answer firstcome.AnswerWhen
}

// trials are all setups answered when recorded, and those of which a gate of its own decides answered when decided
// too: without a soak that of MariaDB.
func trials() (all []trial) {
	for _, s := range setups {
		all = append(all, trial{s, firstcome.Recorded})
		if s.redis && (s.ledger == services.MariaDB || soaking) {
			s.name += ", answered when decided"
			all = append(all, trial{s, firstcome.Decided})
		}
	}
	return all
}

// alone is a single server on a SQLite file.
var alone = setup{name: "one server on SQLite"}

// withSQLite are all setups, and that of a single server.
func withSQLite() []setup { return append([]setup{alone}, setups...) }

var setups = []setup{
	{name: "MariaDB is ledger and gate", ledger: services.MariaDB},
	{name: "PostgreSQL is ledger and gate", ledger: services.PostgreSQL},
	{name: "Redis is the gate of MariaDB", ledger: services.MariaDB, redis: true},
	{name: "Redis is the gate of PostgreSQL", ledger: services.PostgreSQL, redis: true},
}

// withTopics are set-ups whose coupons pass a topic.
var withTopics = []setup{
	{name: "a topic is behind the Redis of MariaDB", ledger: services.MariaDB, redis: true, topic: true},
	{name: "a topic is behind the Redis of PostgreSQL", ledger: services.PostgreSQL, redis: true, topic: true},
}

// A deployment is a fleet with its servers, each behind a proxy.
type deployment struct {
	*fleet
	ledger *services.Server // nil: a file
	gate   *services.Server // nil: the ledger decides
	// killable tells that the gate loses nothing if it is killed.
	killable bool
	// The nodes that answer reach the servers through these, and those that only record through theirs.
	toLedger, toGate         *services.Proxy
	recordLedger, recordGate *services.Proxy
	plain                    string // URL of the ledger, for who goes there without a proxy
}

// proxies returns all that there are between nodes and servers.
func (d *deployment) proxies() []*services.Proxy {
	if d.gate == nil {
		return []*services.Proxy{d.toLedger}
	}
	return []*services.Proxy{d.toLedger, d.toGate, d.recordLedger, d.recordGate}
}

// proxied has the clients reach each node through a proxy, and returns these.
func (f *fleet) proxied() (all []*services.Proxy) {
	f.t.Helper()
	for _, p := range f.nodes {
		proxy := services.Through(f.t, p.address())
		at, err := proxy.URL(p.url)
		stage.Must(f.t, err)
		p.url, p.calls = at, client.New(at, "")
		f.t.Cleanup(p.calls.CloseIdle)
		all = append(all, proxy)
	}
	return all
}

// deploy starts servers and a fleet, with more arguments.
func (s setup) deploy(t *testing.T, more ...string) *deployment {
	t.Helper()
	if s == alone {
		return &deployment{fleet: s.fleet(t, more...)}
	}
	d := &deployment{ledger: s.ledger.Server(t)}
	url, err := d.ledger.Database(t.Context())
	stage.Must(t, err)
	d.plain = url
	var at, own [2]string
	d.toLedger, at[0] = through(t, d.ledger, url)
	if !s.redis {
		d.fleet = newFleet(t, at[0], "", more...)
		return d
	}
	d.gate = services.Redis.Server(t, map[bool][]string{true: {"--appendfsync", "always"}}[s.synced]...)
	d.killable = s.synced
	d.toGate, at[1] = through(t, d.gate, d.gate.URL())
	d.recordLedger, own[0] = through(t, d.ledger, url)
	d.recordGate, own[1] = through(t, d.gate, d.gate.URL())
	args := func(of [2]string) []string { return append([]string{"--ledger", of[0], "--gate", of[1]}, more...) }
	d.fleet = (&fleet{t: t, args: args(at), own: args(own), role: []string{"--role", "api"}}).open()
	return d
}

// fleet starts a fleet on servers that others use too, so that nobody may harm them; alone it is one node.
func (s setup) fleet(t *testing.T, more ...string) *fleet {
	t.Helper()
	if s == alone {
		ledger := "sqlite:" + filepath.Join(t.TempDir(), "firstcome.db")
		return (&fleet{t: t, args: append([]string{"--ledger", ledger}, more...), nodes: make([]*process, 1)}).open()
	}
	gate := ""
	if s.redis {
		gate = services.Redis.Database(t)
	}
	return newFleet(t, s.ledger.Database(t), gate, more...)
}

// decider returns the server that decides, and the proxy to it.
func (d *deployment) decider() (*services.Server, *services.Proxy) {
	if d.gate != nil {
		return d.gate, d.toGate
	}
	return d.ledger, d.toLedger
}

// through returns a proxy to a server, and a URL of the server through it.
func through(t *testing.T, s *services.Server, url string) (*services.Proxy, string) {
	t.Helper()
	p := services.Through(t, s.Address())
	url, err := p.URL(url)
	stage.Must(t, err)
	return p, url
}

// restart kills a server and starts it again, without it for some time.
func (d *deployment) restart(s *services.Server, without time.Duration) {
	d.t.Helper()
	err := s.Kill()
	<-time.After(without)
	stage.Must(d.t, errors.Join(err, s.Restart(d.t.Context())))
}
