//go:build !check

package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/redis/rueidis"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/gate"
	"github.com/firstcome/firstcome/internal/ledger"
	"github.com/firstcome/firstcome/internal/recovery"
	"github.com/firstcome/firstcome/test/services"
	"github.com/firstcome/firstcome/test/stage"
)

// rebuilder returns a Machine for the desk.
func (d *desk) rebuilder() *recovery.Machine {
	return recovery.New(d.ledger.Recorder, d.ledger.Epochs, d.remote.gate.recovery, recovery.NewWatch(nil), nil)
}

// claims claims for users, and returns their answers as OUTCOME:NUMBER.
func (d *desk) claims(users ...firstcome.UserID) (answers []string) {
	d.t.Helper()
	decisions, err := d.remote.gate.Claim(d.t.Context(), "c", users)
	stage.Must(d.t, err)
	for _, one := range decisions {
		answers = append(answers, fmt.Sprintf("%s:%d", one.Outcome, one.Coupon.Number))
	}
	return answers
}

// people returns n users with a prefix.
func people(prefix string, n int) []firstcome.UserID { return stage.Users(prefix, 0, n) }

// refuses wants a gate to decide nothing, for a reason. It ignores that a connection has just ended, because another server is primary now.
func refuses(t *testing.T, decides gate.Decider, why error) {
	t.Helper()
	stage.Await(t, "a gate that refuses", why.Error(), func() string {
		if _, err := decides.Claim(t.Context(), "c", people("new-", 1)); err == nil {
			t.Fatal("a claim is decided")
		} else if !errors.Is(err, why) {
			return err.Error()
		}
		return why.Error()
	})
}

// needs expects that the gate decides nothing of the campaign, for this reason.
func (d *desk) needs(why error) {
	d.t.Helper()
	refuses(d.t, d.remote.gate, why)
	active, err := d.ledger.Recorder.Active(d.t.Context())
	stage.Must(d.t, err)
	if err := d.remote.gate.recovery.Inspect(d.t.Context(), active[0]); !errors.Is(err, why) || !gate.NeedsRebuild(err) {
		d.t.Fatalf("the gate stands: %v, want %v", err, why)
	}
}

func (d *desk) rebuilt(r *recovery.Machine) recovery.Rebuilt {
	d.t.Helper()
	done, err := r.Rebuild(d.t.Context(), "op", "c", recovery.Order{})
	stage.Must(d.t, err)
	return done
}

func (d *desk) status() ledger.Status {
	d.t.Helper()
	s, err := d.ledger.Reads.Campaign(d.t.Context(), "c")
	stage.Must(d.t, err)
	return s
}

// ledgers runs a test on ledgers of a node with a gate beside them: see kinds.
func ledgers(t *testing.T, test func(t *testing.T, name string)) {
	for _, kind := range kinds(t) {
		t.Run(kind, func(t *testing.T) { test(t, services.Ledgers[kind](t)) })
	}
}

// TestF05AnEmptiedRedisIsRebuiltFromTheLedger has five recorded coupons, one of them voided, a dead letter, and four coupons that only Redis had.
func TestF05AnEmptiedRedisIsRebuiltFromTheLedger(t *testing.T) {
	ledgers(t, func(t *testing.T, name string) {
		d := newDesk(t, services.Redis.Database(t), name, nil, "c")
		coupons := d.issue("c", people("user-", 10)...)
		d.settle(d.record(coupons[:5]...))
		d.bury(coupons[5])
		d.reaches("c", stage.Err(d.ledger.Campaigns.Void(t.Context(), "op", "c", 2, "a trial")))
		d.do("FLUSHALL")
		d.needs(gate.ErrGone)

		done := d.rebuilt(d.rebuilder())
		// The highest number in the ledger is 6, and 96 coupons more may be in force since the void.
		if want := (recovery.Rebuilt{Campaign: "c", Epoch: 2, Lost: 96, Took: done.Took}); done != want {
			t.Errorf("the rebuild says %+v, want %+v", done, want)
		}
		stage.Same(t, "who has a coupon, whose coupon is a dead letter, whose is voided, and whose is lost",
			[]string{"already_issued:1", "already_issued:6", "issued:103", "issued:104"}, d.claims("user-0", "user-5", "user-1", "user-6"))
		rest := d.claims(people("late-", 100)...)
		stage.Same(t, "the last coupon", "issued:197", rest[92]) // 100 in force: 4 and 1 and 2 and 93
		stage.Same(t, "and then", "sold_out:0", rest[93])
		if s := d.status(); s.Epoch != 2 || s.Applied != s.Version {
			t.Errorf("the campaign is %+v", s)
		}
		if made, err := d.remote.gate.recovery.Created(t.Context(), "c"); !made || err != nil {
			t.Errorf("the gate knows of the campaign's id: %v, %v", made, err)
		}
		for _, c := range coupons[6:] {
			if drained, err := d.ledger.Recorder.Record(t.Context(), batch(c)); err != nil || drained.Lost != 1 {
				t.Errorf("number %d, which is lost, is recorded late: %+v, %v", c.Number, drained, err)
			}
		}
		drained, err := d.ledger.Recorder.Record(t.Context(), batch(coupons[:6]...))
		if err != nil || drained.Lost != 0 || len(drained.Letters) != 1 {
			t.Errorf("what is known is given late: %+v, %v", drained, err)
		}
		if left := d.keys("c"); len(left) != 3 {
			t.Errorf("the campaign's keys are %v", left)
		}
	})
}

