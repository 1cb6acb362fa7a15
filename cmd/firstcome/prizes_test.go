//go:build !check

package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"testing"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/gate"
	"github.com/firstcome/firstcome/internal/ledger"
	"github.com/firstcome/firstcome/internal/recovery"
	"github.com/firstcome/firstcome/test/services"
	"github.com/firstcome/firstcome/test/stage"
)

// drinks are prizes: a drink for the first of a campaign's coupons, 20 % for as many as say, and free shipping for the rest.
func drinks(first, next int64) []firstcome.Prize {
	return []firstcome.Prize{{ID: "drink", Name: "Drink", Quantity: first}, {ID: "twenty", Name: "20 %", Quantity: next}, {ID: "shipping", Name: "Free shipping"}}
}

// newPrized returns a desk with a campaign of 2,000 coupons with prizes.
func newPrized(t *testing.T, name string, prizes []firstcome.Prize) *desk {
	t.Helper()
	d := newDesk(t, services.Redis.Database(t), name, nil)
	terms := stage.Terms(2000)
	terms.Benefit, terms.Prizes = nil, prizes
	d.reaches("c", d.ledger.Campaigns.Create(t.Context(), "test", "c", terms))
	return d
}

// prizeOf returns the rank of a coupon and the name of its prize, by the terms that it names, as RANK:NAME.
func (d *desk) prizeOf(c firstcome.Coupon) string {
	d.t.Helper()
	terms, err := d.ledger.Reads.Terms(d.t.Context(), "c", c.TermsVersion)
	stage.Must(d.t, err)
	rank := terms.Rank(c.Number)
	return fmt.Sprintf("%d:%s", rank, terms.Prizes[terms.PrizeOf(rank)].Name)
}

// prizes claims for users, and returns their coupons' ranks and prizes.
func (d *desk) prizes(users ...firstcome.UserID) (all []string) {
	d.t.Helper()
	for _, c := range d.issue("c", users...) {
		all = append(all, d.prizeOf(c))
	}
	return all
}

// empties empties Redis, and rebuilds the campaign.
func (d *desk) empties() {
	d.t.Helper()
	d.do("FLUSHALL")
	d.rebuilt(d.rebuilder())
}

// recordsAll records what Redis has in the campaign's journal, by a rebuild that loses nothing.
func (d *desk) recordsAll() {
	d.t.Helper()
	d.rebuilt(d.rebuilder())
}

// TestF80P10RanksGoOnBehindEachLossOfRedis gives a drink to the first 100 of the whole campaign and 20 % to the next 900, whatever becomes of Redis: it is
// emptied with coupons that nobody recorded, emptied again before anybody claims, and rebuilt in order. The terms are edited in between.
func TestF80P10RanksGoOnBehindEachLossOfRedis(t *testing.T) {
	ledgers(t, func(t *testing.T, name string) {
		d := newPrized(t, name, drinks(100, 900))
		first := d.kept(people("first-", 40)...)
		d.issue("c", people("lost-", 20)...)
		d.empties()
		stage.Same(t, "the next claim, and one of a user whose coupon was lost", []string{"41:Drink", "42:Drink"}, d.prizes("second-0", "lost-0"))
		d.terms(func(terms *firstcome.Terms) {
			terms.Prizes = slices.Clone(terms.Prizes)
			terms.Prizes[0].Name = "Coffee"
		})
		d.recordsAll()
		d.empties()
		d.empties()
		stage.Same(t, "the next claim behind two losses", []string{"43:Coffee"}, d.prizes("third-0"))
		rest := d.prizes(people("fourth-", 60)...)
		stage.Same(t, "the last drink, and the 101st of the whole campaign", []string{"100:Coffee", "101:20 %"}, rest[56:58])
		d.recordsAll()
		stage.Same(t, "who had coupons before", []string{"1:Drink", "40:Drink", "41:Drink", "100:Coffee", "101:20 %"},
			d.prizes("first-0", "first-39", "second-0", "fourth-56", "fourth-57"))
		if c := first[39]; c.Number != 40 || d.issue("c", "new")[0].Number < 4000 {
			t.Errorf("number %d of the first epoch, and no numbers jumped", c.Number)
		}
		d.sound()
	})
}

