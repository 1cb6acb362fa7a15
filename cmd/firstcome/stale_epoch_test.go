//go:build !check

package main

import (
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/gate"
	"github.com/firstcome/firstcome/internal/issue"
	"github.com/firstcome/firstcome/internal/ledger"
	"github.com/firstcome/firstcome/internal/record"
	"github.com/firstcome/firstcome/internal/recovery"
	"github.com/firstcome/firstcome/internal/redis"
	"github.com/firstcome/firstcome/test/services"
	"github.com/firstcome/firstcome/test/stage"
)

// A leadBack is a desk with an address that led from a primary, which issued numbers 1 to 3, to its replica. The replica was promoted and rebuilt, and
// issued the first number of epoch 2. Then the address leads back to the primary, which has not stopped.
type leadBack struct {
	*desk
	pair  *services.Pair
	proxy *services.Proxy

	gate    *redis.Redis // as a node has it
	rebuild *recovery.Machine
	over    *gate.Router
	mu      sync.Mutex // guards told
	told    []error
}

// newLeadBack returns a leadBack with an address that leads to the promoted replica. No node checks the gate yet.
func newLeadBack(t *testing.T, name string, answer firstcome.AnswerWhen) *leadBack {
	t.Helper()
	p := services.RedisPair(t)
	proxy := services.Through(t, p.Primary.Address())
	at, err := proxy.URL(p.Primary.URL())
	stage.Must(t, err)
	l := &leadBack{desk: newDesk(t, at, name, nil), pair: p, proxy: proxy}
	terms := stage.Terms(100)
	terms.Answer = answer
	l.reaches("c", l.ledger.Campaigns.Create(t.Context(), "test", "c", terms))
	l.gate = l.opens(at)
	l.rebuild = recovery.New(l.ledger.Recorder, l.ledger.Epochs, l.gate.Recovery, recovery.NewWatch(func(err error) {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.told = append(l.told, err)
	}), nil)
	l.over = &gate.Router{Gate: l.gate.AsGate(), Retired: l.ledger.Gate, Ledger: l.ledger.Recorder, Watch: l.rebuild}
	l.kept(people("user-", 3)...)
	stage.Must(t, p.Follow(t.Context())) // it has all writes
	stage.Must(t, p.Promote(t.Context()))
	l.leads(p.Primary)
	stage.Same(t, "the epoch of the promoted replica", int64(2), l.rebuilt(l.rebuild).Epoch)
	stage.Same(t, "the first number of its epoch", []string{"issued:101"}, l.claims("new"))
	return l
}

// opens returns a gate as a node opens it.
func (l *leadBack) opens(at string) *redis.Redis {
	l.t.Helper()
	gate, err := redis.Open(l.t.Context(), redis.Options{
		URL: at, Secret: stage.Secret(), Ledger: l.ledger.Identity, CampaignUID: l.campaignUID, OnUnknown: l.missing,
		Noted: func(id firstcome.CampaignID) gate.Revision { return l.rebuild.Noted(id) },
	})
	stage.Must(l.t, err)
	l.t.Cleanup(gate.Close)
	return gate
}

// leads makes the address lead to a server.
func (l *leadBack) leads(to *services.Server) {
	l.proxy.Cut()
	l.proxy.SetUpstream(to.Address())
	l.proxy.Heal()
	there, err := l.opened(to.URL()).Recovery.Runs(l.t.Context())
	stage.Must(l.t, err)
	for _, gate := range []*redis.Redis{l.far, l.gate} {
		stage.Await(l.t, "an answer of the server on each connection", true, func() bool {
			for range 30 { // the client chooses among several connections
				if stage.Err(gate.Gate.State(l.t.Context(), "c")) != nil {
					return false
				}
			}
			runs, err := gate.Recovery.Runs(l.t.Context())
			return err == nil && runs[0].ID == there[0].ID
		})
	}
}