// TestF01ARedisThatRestartedLosesNothing ends Redis with coupons and garbage in its journal. If Redis syncs before it answers, it is killed, and the epoch
// continues. Otherwise the coupons in its file are recorded, and a new epoch begins.
func TestF01ARedisThatRestartedLosesNothing(t *testing.T) {
	for sync, next := range map[string]string{"always": "issued:11", "everysec": "issued:101"} {
		t.Run(sync, func(t *testing.T) {
			t.Parallel()
			server := services.Redis.Server(t, "--appendfsync", sync)
			d := newDesk(t, server.URL(), services.Ledgers[services.SQLite](t), nil, "c")
			r := d.watch()
			before := d.issue("c", people("user-", 10)...)
			d.settle(d.record(before[:3]...))
			d.do("XADD", d.key("journal"), "*", "format", "1", "users", "nobody can read this")
			end := server.Kill
			if sync != "always" { // a kill could lose data that Redis has not written yet
				end = server.Stop
			}
			stage.Must(t, end())
			stage.Must(t, server.Restart(t.Context()))
			d.decides(r)
			var want []string
			for n := range before {
				want = append(want, fmt.Sprint("already_issued:", n+1))
			}
			stage.Same(t, "those who had coupons, and the next one", append(want, next), d.claims(append(people("user-", 10), "new")...))
		})
	}
}

// A lateWatch is a gate that hides the restart of its server until the campaign has been checked.
type lateWatch struct {
	recovery.Gate
	before []recovery.Run
	looked atomic.Bool
}

func (g *lateWatch) Runs(ctx context.Context) ([]recovery.Run, error) {
	if g.looked.Load() {
		return g.Gate.Runs(ctx)
	}
	return g.before, nil
}

func (g *lateWatch) GateState(ctx context.Context, r gate.Revision) (recovery.GateState, error) {
	defer g.looked.Store(true)
	return g.Gate.GateState(ctx, r)
}

// TestF01ARestartBetweenTwoLooksIsVerified kills and restarts a Redis that syncs before it answers. A node checks the campaign before it has seen the
// restart.
func TestF01ARestartBetweenTwoLooksIsVerified(t *testing.T) {
	server := services.Redis.Server(t, "--appendfsync", "always")
	d := newDesk(t, server.URL(), services.Ledgers[services.SQLite](t), nil, "c")
	before, err := d.remote.gate.recovery.Runs(t.Context())
	stage.Must(t, err)
	stage.Must(t, d.ledger.Epochs.SeeRun(t.Context(), before[0]))
	d.issue("c", people("user-", 10)...)
	stage.Must(t, server.Kill())
	stage.Must(t, server.Restart(t.Context()))
	r := recovery.New(d.ledger.Recorder, d.ledger.Epochs, &lateWatch{Gate: d.remote.gate.recovery, before: before}, recovery.NewWatch(nil), nil)
	stage.Run(t, r.Run)
	r.Suspect("c", gate.ErrUnverified)
	d.decides(r)
	stage.Same(t, "the last one who had a coupon, and the next one", []string{"already_issued:10", "issued:11"}, d.claims("user-9", "new"))
}

// watch runs a rebuilder, and returns when it has seen the gate's server.
func (d *desk) watch() *recovery.Machine {
	d.t.Helper()
	r := d.rebuilder()
	stage.Run(d.t, r.Run)
	runs, err := d.remote.gate.recovery.Runs(d.t.Context())
	stage.Must(d.t, err)
	stage.Await(d.t, "a note of the server's run", 1, func() (seen int) {
		stage.Must(d.t, services.Beside(d.t, d.name).QueryRow(`SELECT count(*) FROM gate_runs WHERE run = '`+runs[0].ID+`'`).Scan(&seen))
		return seen
	})
	return r
}

