package sim

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/gate"
	"github.com/firstcome/firstcome/internal/issue"
	"github.com/firstcome/firstcome/internal/line"
	"github.com/firstcome/firstcome/internal/operate"
	"github.com/firstcome/firstcome/internal/record"
	"github.com/firstcome/firstcome/internal/recovery"
)

// A node is a process of firstcome, from its start until it stops or crashes: the packages as they are, wired as cmd/firstcome does.
type node struct {
	name     string
	issuer   *issue.Issuer
	answerer *issue.Answerer
	operator *operate.Operator
	places   gate.Places
	refuses  func() bool  // it knows that its gate is in an epoch that has ended
	epoch    func() int64 // the epoch that it knows; 0 if none
	ready    atomic.Bool  // it has looked whether the ledger is older than the gate
	frozen   atomic.Bool  // who asks it waits, and answers do not reach it
	thaws    time.Time    // it goes on at the earliest

	stop    context.CancelFunc
	running sync.WaitGroup
	once    sync.Once
	cut     chan struct{} // closed when it is dead: nothing that it does from then on has an effect
}

func (n *node) isDead() bool {
	select {
	case <-n.cut:
		return true
	default:
		return false
	}
}

// unasked is a Machine whose ledger is never put back. So no change asks the gate whether it was, which would only be two
// more events.
type unasked struct{ *recovery.Machine }

func (u unasked) Newest(_ context.Context, id firstcome.CampaignID) error { return u.Refusal(id) }

// deaf is a Watch whose node hears of no refusal.
type deaf struct{ gate.Watch }

func (deaf) Refusal(firstcome.CampaignID) error { return nil }

// answerWait is no multiple of the times that other things wait: what ends at the same instant comes in any order.
const answerWait = 2345678 * time.Microsecond

// boot starts a node. It remembers terms, which never change, so that asking for them is no event.
func (t *town) boot(name string) *node {
	n := &node{name: name, cut: make(chan struct{})}
	at := &wire{t.world, n}
	b := t.bug
	end := remote{gated: t.front, wire: at, rebuilt: t.gate, old: func() *Gate { return t.parted(n) }, main: t.gate, told: &tells{}}
	var machine *recovery.Machine
	end.noted = func() gate.Revision { return machine.Noted(campaign) }
	book := paper{Ledger: t.ledger, wire: at, rebuilds: t.ledger}
	if b.remade != nil {
		end.rebuilt = b.remade(t.gate)
	}
	if b.refills != nil {
		book.rebuilds = b.refills(t.ledger)
	}
	machine = recovery.New(book, book, end, recovery.NewWatch(nil), nil)
	machine.Auto = t.auto()
	var places line.Log
	if t.topic != nil && t.unable != name {
		machine.Log = logs{t.topic, at}
		if b.log != nil {
			machine.Log = b.log(t, machine.Log)
		}
		places = machine.Log
	}
	n.refuses = func() bool { return errors.Is(machine.Refusal(campaign), gate.ErrStaleEpoch) }
	n.epoch = func() int64 { return machine.Noted(campaign).Epoch }
	over := &gate.Router{Retired: book, Ledger: book, Watch: machine}
	if b.deaf {
		over.Watch, end.noted = deaf{machine}, func() gate.Revision { return gate.Revision{} }
	}
	g := put(b.gate, at, gated(end))
	over.Gate = g
	waiter := issue.NewWaiter(put(b.drains, at, gate.Progress(over)))
	changer := gate.NewChanger(put(b.book, at, gate.ChangeLog(book)), put(b.applier, at, gate.Applier(over)), nil)
	recorder := record.NewRecorder(&Source{t.gate, at, end.old, b.heedless}, put(b.keeper, at, machine.Guard(book)), record.Options{OnRecorded: waiter.Recorded})
	lines := line.NewDispatcher(over, line.Options{})
	teller := line.NewTeller(over, places)
	n.issuer = issue.NewIssuer(put(b.claims, at, gate.Decider(over)), issue.Options{OnJoin: lines.Joined, OnChange: lines.Changed, Teller: teller})
	n.places = teller
	n.answerer = &issue.Answerer{Issuer: n.issuer, Coupons: over, Waiter: waiter, Terms: remembers(put(b.terms, at, t.ledger.Terms)), Wait: answerWait}
	n.operator = operate.NewRemote(operate.Ledger{Campaigns: book, Letters: book, Reads: book}, n.issuer, n.answerer, changer, g, unasked{machine})
	if b.kind.putsBack {
		n.operator = operate.NewRemote(operate.Ledger{Campaigns: book, Letters: book, Reads: book}, n.issuer, n.answerer, changer, g, asking{machine})
	}
	ctx, cancel := context.WithCancel(context.Background())
	n.stop = cancel
	start := func() {
		for _, run := range []func(context.Context) error{waiter.Run, recorder.Run, changer.Run, machine.Run, n.issuer.Run, lines.Run} {
			n.running.Go(func() { _ = run(ctx) })
		}
		n.ready.Store(true)
	}
	if !b.kind.putsBack {
		start()
		return n
	}
	n.running.Go(func() {
		machine.LookBack(ctx)
		start()
	})
	return n
}

// remembers returns what reads terms as a node does, which keeps what it has read.
func remembers(read readTerms) readTerms {
	var mu sync.Mutex
	kept := map[int64]firstcome.Terms{}
	return func(ctx context.Context, id firstcome.CampaignID, version int64) (firstcome.Terms, error) {
		mu.Lock()
		defer mu.Unlock()
		if terms, is := kept[version]; is {
			return terms, nil
		}
		terms, err := read(ctx, id, version)
		if err == nil {
			kept[version] = terms
		}
		return terms, err
	}
}

// kill ends a node: its memory is gone, and some of its calls may still arrive.
func (n *node) kill() {
	n.once.Do(func() {
		close(n.cut)
		n.stop()
		ended, cancel := context.WithCancel(context.Background())
		cancel()
		if err := n.issuer.Stop(ended); err != nil && !errors.Is(err, context.Canceled) {
			panic(err)
		}
	})
}
