//go:build linux && !check

package e2e_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/client"
	"github.com/firstcome/firstcome/internal/point"
	"github.com/firstcome/firstcome/test/seed"
	"github.com/firstcome/firstcome/test/services"
	"github.com/firstcome/firstcome/test/stage"
)

// TestTheBinaryThatIsReleasedHasNoFaultPoints looks for what only a program has that can stop itself.
func TestTheBinaryThatIsReleasedHasNoFaultPoints(t *testing.T) {
	t.Parallel()
	faulty, err := faultyBinary()
	stage.Must(t, err)
	for file, want := range map[string]bool{faulty: true, firstcomeBinary(): false} {
		program, err := os.ReadFile(file)
		stage.Must(t, err)
		for _, trace := range []string{"FAULTPOINT", "fault point ", "internal/point.Reach"} {
			if has := bytes.Contains(program, []byte(trace)); has != want {
				t.Errorf("%s has %q: %t, want %t", filepath.Base(file), trace, has, want)
			}
		}
	}
}

// A pointRound is one ledger and gate, a node that lives, and for each point a node that gets there and no further.
type pointRound struct {
	*fleet
	fault  string // kill, or stop
	passes int64  // of a point, with which the fault comes
	answer firstcome.AnswerWhen
	topic  bool // coupons pass one
	hits   []*hit
}

// A hit is a process at its point, and who claims of a campaign of its own.
type hit struct {
	*process
	at    point.Point
	crowd *crowd
	line  *lineCrowd // nil: the campaign has none
	epoch int64      // which a rebuild of others began; 0: none did
}

// asks are what an operator asks of a process whose point claims do not reach.
var asks = map[point.Point]func(ctx context.Context, c *client.Client, id string, times int64) error{
	point.Numbered: raise, point.Applied: raise,
	point.Begun: rebuild, point.Frozen: rebuild, point.Folded: rebuild, point.Emptied: rebuild, point.Loaded: rebuild,
	point.Waited: rebuild, point.Ended: rebuild, point.Switched: rebuild,
}

func raise(ctx context.Context, c *client.Client, id string, times int64) error {
	return stage.Err(c.UpdateCampaign(ctx, id, 0, map[string]any{"quantity": 10_000_000 + times}))
}

func rebuild(ctx context.Context, c *client.Client, id string, _ int64) error {
	return stage.Err(c.Operator().Rebuild(ctx, id))
}

// everyPoint are the points that nodes with Redis pass.
func everyPoint() []point.Point {
	return []point.Point{
		point.Decided, point.Taken, point.Committed, point.Given, point.Settled, point.Numbered, point.Applied,
		point.Begun, point.Frozen, point.Folded, point.Emptied, point.Loaded, point.Waited, point.Ended, point.Switched,
		point.Adopted, point.Brought, point.Joined, point.Appended, point.Served,
	}
}

// pointsOf are the points of a trial at which nodes suffer a fault. With a topic they are those on the way of coupons, where it makes a
// difference: the relay passes the first ones, the recorder the last. Outside of a soak those with a topic are one of each, as Kafka takes its
// time to tell who is gone, and two trials share the points at which nodes are frozen.
func pointsOf(s trial, fault string) []point.Point {
	switch {
	case !s.redis:
		return []point.Point{point.Decided, point.Served}
	case s.topic && !soaking:
		return []point.Point{point.Relayed, point.Given, point.Emptied}
	case s.topic:
		return []point.Point{point.Taken, point.Committed, point.Relayed, point.Given, point.Settled, point.Frozen, point.Emptied}
	case soaking || fault == "kill":
		return everyPoint()
	}
	var half []point.Point
	for n, p := range everyPoint() {
		if (n%2 == 0) == (s.answer == firstcome.Recorded) {
			half = append(half, p)
		}
	}
	return half
}