// back makes the address lead back to the primary of epoch 1.
func (l *leadBack) back() { l.leads(l.pair.Replica) }

// refused returns the calls that fail at a gate in a stale epoch, by name.
func (l *leadBack) refused() map[string]func() error {
	t := l.t
	return map[string]func() error{
		"a claim": func() error { return stage.Err(l.over.Claim(t.Context(), "c", people("late-", 1))) },
		"a direct issue": func() error {
			return stage.Err(l.over.Issue(t.Context(), gate.Order{Actor: "op"}, "c", people("late-", 1)))
		},
		"the line": func() error { return stage.Err(l.over.Serve(t.Context(), "c", 1)) },
		"a change": func() error { return l.rebuild.Newest(t.Context(), "c") },
		"a change from elsewhere": func() error {
			return stage.Err(l.over.Apply(t.Context(), firstcome.Change{Campaign: "c", Version: 9, Kind: firstcome.ChangePause}))
		},
		"a coupon": func() error { return stage.Err(l.over.CouponOf(t.Context(), "c", "user-0")) },
		"a place": func() error {
			_, _, err := l.over.Place(t.Context(), "c", "user-0")
			return err
		},
		"who leaves":  func() error { return stage.Err(l.over.Leave(t.Context(), "c", "user-0")) },
		"the line's":  func() error { return stage.Err(l.over.LineOf(t.Context(), "c")) },
		"a reconcile": func() error { return stage.Err(l.rebuilder().Reconcile(t.Context(), "op", "c")) },
	}
}

// isRefused expects that nothing is done at the gate, and that this was reported once.
func (l *leadBack) isRefused() {
	l.t.Helper()
	for what, try := range l.refused() {
		if err := try(); !errors.Is(err, gate.ErrStaleEpoch) || !strings.Contains(err.Error(), "epoch 1, the ledger in 2") || !strings.Contains(err.Error(), "firstcome gate rebuild c") {
			l.t.Errorf("%s: %v", what, err)
		}
	}
	state, err := l.over.State(l.t.Context(), "c")
	if err != nil || !state.StaleEpoch || state.LedgerRolledBack {
		l.t.Errorf("the gate's state is %+v, %v", state, err)
	}
	stats := l.rebuild.Stats()
	stage.Same(l.t, "of which gates are older ones, ledgers are, gates are broken, and were rebuilt", []int64{1, 0, 0, 1},
		[]int64{int64(stats.StaleEpoch), int64(stats.RolledBack), int64(stats.Broken), stats.Begun})
	l.mu.Lock()
	defer l.mu.Unlock()
	stage.Same(l.t, "how often it was told", 1, len(l.told))
}

// TestF03AGateInAnEpochThatHasEndedIsNoticed makes an address lead back to a primary that a replica has replaced. A node notices this at its next check, and
// no node rebuilds the primary. Then the address leads to the replica again.
func TestF03AGateInAnEpochThatHasEndedIsNoticed(t *testing.T) {
	t.Parallel()
	ledgers(t, func(t *testing.T, name string) {
		l := newLeadBack(t, name, firstcome.Recorded)
		stage.Run(t, l.rebuild.Run)
		stage.Await(t, "the epoch by the ledger", int64(2), func() int64 { return l.rebuild.Noted("c").Epoch })
		l.back()
		stage.Await(t, "a refusal", true, func() bool { return errors.Is(l.rebuild.Refusal("c"), gate.ErrStaleEpoch) })
		before := l.status()
		l.isRefused()
		after := l.status()
		after.Now, after.Clock = before.Now, before.Clock
		stage.Same(t, "the campaign", before, after)
		stage.Same(t, "the last number there", "3", l.last())

		stage.Must(t, l.pair.Replica.Restart(t.Context())) // the epoch stays stale
		l.leads(l.pair.Replica)
		active, err := l.ledger.Recorder.Active(t.Context())
		stage.Must(t, err)
		if err := l.gate.Recovery.Inspect(t.Context(), active[0]); !errors.Is(err, gate.ErrStaleEpoch) { // a rebuild begins with this check
			t.Errorf("behind a restart a look at the gate says %v", err)
		}
		if err := stage.Err(l.over.Claim(t.Context(), "c", people("late-", 1))); !errors.Is(err, gate.ErrStaleEpoch) {
			t.Errorf("behind a restart a claim is answered %v", err)
		}
		l.leads(l.pair.Primary)
		stage.Await(t, "the end of the refusal", nil, func() error { return l.rebuild.Refusal("c") })
		decisions, err := l.over.Claim(t.Context(), "c", people("last-", 1))
		if err != nil || decisions[0].Coupon.Number != 102 {
			t.Errorf("at the promoted one a claim is answered %+v, %v", decisions, err)
		}
		stage.Same(t, "epoch, and rebuilds", []int64{2, 1}, []int64{l.status().Epoch, l.rebuild.Stats().Begun})
	})
}

