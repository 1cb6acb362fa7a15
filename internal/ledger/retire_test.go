package ledger_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/gate"
	"github.com/firstcome/firstcome/internal/ledger"
	"github.com/firstcome/firstcome/internal/recovery"
	"github.com/firstcome/firstcome/test/services"
	"github.com/firstcome/firstcome/test/stage"
)

// onSeasons runs a test of a season in each kind of database.
func onSeasons(t *testing.T, test func(t *testing.T, s *season, name string)) {
	onEach(t, func(t *testing.T, name string) { test(t, newSeason(t, name), name) })
}

func TestACampaignIsRetiredAWeekAfterItsEndAndForgottenAMinuteLater(t *testing.T) {
	onSeasons(t, func(t *testing.T, s *season, _ string) {
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
		stage.Same(t, "the gate forgot once", 1, s.forgot)
		stage.Same(t, "counted", recovery.RetirerStats{Retired: 1, Forgotten: 1}, s.retirer.Stats())
	})
}

func TestACampaignIsRetiredAWeekAfterItsWindowAndDoesNotUnClose(t *testing.T) {
	onSeasons(t, func(t *testing.T, s *season, _ string) {
		stage.Must(t, s.until(s.now().Add(time.Hour)))
		s.pass(time.Hour + week - time.Microsecond)
		s.look("the instant before", false, false)
		s.pass(time.Microsecond)
		s.look("a week after its window", true, false)
		s.pass(minute)
		s.look("a minute later", true, true)
		s.pass(-week - time.Hour)
		s.answers("after the clock went back", "closed:0", "somebody")
		if err := s.until(stage.Epoch.Add(3 * week)); !errors.Is(err, firstcome.ErrClosed) {
			t.Errorf("its window was opened again: %v", err)
		}
	})
}

func TestWhatIsUnderWayKeepsACampaignAtItsGate(t *testing.T) {
	tells := func(edit func(*gate.State)) func(*testing.T, *season) func() {
		return func(_ *testing.T, s *season) func() {
			s.tells = edit
			return func() { s.tells = nil }
		}
	}
	for what, do := range map[string]func(t *testing.T, s *season) (undo func()){
		"a number that is not drained": func(_ *testing.T, s *season) func() {
			s.issue(1)
			return s.record
		},
		"an open dead letter": func(t *testing.T, s *season) func() {
			s.issue(1)
			bury(t, s.a.Ledger, "refused", s.Course("c").Journal...)
			return func() {
				stage.Must(t, s.a.Recorder.VoidLetter(t.Context(), "test", letters(t, s.a.Ledger, ledger.Letters{})[0].ID, "test"))
				finish(t, s.a, 0)
			}
		},
		"a change on its way": func(t *testing.T, s *season) func() {
			s.void(1)
			return func() { finish(t, s.a, 0) }
		},
		"a rebuild that has begun": func(t *testing.T, s *season) func() {
			attempt, err := s.a.Epochs.BeginRebuild(t.Context(), "test", "c", 0)
			stage.Must(t, err)
			return func() { stage.Must(t, s.a.Epochs.GiveUpRebuild(t.Context(), attempt)) }
		},
		"a gate that is seen at another version": tells(func(g *gate.State) { g.Version-- }),
		"a gate of another epoch":                tells(func(g *gate.State) { g.Epoch++ }),
		"a gate whose clock is late":             tells(func(g *gate.State) { g.Now = g.Now.Add(-time.Second) }),
	} {
		t.Run(what, func(t *testing.T) {
			onSeasons(t, func(t *testing.T, s *season, name string) {
				undo := do(t, s)
				if what == "a change on its way" {
					execute(t, services.Beside(t, name), `UPDATE campaigns SET closes_at = 1`)
				} else {
					s.close()
				}
				s.pass(week)
				s.look("under way", false, false)
				undo()
				s.look("done", true, false)
			})
		})
	}
}

func TestARebuildOfARetiredCampaignDoesNotEndItsEpoch(t *testing.T) {
	onSeasons(t, func(t *testing.T, s *season, name string) {
		attempt, err := s.a.Epochs.BeginRebuild(t.Context(), "test", "c", 0)
		stage.Must(t, err)
		execute(t, services.Beside(t, name), `UPDATE campaigns SET retired_at = 1`)
		if _, err := s.a.Epochs.FinishRebuild(t.Context(), attempt, recovery.Loaded{}, recovery.Frozen{}); !errors.Is(err, gate.ErrRetired) {
			t.Errorf("the rebuild of a retired campaign is %v", err)
		}
	})
}