// decides waits until a rebuilder has verified or rebuilt the gate, and returns its counters, without those of attempts: on a busy machine an attempt may
// fail because Redis or the ledger does not answer in time, and another attempt follows.
func (d *desk) decides(r *recovery.Machine) recovery.Stats {
	d.t.Helper()
	var s recovery.Stats
	stage.Await(d.t, "a gate that decides", true, func() bool {
		s = r.Stats()
		return s.Finished+s.Verified > 0 && s.Broken == 0
	})
	return recovery.Stats{Verified: s.Verified, Finished: s.Finished, Lost: s.Lost}
}

// TestF02F03APromotedReplicaThatLaggedIsRebuilt cuts a replica off after ten coupons, and promotes it after ten more. The ledger has coupons 1 to 5 and 11
// to 15. The old primary continues to issue to clients that still reach it.
func TestF02F03APromotedReplicaThatLaggedIsRebuilt(t *testing.T) {
	p := services.RedisPair(t, "--appendfsync", "always")
	primary, replica := p.Primary, p.Replica
	proxy := services.Through(t, primary.Address())
	at, err := proxy.URL(primary.URL())
	stage.Must(t, err)
	d := newDesk(t, at, services.Ledgers[services.SQLite](t), nil, "c")
	to := func(server *services.Server, words ...string) string {
		answer, err := askRedis(server.URL(), words...)
		if err != nil && !rueidis.IsRedisNil(err) {
			t.Fatal(err)
		}
		text, _ := answer.ToString()
		return text
	}
	r := d.watch()
	first := d.issue("c", people("user-", 10)...)
	stage.Await(t, "the ten coupons at the replica", "10", func() string { return to(replica, "HGET", d.key("campaign"), "last_number") })
	to(replica, "REPLICAOF", "NO", "ONE")
	second := d.issue("c", people("more-", 10)...)
	d.settle(d.record(append(first[:5:5], second[:5]...)...))
	old := &desk{node: &node{remote: newRemoteGate(d.base, links{gate: servingRedis(d.opened(primary.URL()))}, recovery.NewWatch(nil))}, t: t}

	proxy.Cut() // before the promotion, so that no rebuild at the replica is cut off
	proxy.SetUpstream(replica.Address())
	proxy.Heal()
	if got := d.decides(r); got.Verified != 0 || got.Finished != 1 {
		t.Errorf("%+v", got)
	}
	stage.Same(t, "those whose coupons the ledger or the replica's journal has", []string{"already_issued:1", "already_issued:10", "already_issued:11", "already_issued:15"},
		d.claims("user-0", "user-9", "more-0", "more-4"))
	stage.Same(t, "those whose coupons are lost", []string{"issued:106", "issued:107"}, d.claims("more-5", "more-9"))

	late := old.issue("c", people("late-", 3)...) // F03: behind the partition
	drained, err := d.ledger.Recorder.Record(t.Context(), batch(append(second, late...)...))
	if err != nil || drained.Lost != 8 {
		t.Errorf("what the old primary gave is recorded late: %+v, %v", drained, err)
	}
	stage.Same(t, "the ledger", []int64{15, 2}, []int64{d.status().Issued, d.status().Epoch})
	stage.Same(t, "all that is left", []string{"issued:190", "sold_out:0"}, d.claims(people("rest-", 90)...)[82:84])
	if _, err := d.ledger.Campaigns.Void(t.Context(), "op", "c", 16, "it is lost"); !errors.Is(err, firstcome.ErrNoCoupon) {
		t.Errorf("a lost number is voided: %v", err)
	}
}

// key returns the name of one of the keys of the campaign c.
func (d *desk) key(name string) string {
	d.t.Helper()
	any := d.keys("c")[0]
	return any[:strings.Index(any, "}:")+2] + name
}

// TestF05ARedisThatLostItsNameWaitsForAPerson runs a node that checks a Redis repeatedly. The Redis was emptied before the first check, or during one.
func TestF05ARedisThatLostItsNameWaitsForAPerson(t *testing.T) {
	t.Parallel()
	t.Run("before", func(t *testing.T) { waitsForAPerson(t, true) })
	t.Run("meanwhile", func(t *testing.T) { waitsForAPerson(t, false) })
}

