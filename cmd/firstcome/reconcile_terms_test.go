//go:build !check && (!race || soak)

package main

import (
	"errors"
	"testing"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/test/services"
	"github.com/firstcome/firstcome/test/stage"
)

// TestF54WhateverWasForgottenIsSoundBehindAReconcile acts after the backup on ten coupons, and on an eleventh that is issued and recorded after the backup.
// The gate knows of the act.
func TestF54WhateverWasForgottenIsSoundBehindAReconcile(t *testing.T) {
	void := func(d *desk, numbers ...int64) {
		for _, n := range numbers {
			d.reaches("c", stage.Err(d.ledger.Campaigns.Void(d.t.Context(), "op", "c", n, "a trial")))
		}
	}
	for name, test := range map[string]struct {
		before, do func(d *desk)
	}{
		"a close":     {do: func(d *desk) { d.turn(firstcome.ChangeClose) }},
		"no quantity": {do: func(d *desk) { d.terms(func(t *firstcome.Terms) { t.Quantity = firstcome.Unlimited }) }},
		"a quantity as low as what is in force": {do: func(d *desk) {
			void(d, 1, 2, 3, 4, 5)
			d.terms(func(t *firstcome.Terms) { t.Quantity = 6 })
		}},
		"a dead letter": {do: func(d *desk) {
			d.settle(d.bury(d.issue("c", "user-letter")...), d.journalled()...)
		}},
		"a line": {do: func(d *desk) {
			d.terms(func(t *firstcome.Terms) { t.Pace = &firstcome.Pace{PerSecond: 1} })
			d.claims("in-line-0", "in-line-1", "in-line-2")
		}},
		"a pause that the backup had only begun": {
			before: func(d *desk) {
				stage.Must(d.t, stage.Err(d.ledger.Campaigns.ChangeState(d.t.Context(), "op", "c", 0, firstcome.ChangePause)))
			},
			do: func(d *desk) {
				d.kept("user-10")
				d.reaches("c", nil)
			},
		},
		"a quantity that the gate refused": {
			before: func(d *desk) {
				stage.Must(d.t, stage.Err(d.ledger.Campaigns.SetTerms(d.t.Context(), "op", "c", 0, func(t *firstcome.Terms) { t.Quantity = 10 })))
			},
			do: func(d *desk) {
				d.kept("user-10")
				d.reaches("c", nil)
			},
		},
		"a pause, and its end": {before: func(d *desk) { d.turn(firstcome.ChangePause) }, do: func(d *desk) { d.turn(firstcome.ChangeResume) }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := newDesk(t, services.Redis.Database(t), services.Ledgers[services.SQLite](t), nil, "c")
			d.kept(people("user-", 10)...)
			if test.before != nil {
				test.before(d)
			}
			b := d.backup()
			test.do(d)
			was := d.status()
			d = b.restore()
			stage.Must(t, stage.Err(d.rebuilder().Reconcile(t.Context(), "op", "c")))
			is := d.status()
			stage.Same(t, "the campaign", []any{was.Quantity, was.Paused, was.Closed, was.Pace, was.Waitlist}, []any{is.Quantity, is.Paused, is.Closed, is.Pace, is.Waitlist})
			d.sound()
		})
	}
}

// TestF54ALowerQuantityThatTheBackupHadProposedIsRefusedBelowTheGates makes a backup with one of four coupons, and with a proposed quantity of two that the
// gate never gets.
func TestF54ALowerQuantityThatTheBackupHadProposedIsRefusedBelowTheGates(t *testing.T) {
	ledgers(t, func(t *testing.T, name string) {
		d := newDesk(t, services.Redis.Database(t), name, nil, "c")
		quantity := d.status().Quantity
		d.kept("a")
		stage.Must(t, stage.Err(d.ledger.Campaigns.SetTerms(t.Context(), "op", "c", 0, func(terms *firstcome.Terms) { terms.Quantity = 2 })))
		b := d.backup()
		d.kept("b", "d", "e")
		d = b.restore()
		done, err := d.rebuilder().Reconcile(t.Context(), "op", "c")
		stage.Must(t, err)
		stage.Same(t, "brought back, and dead letters", [2]int64{3, 0}, [2]int64{done.Recovered, done.Letters})
		stage.Same(t, "the quantity", quantity, d.status().Quantity)
		stage.Same(t, "who has a coupon", []string{"already_issued:1", "already_issued:2", "already_issued:3", "already_issued:4"}, d.claims("a", "b", "d", "e"))
		d.sound()
	})
}