// TestAChangeBetweenTheLookAtTheGateAndTheLedgerKeepsACampaign holds the two steps
// of retiring apart: what was seen of the gate is old when the ledger decides.
func TestAChangeBetweenTheLookAtTheGateAndTheLedgerKeepsACampaign(t *testing.T) {
	for what, change := range map[string]func(s *season){
		"opened again": func(s *season) { stage.Must(s.t, s.until(s.now().Add(time.Hour))) },
		"voided": func(s *season) {
			s.void(2)
			finish(s.t, s.b, 0)
		},
		"closed by an operator too": (*season).close,
	} {
		t.Run(what, func(t *testing.T) {
			onSeasons(t, func(t *testing.T, s *season, _ string) {
				stage.Must(t, s.until(s.now().Add(time.Hour)))
				s.pass(2 * week)
				seen := s.seen()
				change(s)
				if retired, err := s.a.Epochs.Retire(t.Context(), "c", seen, week); err != nil || retired {
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
	onSeasons(t, func(t *testing.T, s *season, _ string) {
		s.close()
		s.pass(week)
		s.look("marked, and dead", true, false)

		s.answers("the gate answers", "already_issued:1 closed:0", "user-1", "somebody")
		s.void(1)
		finish(t, s.b, 0)
		s.answers("a void reaches the gate while it knows the campaign", "closed:0", "user-1")

		s.pass(minute)
		s.fails = errors.New("the reply was lost")
		if err := s.retirer.Look(t.Context()); err == nil {
			t.Error("the lost reply was not told")
		}
		s.expect("deleted, and dead", true, true)
		stage.Same(t, "failed", int64(1), s.retirer.Stats().Failed)

		s.retirer = recovery.NewRetirer(s.b.Epochs, s, 0, nil)
		s.look("another node deletes again", true, true)
		s.look("and no more", true, true)
		stage.Same(t, "the gate was told", 2, s.forgot)
		s.answers("the ledger answers", "closed:0 already_issued:2", "user-1", "user-2")
	})
}

func TestNodesThatRetireAtOnceDoItOnce(t *testing.T) {
	onSeasons(t, func(t *testing.T, s *season, _ string) {
		s.close()
		s.pass(week)
		seen := s.seen()
		var all sync.WaitGroup
		for _, n := range []node{s.a, s.b, s.a, s.b} {
			all.Go(func() {
				if retired, err := n.Epochs.Retire(context.Background(), "c", seen, week); err != nil || !retired {
					t.Errorf("retired: %v, %v", retired, err)
				}
			})
		}
		all.Wait()
		stage.Same(t, "the audit log", []string{"campaign.retire", "campaign.close", "campaign.create"}, actions(t, s.a.Ledger, "c"))
	})
}

// TestTheLedgerTakesWhatTheGateKeptOfACampaignsCourse has other instants at the gate than the ledger's own of the close.
func TestTheLedgerTakesWhatTheGateKeptOfACampaignsCourse(t *testing.T) {
	onSeasons(t, func(t *testing.T, s *season, _ string) {
		at := stage.Epoch.Add
		kept := firstcome.Instants{OpenedAt: at(time.Microsecond), SoldOutAt: at(2 * time.Microsecond), ClosedAt: at(3 * time.Microsecond)}
		s.tells = func(g *gate.State) { g.Instants = kept }
		s.forgotten()
		says := func(what string, want firstcome.Instants) {
			t.Helper()
			state, err := s.over.State(t.Context(), "c")
			stage.Must(t, err)
			stage.Same(t, what, []firstcome.Instants{want, want}, []firstcome.Instants{state.Instants, status(t, s.b.Ledger).Instants})
		}
		says("as the gate did", kept)
		decisions, err := s.over.Claim(t.Context(), "c", users("user-9"))
		if err != nil || !decisions[0].Since.Equal(kept.ClosedAt) {
			t.Errorf("a refusal says %+v, %v", decisions, err)
		}
		s.void(2)
		says("when stock came back", kept)
	})
}

func TestTheLedgerAnswersForAForgottenCampaignAsTheGateDid(t *testing.T) {
	onSeasons(t, func(t *testing.T, s *season, _ string) {
		ctx := t.Context()
		s.forgotten()
		s.answers("claims", "already_issued:2 closed:0 already_issued:3 closed:0", "user-2", "user-9", "user-3", "user-9")
		holders := map[firstcome.UserID]bool{}
		version, err := s.over.Holders(ctx, "c", func(user firstcome.UserID) { holders[user] = true })
		stage.Must(t, err)
		stage.Same(t, "holders", map[firstcome.UserID]bool{"user-1": true, "user-2": true, "user-3": true}, holders)
		stage.Same(t, "their version", int64(2), version)
		state, err := s.over.State(ctx, "c")
		stage.Must(t, err)
		stage.Same(t, "state", gate.State{Version: 2, Epoch: 1, InForce: 3, Issued: 3, LastNumber: 3, DrainedThrough: 3, Now: s.now()}, state)
		through, err := s.over.DrainedThrough(ctx, "c")
		if err != nil || through != 3 {
			t.Errorf("drained through %d, %v", through, err)
		}
		c, err := s.over.CouponOf(ctx, "c", "user-2")
		if err != nil || c.Number != 2 || !c.Recorded || c.Code != stage.Coupon("c", 2).Code {
			t.Errorf("the coupon: %+v, %v", c, err)
		}
		if _, err := s.over.CouponOf(ctx, "c", "user-9"); !errors.Is(err, firstcome.ErrNoCoupon) {
			t.Errorf("nobody's coupon: %v", err)
		}
	})
}

func TestAForgottenCampaignsCouponsAreVoidedAndNothingElseOfItChanges(t *testing.T) {
	onSeasons(t, func(t *testing.T, s *season, _ string) {
		ctx := t.Context()
		s.forgotten()
		s.void(2)
		finish(t, s.b, 0)
		s.answers("claims", "closed:0 already_issued:3", "user-2", "user-3")
		if _, err := s.b.Campaigns.Void(ctx, "test", "c", 2, "twice"); !errors.Is(err, firstcome.ErrAlreadyVoided) {
			t.Errorf("voided twice: %v", err)
		}
		for _, to := range []firstcome.ChangeKind{firstcome.ChangePause, firstcome.ChangeResume} {
			if _, err := s.a.Campaigns.ChangeState(ctx, "test", "c", 0, to); !errors.Is(err, firstcome.ErrClosed) {
				t.Errorf("%s: %v", to, err)
			}
		}
		if err := s.until(s.now().Add(time.Hour)); !errors.Is(err, firstcome.ErrClosed) {
			t.Errorf("terms: %v", err)
		}
		c := status(t, s.a.Ledger)
		stage.Same(t, "in force, version, applied", []int64{2, 3, 3}, []int64{c.InForce, c.Version, c.Applied})
		stage.Same(t, "the gate was not recreated", []bool{true, true}, []bool{s.Course("c").Gone, s.Course("c").Version == 2})
	})
}

// TestAVoidThatIsOnItsWayWhenTheGateForgetsIsDone has the keys deleted between the
// void's step in the ledger and that at the gate.
func TestAVoidThatIsOnItsWayWhenTheGateForgetsIsDone(t *testing.T) {
	onSeasons(t, func(t *testing.T, s *season, _ string) {
		s.close()
		s.pass(week)
		s.look("retired", true, false)
		s.void(3)
		s.pass(minute)
		s.look("forgotten", true, true)
		finish(t, s.b, 0)
		s.answers("claims", "closed:0", "user-3")
		if pending, err := s.a.Campaigns.Pending(t.Context(), ""); err != nil || len(pending) > 0 {
			t.Errorf("pending: %v, %v", pending, err)
		}
	})
}

func TestAGateThatLostACampaignWhichIsNotRetiredIsNotAnsweredFor(t *testing.T) {
	onSeasons(t, func(t *testing.T, s *season, _ string) {
		ctx := t.Context()
		s.close()
		s.void(1)
		s.Course("c").Gone = true
		for what, err := range map[string]error{
			"a claim":               stage.Err(s.over.Claim(ctx, "c", users("user-1"))),
			"holders":               stage.Err(s.over.Holders(ctx, "c", func(firstcome.UserID) { t.Error("a holder") })),
			"a change":              stage.Err(s.over.Apply(ctx, s.pending())),
			"the state":             stage.Err(s.over.State(ctx, "c")),
			"a coupon":              stage.Err(s.over.CouponOf(ctx, "c", "user-2")),
			"drained":               stage.Err(s.over.DrainedThrough(ctx, "c")),
			"the ledger's decision": stage.Err(s.a.Gate.ClaimRetired(ctx, "c", users("user-2"))),
			"forgotten":             s.a.Epochs.Forgotten(ctx, "c"),
		} {
			if !errors.Is(err, gate.ErrGone) {
				t.Errorf("%s: %v", what, err)
			}
		}
		if _, err := s.over.Claim(ctx, "nowhere", users("user-1")); !errors.Is(err, firstcome.ErrNoCampaign) {
			t.Errorf("no campaign: %v", err)
		}
	})
}

// TestAChangeThatTheGateHasAndTheLedgerDoesNotKnowOfKeepsACampaign has a node die
// behind the gate's step of a void.
func TestAChangeThatTheGateHasAndTheLedgerDoesNotKnowOfKeepsACampaign(t *testing.T) {
	onSeasons(t, func(t *testing.T, s *season, _ string) {
		s.close()
		s.pass(week)
		s.void(1)
		stage.Must(t, stage.Err(s.Apply(t.Context(), s.pending())))
		if retired, err := s.a.Epochs.Retire(t.Context(), "c", s.seen(), week); err != nil || retired {
			t.Errorf("retired: %v, %v", retired, err)
		}
		finish(t, s.b, 0)
		s.look("it is noted", true, false)
	})
}
