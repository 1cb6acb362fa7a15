package sim

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"sync/atomic"
	"testing/synctest"
	"time"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/gate"
	"github.com/firstcome/firstcome/internal/ledger"
	"github.com/firstcome/firstcome/internal/recovery"
)

// A town is one campaign with everybody who has to do with it: users who claim, operators who change it, nodes, and the models of
// gate and ledger.
type town struct {
	*world
	bug *bug
	backup
	logging
	gate  *Gate
	front gated // the gate, as nodes ask it
	server
	old     atomic.Pointer[oldServer] // nil if there is none; nodes use it too
	strayed map[string]time.Time      // when a node reached a server last whose epoch had ended
	ledger  *Ledger
	names   []string         // of the nodes
	nodes   map[string]*node // those that live
	people  []*person
	jumped  time.Duration // of the gate's clock
	// asksLast means that all users have asked again, now that nothing fails.
	asksLast bool
	paced    bool // there may be a waiting line
	*history
}

// the campaign.
const campaign = firstcome.CampaignID("c")

// campaignUID is the campaign's: see firstcome.Change.
const campaignUID = "m"

// A person is a user or an operator: they ask one thing after the other.
type person struct {
	name string
	left int  // things that they still ask
	late bool // they ask nothing before a gate was rebuilt, while anything fails: so there are newcomers for an old server and the new one
	ask  func(*person, *node)
	busy *asked // what they wait for; nil: nothing
}

// build builds a town from a seed.
func build(drawn *rand.Rand, b *bug) *town {
	if b == nil {
		b = &bug{}
	}
	t := &town{world: newWorld(drawn), bug: b, nodes: map[string]*node{}, strayed: map[string]time.Time{}}
	t.gate = NewGate(func() time.Time { return time.Now().Add(t.jumped) })
	t.front = t.gate
	t.durable = t.IntN(2) == 0
	t.paced = t.IntN(2) == 0
	t.follows = !t.durable && t.IntN(2) == 0
	t.paced = t.paced || b.kind.logs
	if b.kind.logs { // what a cut-off node tells of a deposed server is lost with it: a limit
		t.follows = false
	}
	if b.kind.putsBack { // what arrives late arrives at another ledger, and of two servers none is the one to be asked
		t.follows, t.lost = false, 0
	}
	t.gate.becomes(t.gate.memory, t.another())
	t.ledger = NewLedger(time.Now)
	t.ledger.Backlog = int64(t.IntN(4)) // 0 means no limit
	t.history = &history{town: t, promised: newPromised()}
	t.ledger.onEnd = t.ranks.ended
	t.names = []string{"n1", "n2", "n3"}[:1+t.IntN(3)]
	newcomers := 0
	if t.follows {
		newcomers = 8
	}
	for n := range newcomers + 3 + t.IntN(5) {
		t.people = append(t.people, &person{name: string(rune('a' + n)), left: 1 + t.IntN(8), ask: t.visit, late: n < newcomers})
	}
	for n := range t.IntN(3) {
		t.people = append(t.people, &person{name: []string{"operator 1", "operator 2"}[n], left: 1 + t.IntN(9), ask: t.order})
	}
	t.people = append(t.people, &person{name: owner, left: 1, ask: t.rebuild})
	terms := firstcome.Terms{Name: "sim", Quantity: int64(1 + t.IntN(4)), Answer: firstcome.Recorded, Benefit: []byte(`{}`)}
	if t.IntN(3) == 0 {
		terms.Answer = firstcome.Decided
	}
	switch t.IntN(6) {
	case 0:
		terms.OpensAt = time.Now().Add(300 * time.Millisecond)
	case 1:
		terms.ClosesAt = time.Now().Add(800 * time.Millisecond)
	}
	terms.Quantity += int64(newcomers)
	if t.paced {
		terms.Pace = t.pace()
		terms.Waitlist = terms.Pace != nil && t.IntN(3) == 0
	}
	if terms.Quantity%2 == 0 {
		prized(&terms, twoPrizes())
	}
	if b.kind.logs {
		t.logs(&terms)
	}
	if b.script != nil {
		t.scripted(&terms)
	}
	must(t.ledger.Create(context.Background(), "", campaign, terms))
	made, err := t.ledger.Pending(context.Background(), campaign)
	must(err)
	for _, change := range made {
		_, err := t.gate.Apply(context.Background(), change)
		must(err)
		must(t.ledger.Applied(context.Background(), change, false))
	}
	t.copy, t.saved = t.gate.copied(), t.ledger.copied()
	t.stall = b.stall
	t.watch()
	if b.models != nil {
		b.models(t)
	}
	for _, name := range t.names {
		t.nodes[name] = t.boot(name)
	}
	return t
}

// must ends a schedule in which a step failed that cannot.
func must(err error) {
	if err != nil {
		panic(err)
	}
}