func waitsForAPerson(t *testing.T, before bool) {
	d := newDesk(t, services.Redis.Database(t), services.Ledgers[services.SQLite](t), nil, "c")
	d.settle(d.record(d.issue("c", people("user-", 3)...)...))
	empty := sync.OnceFunc(func() {
		if _, err := askRedis(d.url, "FLUSHALL"); err != nil {
			t.Error(err)
		}
	})
	if before {
		empty()
	}
	slow := &slowMaker{Gate: d.remote.gate.recovery, making: empty, made: func() {}}
	r := recovery.New(d.ledger.Recorder, d.ledger.Epochs, slow, recovery.NewWatch(nil), nil)
	stage.Run(t, r.Run)
	r.Suspect("c", gate.ErrUnverified) // like a claim
	stage.Await(t, "the gate that is broken", 1, func() int { return r.Stats().Broken })
	looks := slow.looks.Load()
	stage.Await(t, "two more looks", true, func() bool { return slow.looks.Load() > looks+2 })
	if s := r.Stats(); s.Begun != 0 || s.Broken != 1 || d.status().Epoch != 1 {
		t.Errorf("nobody has said that this is the Redis, and the node %+v", s)
	}
	if done := d.rebuilt(r); done.Epoch != 2 {
		t.Errorf("a person said so: %+v", done)
	}
}

// A slowMaker is a gate that calls functions before and after it is asked about a campaign.
type slowMaker struct {
	recovery.Gate
	looks        atomic.Int64 // number of checks that have begun
	making, made func()
}

func (g *slowMaker) Runs(ctx context.Context) ([]recovery.Run, error) {
	g.looks.Add(1)
	return g.Gate.Runs(ctx)
}

func (g *slowMaker) Inspect(ctx context.Context, r gate.Revision) error {
	g.making()
	err := g.Gate.Inspect(ctx, r)
	g.made()
	return err
}

// TestF20ACampaignThatIsBeingMadeIsNotTakenForLost lets a node check a campaign which the ledger has and the gate does not have yet. The campaign is
// created at the gate after the check, before the node acts on it.
func TestF20ACampaignThatIsBeingMadeIsNotTakenForLost(t *testing.T) {
	ledgers(t, func(t *testing.T, name string) {
		d := newDesk(t, services.Redis.Database(t), name, nil)
		stage.Must(t, d.ledger.Campaigns.Create(t.Context(), "test", "c", stage.Terms(100)))
		g := &slowMaker{Gate: d.remote.gate.recovery, making: func() {}, made: sync.OnceFunc(func() { d.reaches("c", nil) })}
		r := recovery.New(d.ledger.Recorder, d.ledger.Epochs, g, recovery.NewWatch(nil), nil)
		stop := stage.Run(t, r.Run)
		stage.Await(t, "two looks at the least", true, func() bool {
			r.Suspect("c", gate.ErrUnverified)
			return g.looks.Load() > 2
		})
		if _, err := r.Rebuild(t.Context(), "op", "c", recovery.Order{IfLost: true}); !errors.Is(err, firstcome.ErrBusy) {
			t.Errorf("a rebuild if lost returns %v", err)
		}
		stop()
		g.made()
		if s := d.status(); s.Epoch != 1 || r.Stats().Begun != 0 {
			t.Errorf("%d rebuilds have begun, the campaign is %+v", r.Stats().Begun, s)
		}
		stage.Same(t, "the first claim", []string{"issued:1"}, d.claims("a"))
	})
}

// TestF05ACampaignThatIssuedBeforeTheLedgerKnewThatItWasMadeIsRebuilt lets a node die after it has created a campaign at the gate, before the ledger notes
// this. Other nodes issue and record. Then Redis is emptied. If the campaign were created again, the gate would assign the same numbers again.
func TestF05ACampaignThatIssuedBeforeTheLedgerKnewThatItWasMadeIsRebuilt(t *testing.T) {
	ledgers(t, func(t *testing.T, name string) {
		d := newDesk(t, services.Redis.Database(t), name, nil)
		stage.Must(t, d.ledger.Campaigns.Create(t.Context(), "test", "c", stage.Terms(100)))
		pending, err := d.ledger.Campaigns.Pending(t.Context(), "c")
		stage.Must(t, err)
		stage.Must(t, stage.Err(d.remote.gate.Apply(t.Context(), pending[0])))
		d.settle(d.record(d.issue("c", people("user-", 3)...)...))
		d.do("FLUSHALL")
		stage.Must(t, d.remote.gate.recovery.Rename(t.Context()))
		over := &gate.Router{Gate: d.remote.gate, Retired: d.ledger.Gate, Ledger: d.ledger.Recorder}
		if err := gate.NewChanger(d.ledger.Campaigns, over, nil).Finish(t.Context(), "c", 0); !errors.Is(err, gate.ErrGone) {
			t.Errorf("who brings the change to the gate hears %v", err)
		}
		stage.Must(t, stage.Err(d.rebuilder().Rebuild(t.Context(), "op", "c", recovery.Order{IfLost: true})))
		stage.Same(t, "who has a coupon, and the next one", []string{"already_issued:1", "already_issued:3", "issued:101"}, d.claims("user-0", "user-2", "new"))
	})
}
