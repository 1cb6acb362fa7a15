package ledger_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/flow"
	"github.com/firstcome/firstcome/internal/ledger"
)

func TestACampaignIsRetiredAWeekAfterItsEndAndForgottenAMinuteLater(t *testing.T) {
	onEach(t, func(t *testing.T, name string) {
		s := newSeason(t, name)
		s.pass(2 * week)
		s.look("while it is open", false, false)
		s.close()
		s.pass(week - time.Microsecond)
		s.look("the instant before", false, false)
		s.pass(time.Microsecond)
		s.look("a week after it was closed", true, false)
		s.pass(minute - time.Microsecond)
		s.look("while a recorder may be at it", true, false)
		s.pass(time.Microsecond)
		s.look("a minute later", true, true)
		s.look("and again", true, true)
		same(t, "the gate forgot once", 1, s.gate.forgot)
		same(t, "counted", flow.RetirerStats{Retired: 1, Forgotten: 1}, s.retirer.Stats())
	})
}

func TestACampaignIsRetiredAWeekAfterItsWindowAndDoesNotUnClose(t *testing.T) {
	onEach(t, func(t *testing.T, name string) {
		s := newSeason(t, name)
		if err := s.until(s.now().Add(time.Hour)); err != nil {
			t.Fatal(err)
		}
		s.pass(time.Hour + week - time.Microsecond)
		s.look("the instant before", false, false)
		s.pass(time.Microsecond)
		s.look("a week after its window", true, false)
		s.pass(minute)
		s.look("a minute later", true, true)
		s.pass(-week - time.Hour)
		same(t, "after the clock went back", []string{"closed:0"}, s.answers("somebody"))
		if err := s.until(opening.Add(3 * week)); !errors.Is(err, firstcome.ErrClosed) {
			t.Errorf("its window was opened again: %v", err)
		}
	})
}

func TestWhatIsUnderWayKeepsACampaignAtItsGate(t *testing.T) {
	for what, do := range map[string]func(t *testing.T, s *season) (undo func()){
		"a number that is not drained": func(_ *testing.T, s *season) func() {
			s.gate.issue(1)
			return func() { s.gate.record(s.a.Ledger) }
		},
		"an open dead letter": func(t *testing.T, s *season) func() {
			s.gate.issue(1)
			letter := s.gate.Course("c").Journal[0]
			bury(t, s.a.Ledger, "refused", letter)
			return func() {
				if _, err := s.a.VoidLetter(t.Context(), "test", letters(t, s.a.Ledger, ledger.Letters{})[0].ID, "test"); err != nil {
					t.Fatal(err)
				}
				finish(t, s.a, 0)
			}
		},
		"a change on its way": func(t *testing.T, s *season) func() {
			s.void(1)
			return func() { finish(t, s.a, 0) }
		},
		"a gate that is seen at another version": func(_ *testing.T, s *season) func() {
			s.gate.behind = 1
			return func() { s.gate.behind = 0 }
		},
		"a gate of another epoch": func(_ *testing.T, s *season) func() {
			s.gate.epoch = 2
			return func() { s.gate.epoch = 1 }
		},
		"a gate whose clock is late": func(_ *testing.T, s *season) func() {
			s.gate.late = time.Second
			return func() { s.gate.late = 0 }
		},
	} {
		t.Run(what, func(t *testing.T) {
			onEach(t, func(t *testing.T, name string) {
				s := newSeason(t, name)
				undo := do(t, s)
				if what != "a change on its way" {
					s.close()
				} else if _, err := beside(t, name).Exec(`UPDATE campaigns SET closes_at = 1`); err != nil {
					t.Fatal(err)
				}
				s.pass(week)
				s.look("under way", false, false)
				undo()
				s.look("done", true, false)
			})
		})
	}
}

// TestAChangeBetweenTheLookAtTheGateAndTheLedgerKeepsACampaign holds the two steps
// of retiring apart: what was seen of the gate is old when the ledger decides.
func TestAChangeBetweenTheLookAtTheGateAndTheLedgerKeepsACampaign(t *testing.T) {
	for what, change := range map[string]func(s *season) error{
		"opened again": func(s *season) error { return s.until(s.now().Add(time.Hour)) },
		"voided": func(s *season) error {
			s.void(2)
			return s.b.Finish(context.Background(), "c", 0)
		},
		"closed by an operator too": func(s *season) error {
			s.close()
			return nil
		},
	} {
		t.Run(what, func(t *testing.T) {
			onEach(t, func(t *testing.T, name string) {
				s := newSeason(t, name)
				if err := s.until(s.now().Add(time.Hour)); err != nil {
					t.Fatal(err)
				}
				s.pass(2 * week)
				seen, err := s.gate.State(t.Context(), "c")
				if err != nil {
					t.Fatal(err)
				}
				if err := change(s); err != nil {
					t.Fatal(err)
				}
				retired, err := s.a.Retire(t.Context(), "c", seen, week)
				if err != nil || retired {
					t.Errorf("retired: %v, %v", retired, err)
				}
				s.expect("by what was seen before", false, false)
			})
		})
	}
}