// live lives through the schedule: so many steps with faults, then without, until everybody has an answer and nothing is on its way. A
// town that never comes to rest is a breach.
func (t *town) live() {
	for _, act := range t.bug.script {
		act(t)
	}
	t.held = nil
	for n := 100 + t.IntN(300); n > 0 && !t.rests(); n-- {
		t.step()
	}
	t.say("from here on nothing fails any more")
	t.calm = true
	for n := 0; !t.rests() || !t.asksLast; n++ {
		if n > 12000 {
			a := t.ledger.campaigns[campaign]
			t.breach("P5", "something never ends: %d entries in the journal, %d of %d changes at the gate", len(t.gate.journal), a.applied, a.Version)
			break
		}
		if t.rests() {
			t.asksLast = true
			for _, p := range t.people {
				if len(p.name) == 1 {
					p.left = 1
				}
			}
		}
		t.step()
	}
	for _, p := range t.people {
		t.giveUp(p.busy)
	}
	for _, name := range t.names {
		if n := t.nodes[name]; n != nil {
			n.kill()
			n.running.Wait()
		}
	}
}

// step has one thing happen, when everybody waits for something: a fault, or time that passes, or the event that the seed picks.
func (t *town) step() {
	time.Sleep(time.Duration(1+t.IntN(99)) * time.Microsecond) // so that no two things wait until the same instant
	synctest.Wait()
	t.fail()
	if t.percent(5) {
		t.copy = t.gate.copied()
	}
	if t.bug.kind.putsBack && t.percent(2) {
		t.saved = t.ledger.copied()
	}
	if t.percent(t.patient) {
		t.pass(t.stuck())
		return
	}
	e := t.next(t.offers())
	if e == nil {
		t.pass(t.stuck())
		return
	}
	t.say(e.name)
	e.do()
	t.watch()
	synctest.Wait() // so that what the event woke is not half done when someone asks whether the town rests
}

// offers returns what people could do now, and what ends a fault.
func (t *town) offers() (all []*event) {
	offer := func(name string, do func()) { all = append(all, &event{name: name, do: do}) }
	for _, name := range t.names {
		switch n := t.nodes[name]; {
		case n == nil:
			offer(name+" starts again", func() { t.nodes[name] = t.boot(name) })
		case n.frozen.Load() && (t.calm || !time.Now().Before(n.thaws)):
			offer(name+" goes on", func() { n.frozen.Store(false) })
		}
	}
	if old := t.old.Load(); old != nil && !time.Now().Before(old.until) {
		offer("the old server follows the new one", t.heal)
	}
	if t.topic != nil && t.topic.away && (t.calm || !time.Now().Before(t.back)) {
		offer("the topic answers again", func() { t.topic.away = false })
	}
	at := t.awake()
	for _, p := range t.people {
		switch {
		case p.busy != nil && t.percent(2):
			offer(p.name+" waits no longer", func() { t.giveUp(p.busy) })
		case p.name == owner && !t.needed():
		case p.late && !t.calm && t.ledger.campaigns[campaign].epoch == 1:
		case p.busy == nil && p.left > 0 && len(at) > 0:
			offer(p.name+" asks", func() {
				p.left--
				p.ask(p, at[t.IntN(len(at))])
			})
		}
	}
	return all
}

// awake returns the nodes that live and are not frozen.
func (t *town) awake() (all []*node) {
	for _, name := range t.names {
		if n := t.nodes[name]; n != nil && n.ready.Load() && !n.frozen.Load() {
			all = append(all, n)
		}
	}
	return all
}

// fail has the weather's faults happen.
func (t *town) fail() {
	at := t.awake()
	switch {
	case len(at) > 0 && t.percent(t.crash):
		t.crashes(at[t.IntN(len(at))])
	case t.mayPutBack() && t.percent(1):
		t.putBack()
	case t.topic != nil && t.IntN(4) == 0 && t.percent(1):
		t.failTopic()
	case len(at) > 0 && !t.older && t.percent(t.freeze):
		n := at[t.IntN(len(at))]
		t.freezes(n)
	case t.follows && t.percent(3) && t.mayPart():
		t.part()
	case t.percent(10) && t.mayLeadBack():
		t.leadBack()
	case t.outages < 3 && !t.older && t.percent(t.lose):
		t.outage()
	case t.percent(t.clock):
		t.jump(time.Duration(t.IntN(4000)-2000) * time.Millisecond)
	}
}

// crashes crashes a node.
func (t *town) crashes(n *node) {
	t.say(n.name, "crashes")
	delete(t.nodes, n.name)
	n.kill()
	t.drop(n)
	for _, p := range t.people {
		if p.busy != nil && p.busy.node == n {
			t.giveUp(p.busy)
		}
	}
}

// freezes stalls a node: for a moment, or for so long that its rebuild counts as abandoned.
func (t *town) freezes(n *node) {
	t.say(n.name, "stands still")
	n.frozen.Store(true)
	if n.thaws = time.Now(); t.IntN(2) == 0 {
		n.thaws = n.thaws.Add(attemptTime + time.Second)
		if t.lose > 0 && t.outages < 3 && len(t.names) > 1 { // so that the others rebuild meanwhile
			t.outage()
		}
	}
}

// stuck reports whether a node stands still for long.
func (t *town) stuck() bool {
	return slices.ContainsFunc(t.names, func(name string) bool {
		n := t.nodes[name]
		return n != nil && n.frozen.Load() && time.Now().Before(n.thaws)
	})
}