// last returns the last number that the server at the address has issued.
func (l *leadBack) last() string {
	l.t.Helper()
	number, err := askRedis(l.url, "HGET", l.key("campaign"), "last_number")
	stage.Must(l.t, err)
	text, _ := number.ToString()
	return text
}

// TestF03AClaimSaysWhichEpochIsTheLedgers makes the address lead back between two checks. The script itself issues nothing, because the claim of a node that
// has checked since the epoch ended names the ledger's epoch.
func TestF03AClaimSaysWhichEpochIsTheLedgers(t *testing.T) {
	t.Parallel()
	l := newLeadBack(t, services.Ledgers[services.SQLite](t), firstcome.Recorded)
	l.rebuild.LookBack(t.Context())
	l.back()
	for _, what := range []string{"the line", "a direct issue", "a claim"} {
		stage.Same(t, "what was known before "+what, nil, l.rebuild.Refusal("c"))
		if err := l.refused()[what](); !errors.Is(err, gate.ErrStaleEpoch) {
			t.Errorf("%s is answered %v", what, err)
		}
		if !errors.Is(l.rebuild.Refusal("c"), gate.ErrStaleEpoch) {
			t.Errorf("%s tells nobody", what)
		}
		l.rebuild.Refuse("c", nil)
	}
	stage.Same(t, "the last number there", "3", l.last())
}

// TestF03ANodeThatStartsAtAnOlderGateDecidesNothing starts a node while the address leads back.
func TestF03ANodeThatStartsAtAnOlderGateDecidesNothing(t *testing.T) {
	t.Parallel()
	l := newLeadBack(t, services.Ledgers[services.SQLite](t), firstcome.Recorded)
	l.back()
	l.rebuild.LookBack(t.Context())
	l.isRefused()
}

// TestF03AnOperatorMakesAnOlderGateTheGate orders a rebuild at the old primary, in each possible way. Then the promoted replica has the stale epoch.
func TestF03AnOperatorMakesAnOlderGateTheGate(t *testing.T) {
	t.Parallel()
	for name, ifLost := range map[string]bool{"of one campaign": false, "of all, or by a page": true} {
		t.Run(name, func(t *testing.T) {
			l := newLeadBack(t, services.Ledgers[services.SQLite](t), firstcome.Recorded)
			l.back()
			l.rebuild.LookBack(t.Context())
			done, err := l.rebuild.Rebuild(t.Context(), "op", "c", recovery.Order{IfLost: ifLost})
			if err != nil || done.Epoch != 3 || done.Lost != 97 { // 101 to 197: the promoted replica may have issued them
				t.Fatalf("the rebuild comes to %+v, %v", done, err)
			}
			stage.Same(t, "what is known then", nil, l.rebuild.Refusal("c"))
			decisions, err := l.over.Claim(t.Context(), "c", []firstcome.UserID{"user-0", "new"})
			if err != nil || decisions[0].Coupon.Number != 1 || decisions[1].Coupon.Number != 198 {
				t.Errorf("claims are answered %+v, %v", decisions, err)
			}
			l.leads(l.pair.Primary)
			l.rebuild.LookBack(t.Context())
			if err := stage.Err(l.over.Claim(t.Context(), "c", people("late-", 1))); !errors.Is(err, gate.ErrStaleEpoch) || !strings.Contains(err.Error(), "epoch 2, the ledger in 3") {
				t.Errorf("at the promoted one a claim is answered %v", err)
			}
		})
	}
}