// TestF80P10TheLastNumberOfAFrozenGateHasItsRank has coupons that only the gate's counters still know: their entries and holders are gone. Users may have
// been told their ranks, so nobody else gets these.
func TestF80P10TheLastNumberOfAFrozenGateHasItsRank(t *testing.T) {
	d := newPrized(t, services.Ledgers[services.SQLite](t), drinks(3, 900))
	d.kept("a", "b")
	d.issue("c", "e")
	d.do("XTRIM", d.key("journal"), "MAXLEN", "0")
	d.do("HDEL", d.key("holders"), "e")
	d.rebuilt(d.rebuilder())
	stage.Same(t, "a recorded coupon, and the next one", []string{"2:Drink", "4:20 %"}, d.prizes("b", "f"))
}

// TestF80ADeadLetterHasItsRank buries a coupon that is the last one that anybody knows when Redis is emptied. An operator replays it afterwards.
func TestF80ADeadLetterHasItsRank(t *testing.T) {
	d := newPrized(t, services.Ledgers[services.SQLite](t), drinks(2, 900))
	coupons := d.issue("c", "a", "b", "e")
	d.settle(d.record(coupons[0]))
	d.bury(coupons[2])
	d.empties()
	d.replay()
	stage.Same(t, "the replayed coupon, and the next one", []string{"3:20 %", "4:20 %"}, d.prizes("e", "f"))
	d.recordsAll()
	d.sound()
}

// TestF80AClosedCampaignSkipsNothing rebuilds a campaign that an operator has closed.
func TestF80AClosedCampaignSkipsNothing(t *testing.T) {
	d := newPrized(t, services.Ledgers[services.SQLite](t), drinks(1, 900))
	d.kept("a", "b")
	d.turn(firstcome.ChangeClose)
	before := d.status().Version
	d.empties()
	stage.Same(t, "the version behind the rebuild", before+1, d.status().Version)
	stage.Same(t, "who has coupons", []string{"1:Drink", "2:20 %"}, d.prizes("a", "b"))
	d.sound()
}

// TestF80TheNodeThatRebuildsReadsTheNewTerms wants a node to have the terms of the new epoch in its cache, where its API looks for them.
func TestF80TheNodeThatRebuildsReadsTheNewTerms(t *testing.T) {
	c := demoServe(services.Ledgers[services.SQLite](t))
	c.Gate = gateName(services.Redis.Database(t))
	n, err := newNode(t.Context(), c, slog.New(slog.DiscardHandler), func(context.Context, *ledger.Ledger) (bool, error) { return true, nil })
	stage.Must(t, err)
	stop := stage.Run(t, n.run)
	stage.Must(t, stage.Err(n.operator.Create(t.Context(), "a test", "c", stage.Terms(9))))
	stage.Must(t, stage.Err(n.operator.Rebuild(t.Context(), "a test", "c", recovery.Order{})))
	stop()
	terms, err := n.terms.Terms(t.Context(), "c", 3) // the ledger is closed
	stage.Must(t, err)
	stage.Same(t, "the numbers that the terms skip", []firstcome.Skip{{After: 9, Skipped: 9}}, terms.Skips)
}