// TestF82PrizesThatABackupHadOnlyProposedAreWhatTheGateMadeOfThem restores a backup with a change of the prizes that the gate refused or took later.
func TestF82PrizesThatABackupHadOnlyProposedAreWhatTheGateMadeOfThem(t *testing.T) {
	for name, test := range map[string]struct {
		acts    func(d *desk)
		prizes  []firstcome.Prize
		refused error
	}{
		"refused": {func(d *desk) { d.kept("a", "b"); d.reaches("c", nil) }, drinks(1, 1), firstcome.ErrPrizesFixed},
		"refused, and other terms later": {func(d *desk) {
			d.kept("a", "b")
			d.reaches("c", nil)
			d.terms(func(terms *firstcome.Terms) { terms.Name = "By another name" })
		}, drinks(1, 1), firstcome.ErrPrizesFixed},
		"taken": {func(d *desk) { d.reaches("c", nil); d.kept("a", "b") }, drinks(2, 2), nil},
	} {
		t.Run(name, func(t *testing.T) {
			ledgers(t, func(t *testing.T, ledger string) {
				d := newPrized(t, ledger, drinks(1, 1))
				version, err := d.ledger.Campaigns.SetTerms(t.Context(), "op", "c", 0, func(terms *firstcome.Terms) { terms.Prizes = drinks(2, 2) })
				stage.Must(t, err)
				b := d.backup()
				test.acts(d)
				told := d.prizes("a", "b")
				d = b.restore()
				stage.Must(t, stage.Err(d.rebuilder().Reconcile(t.Context(), "op", "c")))
				stage.Same(t, "what users are told", told, d.prizes("a", "b"))
				if refusal, err := d.ledger.Campaigns.Refusal(t.Context(), "c", version); err != nil || !errors.Is(refusal, test.refused) {
					t.Errorf("why the change is refused: %v, %v, want %v", refusal, err, test.refused)
				}
				stage.Same(t, "the prizes", test.prizes, d.termsNow().Prizes)
				d.sound()
			})
		})
	}
}

// TestF82ALedgerThatWasChangedBeforeItsReconcileKeepsThePrizesThatUsersWereTold changes a restored ledger while Redis is away. The change gets the version
// of the change that the ledger has forgotten.
func TestF82ALedgerThatWasChangedBeforeItsReconcileKeepsThePrizesThatUsersWereTold(t *testing.T) {
	for name, brings := range map[string]func(d *desk){
		"Redis stays away": func(*desk) {},
		"a node brings it": func(d *desk) { d.reaches("c", nil) },
	} {
		t.Run(name, func(t *testing.T) {
			ledgers(t, func(t *testing.T, ledger string) {
				d := newPrized(t, ledger, drinks(100, 900))
				b := d.backup()
				d.terms(func(terms *firstcome.Terms) { terms.Prizes = drinks(1, 1) })
				d.kept("a", "b")
				told := d.prizes("a", "b")
				d = b.restore()
				stage.Must(t, stage.Err(d.ledger.Campaigns.SetTerms(t.Context(), "op", "c", 0, func(terms *firstcome.Terms) { terms.Name = "By another name" })))
				brings(d)
				stage.Must(t, stage.Err(d.rebuilder().Reconcile(t.Context(), "op", "c")))
				stage.Same(t, "what users are told", told, d.prizes("a", "b"))
				stage.Same(t, "the prizes", drinks(1, 1), d.termsNow().Prizes)
				d.sound()
			})
		})
	}
}

// TestF54AQuantityThatTheBackupHadProposedAndTheGateRefusedIsRefused wants the list of changes to say so. Users have two coupons when the gate gets the
// change to one.
func TestF54AQuantityThatTheBackupHadProposedAndTheGateRefusedIsRefused(t *testing.T) {
	ledgers(t, func(t *testing.T, name string) {
		d := newDesk(t, services.Redis.Database(t), name, nil, "c")
		version, err := d.ledger.Campaigns.SetTerms(t.Context(), "op", "c", 0, func(terms *firstcome.Terms) { terms.Quantity = 1 })
		stage.Must(t, err)
		b := d.backup()
		d.kept("a", "b")
		d.reaches("c", nil)
		d = b.restore()
		stage.Must(t, stage.Err(d.rebuilder().Reconcile(t.Context(), "op", "c")))
		if refusal, err := d.ledger.Campaigns.Refusal(t.Context(), "c", version); err != nil || !errors.Is(refusal, firstcome.ErrBelowInForce) {
			t.Errorf("why the change is refused: %v, %v", refusal, err)
		}
		d.sound()
	})
}