// TestF18F20F21F23F41F71F79F81P10WhoDiesOrIsFrozenAtAFaultPointLosesNothing has a process for each point end itself there, or stop itself
// there and go on after the other node took over. Where it has entries of a journal, or had, or is about to answer, the other node rebuilds
// the gate while it is frozen. The campaigns have prizes for rank 1, for ranks 2 and 3, and for the rest.
// Nothing that was answered as recorded is lost, no number or rank is given twice, and the audit finds no breach. Each point has each fault once;
// in a soak also later than at the first pass, and in every setup.
func TestF18F20F21F23F41F71F79F81P10WhoDiesOrIsFrozenAtAFaultPointLosesNothing(t *testing.T) {
	t.Parallel()
	random := seed.Rand(t)
	all := trials()
	for _, s := range withTopics {
		all = append(all, trial{s, firstcome.Recorded})
	}
	for n, s := range all {
		for _, fault := range []string{"kill", "stop"} {
			for _, passes := range []int64{1, 2 + random.Int64N(4)} {
				if few := s.redis && passes == 1 && (fault == "kill") == (s.ledger == services.MariaDB && s.answer == firstcome.Recorded); !soaking && !few {
					continue
				}
				t.Run(fmt.Sprintf("%d: %s, %s at pass %d", n, s.name, fault, passes), func(t *testing.T) {
					t.Parallel()
					r := &pointRound{fleet: s.single(t, s.logs(t)...), fault: fault, passes: passes, answer: s.answer, topic: s.topic}
					for _, p := range pointsOf(s, fault) {
						h := r.reach(p)
						r.hits = append(r.hits, h)
						if fault == "stop" && (slices.Contains(ofRecorders, p) || s.redis && p == point.Decided) {
							r.othersRebuild(h)
						}
					}
					r.othersGoOn()
					if fault == "stop" {
						r.thaw()
					}
					r.verdict()
				})
			}
		}
	}
}

// logs are arguments of nodes whose lines have logs, where they may and coupons pass no topic.
func (s setup) logs(t *testing.T) []string {
	t.Helper()
	if !s.redis || s.topic {
		return nil
	}
	return []string{"--line", lines(t, services.Kafka.Database(t), services.Unique("lines-of-points"))}
}

// single starts one node that does all, with more arguments.
func (s setup) single(t *testing.T, more ...string) *fleet {
	t.Helper()
	f := &fleet{t: t, args: []string{"--ledger", s.ledger.Database(t)}, nodes: make([]*process, 1)}
	if s.redis {
		f.args = append(f.args, "--gate", services.Redis.Database(t))
	}
	f.args = append(f.args, more...)
	if s.topic {
		topic := services.Kafka.Database(t)
		awaitGroups(t, topic)
		f.args = append(f.args, "--journal", topic)
	}
	f.open()
	if s.redis {
		f.own = f.args // the audit compares the gate
	}
	return f
}

// reach starts a process, and has a crowd and an operator ask until it is at its point.
func (r *pointRound) reach(at point.Point) *hit {
	r.t.Helper()
	plan := fmt.Sprintf("%s%s:%s:%d", faultVariable, r.fault, at, r.passes)
	h := &hit{at: at, process: serve(r.t, launch{faults: plan, args: r.args, env: r.env})}
	switch at {
	case point.Served:
		r.reachServed(h)
		return h
	case point.Joined, point.Appended:
		r.reachLog(h)
		return h
	case point.Folded:
		r.reachFolded(h)
		return h
	}
	r.createWith(string(at), 10_000_000, r.answer, `[{"id":"drink","name":"Drink","quantity":1},{"id":"twenty","name":"20 %","quantity":2},{"id":"rest","name":"The rest"}]`)
	h.crowd = newCrowd(string(at))
	h.crowd.longest = time.Second // nobody waits for a process that is frozen
	stop := (&fleet{t: r.t, nodes: []*process{r.node(0), h.process}}).claimUntil(h.crowd, 4)
	defer stop()
	h.crowd.awaitAnswers(r.t, 5)
	if r.topic && slices.Contains(ofRecorders, at) { // else the other one may have the campaign's partition for good
		r.node(0).freeze()
		defer r.node(0).thaw()
	}
	ctx, cancel := context.WithCancel(r.t.Context())
	var operator sync.WaitGroup
	defer operator.Wait()
	defer cancel()
	ask := asks[at]
	if slices.Contains(ofReconciles, at) {
		ask = r.forgetAndReconcile()
	}
	if ask != nil {
		operator.Go(func() {
			for times := int64(1); ctx.Err() == nil; times++ {
				_ = ask(ctx, h.calls, string(at), times) // whoever is at the point answers nobody
			}
		})
	}
	h.awaitFault(r.fault)
	return h
}

// reachServed has a line that lasts until the process has served it. The other node stands still meanwhile: it would serve all.
func (r *pointRound) reachServed(h *hit) {
	r.t.Helper()
	const visitors = 100 // at one a second somebody is in line when all have joined
	r.createLine(string(h.at), 10_000, 1)
	h.line = come(r.fleet, string(h.at), visitors)
	waitFor(r.t, "visitors in line", func() bool { return h.line.joined.Load() == visitors })
	r.node(0).freeze()
	h.awaitFault(r.fault)
	r.node(0).thaw()
	r.setPace(string(h.at), map[string]any{}) // the rest goes as fast as it can
}