// TestF82ALedgerThatLacksTheLastTermsSaysNoPrize restores a ledger from before the prizes were decided. Until the reconcile nobody is told a prize by older
// terms, and afterwards each coupon has the one that its user was told.
func TestF82ALedgerThatLacksTheLastTermsSaysNoPrize(t *testing.T) {
	ledgers(t, func(t *testing.T, name string) {
		d := newPrized(t, name, drinks(100, 900))
		b := d.backup()
		d.terms(func(terms *firstcome.Terms) { terms.Prizes = drinks(1, 1) })
		d.kept("a")
		d.empties()
		coupons := d.issue("c", "b", "e")
		told := []string{"1:Drink", "2:20 %", "3:Free shipping"}
		stage.Same(t, "what users are told", told, d.prizes("a", "b", "e"))
		d = b.restore()
		if terms, err := d.ledger.Reads.Terms(t.Context(), "c", coupons[0].TermsVersion); !errors.Is(err, gate.ErrLedgerRolledBack) {
			t.Errorf("a ledger that has forgotten terms says %+v, %v", terms, err)
		}
		done, err := d.rebuilder().Reconcile(t.Context(), "op", "c")
		stage.Must(t, err)
		stage.Same(t, "what was brought back", int64(3), done.Recovered)
		stage.Same(t, "the same users, and a new one", append(told, "4:Free shipping"), d.prizes("a", "b", "e", "new"))
		stage.Same(t, "the prizes", drinks(1, 1), d.termsNow().Prizes)
		d.recordsAll()
		d.sound()
	})
}

// termsNow returns the terms in force.
func (d *desk) termsNow() firstcome.Terms {
	d.t.Helper()
	s := d.status()
	terms, err := d.ledger.Reads.Terms(d.t.Context(), "c", s.Version)
	stage.Must(d.t, err)
	return terms
}

// TestF82AReconcileTakesAllTermsOfTheGate changes after the backup what no gate reads.
func TestF82AReconcileTakesAllTermsOfTheGate(t *testing.T) {
	d := newPrized(t, services.Ledgers[services.SQLite](t), drinks(1, 1))
	d.kept("a")
	b := d.backup()
	d.terms(func(terms *firstcome.Terms) {
		terms.Name, terms.ValidUntil = "By another name", closing
		terms.Prizes = slices.Clone(terms.Prizes)
		terms.Prizes[2].Benefit = []byte(`{"shipping": 0}`)
	})
	want := d.termsNow()
	d = b.restore()
	stage.Must(t, stage.Err(d.rebuilder().Reconcile(t.Context(), "op", "c")))
	is := d.termsNow()
	is.Skips = nil
	stage.Same(t, "the terms", want, is)
}

// cutOffReconcile returns a deployment whose reconcile was cut off before a step. The restored ledger has forgotten an epoch: the gate's terms skip its numbers.
func cutOffReconcile(t *testing.T, step string) *desk {
	t.Helper()
	d := newPrized(t, services.Ledgers[services.SQLite](t), drinks(1, 1))
	d.kept("a")
	b := d.backup()
	d.kept("b")
	d.empties()
	d.issue("c", "e")
	d = b.restore()
	cut := &cutOff{d.ledger.Recorder, d.ledger.Epochs, d.remote.gate.recovery, step}
	if _, err := recovery.New(cut, cut, cut, recovery.NewWatch(nil), nil).Reconcile(t.Context(), "op", "c"); !errors.Is(err, errCutOff) {
		t.Fatalf("it ends with %v", err)
	}
	return d
}

// TestF83AReconcileThatARebuildEndsKeepsTheRanks cuts a reconcile off after the ledger has the gate's terms, with the numbers that they skip, and before it has
// the gate's coupons. Then Redis is emptied, so that only a rebuild is possible, or the reconcile is cut off before its last step, so that one is enough.
func TestF83AReconcileThatARebuildEndsKeepsTheRanks(t *testing.T) {
	for step, want := range map[string][]string{"record": {"1:Drink", "3:Free shipping", "4:Free shipping"}, "switch": {"1:Drink", "2:20 %", "4:Free shipping"}} {
		t.Run(step, func(t *testing.T) {
			d := cutOffReconcile(t, step)
			if step == "record" {
				d.empties()
			} else {
				d.recordsAll()
			}
			stage.Same(t, "users from before the backup and behind it, and a new one", want, d.prizes("a", "b", "new"))
			d.recordsAll()
			d.sound()
		})
	}
}