// TestANodeMayDieBetweenAnyTwoStepsOfRetiring stops node a behind each step; another
// node, or a itself, looks later.
func TestANodeMayDieBetweenAnyTwoStepsOfRetiring(t *testing.T) {
	onEach(t, func(t *testing.T, name string) {
		s := newSeason(t, name)
		s.close()
		s.pass(week)
		s.look("marked, and dead", true, false)

		same(t, "the gate answers", []string{"already_issued:1", "closed:0"}, s.answers("user-1", "somebody"))
		s.void(1)
		finish(t, s.b, 0)
		same(t, "a void reaches the gate while it knows the campaign", []string{"closed:0"}, s.answers("user-1"))

		s.pass(minute)
		s.gate.fails = errors.New("the reply was lost")
		if err := s.retirer.Look(t.Context()); err == nil {
			t.Error("the lost reply was not told")
		}
		s.expect("deleted, and dead", true, true)
		same(t, "failed", int64(1), s.retirer.Stats().Failed)

		s.retirer = flow.NewRetirer(s.b, s.gate, 0, nil)
		s.look("another node deletes again", true, true)
		s.look("and no more", true, true)
		same(t, "the gate was told", 2, s.gate.forgot)
		same(t, "the ledger answers", []string{"closed:0", "already_issued:2"}, s.answers("user-1", "user-2"))
	})
}

func TestNodesThatRetireAtOnceDoItOnce(t *testing.T) {
	onEach(t, func(t *testing.T, name string) {
		s := newSeason(t, name)
		s.close()
		s.pass(week)
		seen, err := s.gate.State(t.Context(), "c")
		if err != nil {
			t.Fatal(err)
		}
		var all sync.WaitGroup
		for _, n := range []node{s.a, s.b, s.a, s.b} {
			all.Go(func() {
				if retired, err := n.Retire(context.Background(), "c", seen, week); err != nil || !retired {
					t.Errorf("retired: %v, %v", retired, err)
				}
			})
		}
		all.Wait()
		log, err := s.a.AuditLog(t.Context(), ledger.LogFilter{Campaign: "c", Limit: 100})
		if err != nil {
			t.Fatal(err)
		}
		retired := 0
		for _, line := range log {
			if line.Action == "campaign.retire" {
				retired++
			}
		}
		same(t, "lines in the audit log", 1, retired)
	})
}

// TestTheLedgerTakesWhatTheGateKeptOfACampaignsCourse has other instants at the gate than the ledger's own of the close.
func TestTheLedgerTakesWhatTheGateKeptOfACampaignsCourse(t *testing.T) {
	onEach(t, func(t *testing.T, name string) {
		s := newSeason(t, name)
		kept := firstcome.Instants{
			OpenedAt: opening.Add(time.Microsecond), SoldOutAt: opening.Add(2 * time.Microsecond), ClosedAt: opening.Add(3 * time.Microsecond),
		}
		s.gate.instants = kept
		s.forgotten()
		says := func(what string, want firstcome.Instants) {
			t.Helper()
			state, err := s.over.State(t.Context(), "c")
			if err != nil {
				t.Fatal(err)
			}
			status, err := s.b.Campaign(t.Context(), "c")
			if err != nil {
				t.Fatal(err)
			}
			same(t, what, []firstcome.Instants{want, want}, []firstcome.Instants{state.Instants, status.Instants})
		}
		says("as the gate did", kept)
		decisions, err := s.over.Claim(t.Context(), "c", []firstcome.UserID{"user-9"})
		if err != nil || !decisions[0].Since.Equal(kept.ClosedAt) {
			t.Errorf("a refusal says %+v, %v", decisions, err)
		}
		s.void(2)
		kept.SoldOutAt = time.Time{}
		says("when stock came back", kept)
	})
}

func TestTheLedgerAnswersForAForgottenCampaignAsTheGateDid(t *testing.T) {
	onEach(t, func(t *testing.T, name string) {
		s := newSeason(t, name)
		ctx := t.Context()
		s.forgotten()
		same(t, "claims", []string{"already_issued:2", "closed:0", "already_issued:3", "closed:0"}, s.answers("user-2", "user-9", "user-3", "user-9"))
		holders := map[firstcome.UserID]bool{}
		version, err := s.over.Holders(ctx, "c", func(user firstcome.UserID) { holders[user] = true })
		if err != nil {
			t.Fatal(err)
		}
		same(t, "holders", map[firstcome.UserID]bool{"user-1": true, "user-2": true, "user-3": true}, holders)
		same(t, "their version", int64(2), version)
		state, err := s.over.State(ctx, "c")
		if err != nil {
			t.Fatal(err)
		}
		same(t, "state", flow.GateState{Version: 2, Epoch: 1, InForce: 3, Issued: 3, LastNumber: 3, DrainedThrough: 3, Now: s.now()}, state)
		through, err := s.over.DrainedThrough(ctx, "c")
		if err != nil || through != 3 {
			t.Errorf("drained through %d, %v", through, err)
		}
		c, err := s.over.CouponOf(ctx, "c", "user-2")
		if err != nil || c.Number != 2 || !c.Recorded || c.Code != secret(t).Code("c", 2) {
			t.Errorf("the coupon: %+v, %v", c, err)
		}
		if _, err := s.over.CouponOf(ctx, "c", "user-9"); !errors.Is(err, firstcome.ErrNoCoupon) {
			t.Errorf("nobody's coupon: %v", err)
		}
	})
}