// jump sets the gate's clock.
func (t *town) jump(by time.Duration) {
	t.say("the gate's clock jumps by", by)
	t.jumped += by
	t.watch()
}

// claim makes a user claim at a node.
func (t *town) claim(p *person, n *node) {
	ctx, a := t.begin(p, n, "a coupon")
	go func() {
		d, err := n.answerer.Claim(ctx, campaign, firstcome.UserID(p.name))
		said := spellDecision(d)
		if err != nil {
			said = "error"
		}
		t.post(n, show(n.name, "tells", p.name, said), func() { t.answered(a, d, err) })
	}()
}

// order has an operator order something at a node.
func (t *town) order(p *person, n *node) {
	number, by, at := 1+t.Int64N(max(1, t.highest())), t.Int64N(5)-2, time.Now().Add(t.jumped+time.Duration(t.IntN(600)-300)*time.Millisecond)
	terms := func(what string, edit func(*firstcome.Terms)) {
		t.change(p, n, what, func(ctx context.Context) (ledger.Status, error) {
			return n.operator.SetTerms(ctx, p.name, campaign, 0, edit)
		})
	}
	turn := func(to firstcome.ChangeKind) {
		t.change(p, n, string(to), func(ctx context.Context) (ledger.Status, error) {
			return n.operator.ChangeState(ctx, p.name, campaign, 0, to)
		})
	}
	switch t.IntN(24) {
	case 0:
		turn(firstcome.ChangeClose)
	case 1, 2:
		turn(firstcome.ChangePause)
	case 3, 4, 5, 6:
		turn(firstcome.ChangeResume)
	case 7, 8, 9, 10, 11, 12, 13:
		terms(show("a quantity changed by", by), func(terms *firstcome.Terms) { terms.Quantity = max(0, terms.Quantity+by) })
	case 14:
		terms("another opening", func(terms *firstcome.Terms) { terms.OpensAt, terms.ClosesAt = at, time.Time{} })
	case 17:
		t.reprizes(terms)
	case 16:
		if t.paced {
			t.repace(terms)
			return
		}
		fallthrough
	case 15:
		terms("another closing", func(terms *firstcome.Terms) { terms.OpensAt, terms.ClosesAt = time.Time{}, at })
	default:
		t.change(p, n, show("number", number, "voided"), func(ctx context.Context) (ledger.Status, error) {
			_, err := n.operator.Void(ctx, p.name, campaign, number, "sim")
			return ledger.Status{}, err
		})
	}
}

// change makes a change through a node.
func (t *town) change(p *person, n *node, what string, do func(context.Context) (ledger.Status, error)) {
	ctx, a := t.begin(p, n, what)
	go func() {
		s, err := do(ctx)
		said := "done"
		if err != nil {
			said = "error"
		}
		t.post(n, show(n.name, "tells", p.name, said), func() { t.changed(a, s, err) })
	}()
}

// rests reports whether nobody waits and nothing is on its way.
func (t *town) rests() bool {
	a := t.ledger.campaigns[campaign]
	return len(t.awake()) == len(t.names) && t.old.Load() == nil && !t.gate.serves() && len(t.gate.journal) == 0 && a.applied == a.Version && a.rebuildingAt.IsZero() && t.stands() == nil && !t.rolledBack() && !t.damaged() &&
		!slices.ContainsFunc(t.people, func(p *person) bool { return p.left > 0 && p.name != owner || p.busy != nil })
}

// auto reports whether nodes wait for no owner: in a quarter of the towns.
func (t *town) auto() bool { return t.ledger.Backlog == 1 }

// owner orders a rebuild if no node begins one by itself: because the gate's server has lost its name, or its epoch has ended.
const owner = "the owner"

// needed reports whether the owner has to order a rebuild. Now and then they order one for nothing, or at an old server.
func (t *town) needed() bool {
	if t.rolledBack() {
		return !t.ledger.campaigns[campaign].underWay(time.Now())
	}
	return t.damaged() || !t.auto() && (!t.gate.named || errors.Is(t.stands(), gate.ErrStaleEpoch)) || t.lose > 0 && t.percent(1)
}

// rebuild has the owner order a rebuild.
func (t *town) rebuild(p *person, n *node) {
	p.left++                                            // as often as it takes
	if _, gone := t.intact(); t.rolledBack() && !gone { // of a gate that is gone nothing can be brought back
		t.change(p, n, "a reconcile", func(ctx context.Context) (ledger.Status, error) {
			_, err := n.operator.Reconcile(ctx, p.name, campaign)
			return ledger.Status{}, err
		})
		return
	}
	ordered := recovery.Order{IfLost: t.IntN(2) == 0} // drawn here: what is asked for runs beside the next step
	if t.damaged() || t.topic != nil && t.IntN(4) == 0 {
		ordered = recovery.Order{WithoutLog: true}
	}
	t.change(p, n, "a rebuild", func(ctx context.Context) (ledger.Status, error) {
		_, err := n.operator.Rebuild(ctx, p.name, campaign, ordered)
		return ledger.Status{}, err
	})
}