// TestF84P10PrizesThatAreEditedAsTheCampaignOpensAreRefusedOnceANumberIsGiven numbers a change of the prizes while the ledger knows of no coupon. The gate gives
// numbers before it gets the change. Another node brings it there, or rebuilds the gate without it.
func TestF84P10PrizesThatAreEditedAsTheCampaignOpensAreRefusedOnceANumberIsGiven(t *testing.T) {
	for name, brings := range map[string]func(d *desk){
		"brought":              func(d *desk) { d.reaches("c", nil) },
		"rebuilt":              func(d *desk) { d.recordsAll() },
		"refused, not noted":   func(d *desk) { d.apply(); d.recordsAll() },
		"refused, Redis gone":  func(d *desk) { d.apply(); d.kept("late"); d.empties() },
		"recorded, Redis gone": func(d *desk) { d.kept("late"); d.empties() },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ledgers(t, func(t *testing.T, ledger string) {
				d := newPrized(t, ledger, drinks(1, 1))
				version, err := d.ledger.Campaigns.SetTerms(t.Context(), "op", "c", 0, func(terms *firstcome.Terms) { terms.Prizes = drinks(2, 2) })
				stage.Must(t, err)
				told := d.prizes("a", "b")
				brings(d)
				refusal, err := d.ledger.Campaigns.Refusal(t.Context(), "c", version)
				if err != nil || !errors.Is(refusal, firstcome.ErrPrizesFixed) {
					t.Errorf("the change is refused: %v, %v", refusal, err)
				}
				stage.Same(t, "the prizes", drinks(1, 1), d.termsNow().Prizes)
				if name != "refused, Redis gone" && name != "recorded, Redis gone" {
					stage.Same(t, "what users are told", told, d.prizes("a", "b"))
				}
				if _, err := d.ledger.Campaigns.SetTerms(t.Context(), "op", "c", 0, func(terms *firstcome.Terms) { terms.Prizes = nil }); !errors.Is(err, firstcome.ErrPrizesFixed) && name != "brought" {
					t.Errorf("prizes are taken away: %v", err)
				}
				d.recordsAll()
				d.sound()
			})
		})
	}
}

// apply brings the campaign's changes to the gate, and does not note that in the ledger.
func (d *desk) apply() {
	d.t.Helper()
	pending, err := d.ledger.Campaigns.Pending(d.t.Context(), "c")
	stage.Must(d.t, err)
	for _, change := range pending {
		stage.Must(d.t, stage.Err(d.remote.gate.Apply(d.t.Context(), change)))
	}
}

// TestF84P10PrizesThatTheGateTookBeforeTheFirstNumberStay brings new prizes to a gate, which the ledger does not note. The gate gives numbers under them, and then
// it is rebuilt.
func TestF84P10PrizesThatTheGateTookBeforeTheFirstNumberStay(t *testing.T) {
	for name, ends := range map[string]func(d *desk){
		"a gate that is there": func(d *desk) { d.recordsAll() },
		"Redis gone":           func(d *desk) { d.kept("e"); d.empties() },
	} {
		t.Run(name, func(t *testing.T) {
			ledgers(t, func(t *testing.T, ledger string) {
				d := newPrized(t, ledger, drinks(1, 1))
				version, err := d.ledger.Campaigns.SetTerms(t.Context(), "op", "c", 0, func(terms *firstcome.Terms) { terms.Prizes = drinks(2, 2) })
				stage.Must(t, err)
				d.apply()
				d.issue("c", "a")
				ends(d)
				refusal, err := d.ledger.Campaigns.Refusal(t.Context(), "c", version)
				if err != nil || refusal != nil {
					t.Errorf("the change is refused: %v, %v", refusal, err)
				}
				stage.Same(t, "the prizes", drinks(2, 2), d.termsNow().Prizes)
				d.recordsAll()
				d.sound()
			})
		})
	}
}