// TestF03WhatAnOlderGateGaveIsLostAndFoundByItsUser lets the old primary answer two users, one of them twice, before a node notices. A recorder brings these
// coupons to the ledger. The ledger refuses them, and notes once whose they were, and the recorder causes a check of the gate.
func TestF03WhatAnOlderGateGaveIsLostAndFoundByItsUser(t *testing.T) {
	t.Parallel()
	ledgers(t, func(t *testing.T, name string) {
		l := newLeadBack(t, name, firstcome.Decided)
		l.back()
		l.far = l.opened(l.url)
		l.remote.gate = servingRedis(l.far)
		given := l.issue("c", "late-0", "late-1", "late-0") // by a node that does not know of the new epoch yet
		stage.Same(t, "numbers that were answered", []int64{4, 5, 4}, []int64{given[0].Number, given[1].Number, given[2].Number})
		again := l.journalled()
		alarms := make(stage.Alarms, 100)
		var looks atomic.Int64
		active := func(ctx context.Context) ([]gate.Revision, error) {
			looks.Add(1)
			return l.ledger.Recorder.Active(ctx)
		}
		journal := l.far.Journal.Consumer(redis.ConsumerOptions{Active: active, Sweep: 10 * time.Millisecond, Idle: 60 * time.Millisecond, OnAlarm: alarms.Raise})
		recorder := record.NewRecorder(journal, l.rebuild.Guard(l.ledger.Recorder), record.Options{Holes: l.remote.gate.journal, OnAlarm: alarms.Raise})
		stop := stage.Run(t, recorder.Run)
		stage.Await(t, "a refusal", true, func() bool { return errors.Is(l.rebuild.Refusal("c"), gate.ErrStaleEpoch) })
		stage.Await(t, "the end of its journal", 0, func() int { return len(l.journalled()) })
		if len(again) != 1 {
			t.Errorf("%d entries were there", len(again))
		}
		late := recorder.Stats().Late
		looked := looks.Load()
		stage.Await(t, "more looks", true, func() bool { return looks.Load() >= looked+10 })
		stop()
		stage.Same(t, "how many coupons were late, all in all", []int64{2, 2}, []int64{late, recorder.Stats().Late})
		if len(alarms) > 0 {
			t.Errorf("an alarm: %v", <-alarms)
		}
		drained, err := l.rebuild.Guard(l.ledger.Recorder).Record(t.Context(), batch(given[:2]...)) // delivery is at least once
		if err != nil || drained.Lost != 2 {
			t.Errorf("given again: %+v, %v", drained, err)
		}
		l.foundBy("late-0", given[0])
		l.foundBy("late-1", given[1])
		if has, err := l.over.Has(t.Context(), "c", given[:2]); err != nil || has[0] || has[1] {
			t.Errorf("whether they are recorded: %v, %v", has, err)
		}
		letters, err := l.ledger.Reads.DeadLetters(t.Context(), ledger.Letters{Limit: 10})
		s := l.status()
		if err != nil || len(letters) > 0 || s.Issued != 3 || s.InForce != 3 {
			t.Errorf("there are %d dead letters, and %d coupons, %d of them in force: %v", len(letters), s.Issued, s.InForce, err)
		}
		l.leads(l.pair.Primary)
		stage.Same(t, "they claim again", []string{"issued:102", "issued:103"}, l.claims("late-0", "late-1"))
	})
}