// reachLog has people join by the process until it is there. Others come then, behind the one whose place nobody was told.
func (r *pointRound) reachLog(h *hit) {
	r.t.Helper()
	id := string(h.at)
	r.createLine(id, 10_000, 1)
	ctx, cancel := context.WithCancel(r.t.Context())
	joined := int64(0)
	var first sync.WaitGroup
	first.Go(func() {
		for ; ctx.Err() == nil; joined++ {
			_, _ = h.calls.Claim(ctx, id, fmt.Sprint("first-", joined)) // whoever is at the point answers nobody
		}
	})
	h.awaitFault(r.fault)
	cancel()
	first.Wait()
	h.line = come(r.fleet, id, 100)
	h.line.others = joined
	r.setPace(id, map[string]any{})
}

// reachFolded has the process rebuild the gate of a line until it is there. The other node takes over.
func (r *pointRound) reachFolded(h *hit) {
	r.t.Helper()
	const visitors = 100
	id := string(h.at)
	r.createLine(id, 10_000, 1)
	h.line = comeToLose(r.fleet, id, visitors)
	waitFor(r.t, "visitors in line", func() bool { return h.line.joined.Load() == visitors })
	ctx, cancel := context.WithCancel(r.t.Context())
	var operator sync.WaitGroup
	operator.Go(func() {
		for ctx.Err() == nil {
			_ = rebuild(ctx, h.calls, id, 0)
		}
	})
	h.awaitFault(r.fault)
	cancel()
	operator.Wait()
	r.setPace(id, map[string]any{})
}

// ofRecorders are the points at which a recorder has entries of a journal, or has just settled them.
var ofRecorders = []point.Point{point.Taken, point.Committed, point.Given, point.Settled}

// othersRebuild has the node that lives rebuild a gate whose entries a recorder has that is frozen, before it would take these over, and so empty
// their journal. All that was answered is in the ledger then.
func (r *pointRound) othersRebuild(h *hit) {
	r.t.Helper()
	before := r.ledgerState(string(h.at))
	stage.Must(r.t, r.insist(func() error { return rebuild(r.t.Context(), r.node(0).calls, string(h.at), 0) }))
	at := r.ledgerState(string(h.at))
	h.epoch = at.Epoch
	if h.epoch < 2 || len(at.Lost) == 0 {
		r.t.Errorf("%s: a rebuild was ordered, and the ledger has %+v", h.at, at)
	}
	h.crowd.wereTrue(r.node(0))
	r.t.Logf("%s: the rebuild found %d coupons in the journal that the ledger did not have", h.at, at.Recorded-before.Recorded)
}

// othersGoOn has the node that lives finish what the others left, and go on with each campaign: it issues, changes, and records all.
func (r *pointRound) othersGoOn() {
	r.t.Helper()
	for _, h := range r.hits {
		id := string(h.at)
		if h.line != nil {
			h.line.awaitEnds()
			continue
		}
		if slices.Contains(ofReconciles, h.at) {
			r.reconciled(id)
		}
		stop := r.claimUntil(h.crowd, 2)
		h.crowd.awaitAnswers(r.t, 20)
		stop()
		err := r.insist(func() error {
			return stage.Err(r.node(0).calls.UpdateCampaign(r.t.Context(), id, 0, map[string]any{"quantity": 20_000_000}))
		})
		if err != nil {
			r.t.Errorf("%s: a change behind the fault: %v", h.at, err)
		}
		r.drained(id)
	}
}

// thaw has the processes that are frozen do what they were about to do. They answer claims, and end as they should.
func (r *pointRound) thaw() {
	r.t.Helper()
	for _, h := range r.hits {
		h.process.thaw()
	}
	for _, h := range r.hits {
		if h.crowd != nil {
			stop := (&fleet{t: r.t, nodes: []*process{h.process}}).claimUntil(h.crowd, 1)
			h.crowd.awaitAnswers(r.t, 5)
			stop()
		}
	}
	for _, h := range r.hits {
		h.stop()
	}
}

// verdict holds what was answered of every campaign against the ledger, and the ledger and the gate against the promises.
func (r *pointRound) verdict() {
	r.t.Helper()
	for _, h := range r.hits {
		r.drained(string(h.at))
		if at := r.ledgerState(string(h.at)); h.epoch > 0 && at.Epoch != h.epoch {
			r.t.Errorf("%s: the campaign was in epoch %d, and after the thaw the ledger has %+v", h.at, h.epoch, at)
		}
		if h.line != nil {
			h.line.verdict()
		} else {
			h.crowd.wereTrue(r.node(0))
		}
	}
	r.audit()
}