func TestAForgottenCampaignsCouponsAreVoidedAndNothingElseOfItChanges(t *testing.T) {
	onEach(t, func(t *testing.T, name string) {
		s := newSeason(t, name)
		ctx := t.Context()
		s.forgotten()
		s.void(2)
		finish(t, s.b, 0)
		same(t, "claims", []string{"closed:0", "already_issued:3"}, s.answers("user-2", "user-3"))
		if _, err := s.b.Void(ctx, "test", "c", 2, "twice"); !errors.Is(err, firstcome.ErrAlreadyVoided) {
			t.Errorf("voided twice: %v", err)
		}
		for _, to := range []ledger.Switch{ledger.Pause, ledger.Resume} {
			if _, err := s.a.Switch(ctx, "test", "c", to); !errors.Is(err, firstcome.ErrClosed) {
				t.Errorf("%s: %v", to, err)
			}
		}
		if err := s.until(s.now().Add(time.Hour)); !errors.Is(err, firstcome.ErrClosed) {
			t.Errorf("terms: %v", err)
		}
		status, err := s.a.Campaign(ctx, "c")
		if err != nil {
			t.Fatal(err)
		}
		same(t, "in force, version, applied", []int64{2, 3, 3}, []int64{status.InForce, status.Version, status.Applied})
		same(t, "the gate was not made again", []bool{true, true}, []bool{s.gate.Course("c").Gone, s.gate.Course("c").Version == 2})
	})
}

// TestAVoidThatIsOnItsWayWhenTheGateForgetsIsDone has the keys deleted between the
// void's step in the ledger and that at the gate.
func TestAVoidThatIsOnItsWayWhenTheGateForgetsIsDone(t *testing.T) {
	onEach(t, func(t *testing.T, name string) {
		s := newSeason(t, name)
		s.close()
		s.pass(week)
		s.look("retired", true, false)
		s.void(3)
		s.pass(minute)
		s.look("forgotten", true, true)
		finish(t, s.b, 0)
		same(t, "claims", []string{"closed:0"}, s.answers("user-3"))
		same(t, "pending", 0, len(pendingAll(t, s.a)))
	})
}

func TestAGateThatLostACampaignWhichIsNotRetiredIsNotAnsweredFor(t *testing.T) {
	onEach(t, func(t *testing.T, name string) {
		s := newSeason(t, name)
		ctx := t.Context()
		s.close()
		s.void(1)
		s.gate.Course("c").Gone = true
		_, claimed := s.over.Claim(ctx, "c", []firstcome.UserID{"user-1"})
		_, held := s.over.Holders(ctx, "c", func(firstcome.UserID) { t.Error("a holder") })
		_, applied := s.over.Apply(ctx, pendingOf(t, s.a))
		_, state := s.over.State(ctx, "c")
		_, coupon := s.over.CouponOf(ctx, "c", "user-2")
		_, drained := s.over.DrainedThrough(ctx, "c")
		_, decided := s.a.ClaimRetired(ctx, "c", []firstcome.UserID{"user-2"})
		for what, err := range map[string]error{
			"a claim": claimed, "holders": held, "a change": applied, "the state": state, "a coupon": coupon, "drained": drained,
			"the ledger's decision": decided, "forgotten": s.a.Forgotten(ctx, "c"),
		} {
			if !errors.Is(err, flow.ErrLost) {
				t.Errorf("%s: %v", what, err)
			}
		}
		if _, err := s.over.Claim(ctx, "nowhere", []firstcome.UserID{"user-1"}); !errors.Is(err, firstcome.ErrNoCampaign) {
			t.Errorf("no campaign: %v", err)
		}
	})
}

// TestAChangeThatTheGateHasAndTheLedgerDoesNotKnowOfKeepsACampaign has a node die
// behind the gate's step of a void.
func TestAChangeThatTheGateHasAndTheLedgerDoesNotKnowOfKeepsACampaign(t *testing.T) {
	onEach(t, func(t *testing.T, name string) {
		s := newSeason(t, name)
		s.close()
		s.pass(week)
		s.void(1)
		if _, err := s.gate.Apply(t.Context(), pendingOf(t, s.a)); err != nil {
			t.Fatal(err)
		}
		seen, err := s.gate.State(t.Context(), "c")
		if err != nil {
			t.Fatal(err)
		}
		if retired, err := s.a.Retire(t.Context(), "c", seen, week); err != nil || retired {
			t.Errorf("retired: %v, %v", retired, err)
		}
		finish(t, s.b, 0)
		s.look("it is noted", true, false)
	})
}