// foundBy expects that the audit log has one line about the loss of a coupon.
func (l *leadBack) foundBy(user firstcome.UserID, c firstcome.Coupon) {
	l.t.Helper()
	lines, err := l.ledger.Reads.AuditLog(l.t.Context(), ledger.LogFilter{Campaign: "c", User: user, Limit: 10})
	if err != nil || len(lines) != 1 {
		l.t.Fatalf("of %s the audit log has %+v, %v", user, lines, err)
	}
	if e := lines[0]; e.Action != ledger.CouponLost || e.Number != c.Number || !strings.Contains(string(e.Detail), c.Code) || e.Actor != "firstcome" {
		l.t.Errorf("of %s the audit log has %+v: %s", user, e, e.Detail)
	}
}

// TestF03WhoWaitsForTheLedgerIsToldNothingByAnOlderGate claims at the old primary before a node notices. The claim is answered when its coupon is recorded.
func TestF03WhoWaitsForTheLedgerIsToldNothingByAnOlderGate(t *testing.T) {
	t.Parallel()
	l := newLeadBack(t, services.Ledgers[services.SQLite](t), firstcome.Recorded)
	l.back()
	waiter := issue.NewWaiter(l.over)
	issuer := issue.NewIssuer(l.over, issue.Options{})
	journal := l.far.Journal.Consumer(redis.ConsumerOptions{Active: l.ledger.Recorder.Active, Sweep: 10 * time.Millisecond, Idle: 60 * time.Millisecond})
	stage.Run(t, waiter.Run, issuer.Run, record.NewRecorder(journal, l.ledger.Recorder, record.Options{}).Run) // which notifies no waiter
	answers := &issue.Answerer{Issuer: issuer, Coupons: l.over, Waiter: waiter, Terms: l.ledger.Reads.Terms, Wait: 500 * time.Millisecond}
	decision, err := answers.Claim(t.Context(), "c", "late")
	if !errors.Is(err, issue.ErrNotRecordedYet) && !errors.Is(err, issue.ErrUnrecorded) {
		t.Errorf("the claim is answered %+v, %v", decision, err)
	}
	stage.Await(t, "the end of the journal", 0, func() int { return len(l.journalled()) })
	if c, err := answers.CouponOf(t.Context(), "c", "late"); err == nil {
		t.Errorf("asked once more, it is %+v", c)
	}
	stage.Same(t, "the number was given", "4", l.last())
	l.foundBy("late", firstcome.Coupon{Number: 4, Code: stage.Secret().Code("c", 4)})
}

// TestF03ARebuildThatIsCutOffBeforeItsSwitchIsNoOlderGate lets an owner end the epoch in the ledger, and die. The gate is frozen in the epoch before.
func TestF03ARebuildThatIsCutOffBeforeItsSwitchIsNoOlderGate(t *testing.T) {
	d := newDesk(t, services.Redis.Database(t), services.Ledgers[services.SQLite](t), nil, "c")
	d.kept(people("user-", 3)...)
	cut := recovery.New(d.ledger.Recorder, d.ledger.Epochs, unswitched{d.remote.gate.recovery}, recovery.NewWatch(nil), nil)
	if _, err := cut.Rebuild(t.Context(), "op", "c", recovery.Order{}); err == nil {
		t.Fatal("it switched")
	}
	r := d.watch()
	r.Suspect("c", gate.ErrUnverified)
	stage.Same(t, "a rebuild, and the lost numbers", recovery.Stats{Finished: 1, Lost: 97}, d.decides(r))
	stage.Same(t, "the epoch", int64(3), d.status().Epoch)
}

// An unswitched is a gate whose rebuild dies before its switch.
type unswitched struct{ recovery.Gate }

func (unswitched) Replace(context.Context, recovery.Rebuild, recovery.Frozen, recovery.Loaded, recovery.Refill) error {
	return errors.New("cut off")
}
