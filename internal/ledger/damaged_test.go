package ledger_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/ledger"
	"github.com/firstcome/firstcome/test/services"
	"github.com/firstcome/firstcome/test/stage"
)

// damage has the schema refuse every coupon of a campaign.
const damage = `CREATE TRIGGER damage BEFORE INSERT ON coupons WHEN NEW.campaign_id = 'c7' BEGIN SELECT RAISE(ABORT, 'damaged'); END`

// TestADamagedCampaignCostsTheOthersAtMostATenth has a crowd at 32 campaigns claim again and again for two
// seconds, with and without a damaged one among them. What it costs is counted: transactions that were committed, each
// with its sync, and how often a batch was decided.
func TestADamagedCampaignCostsTheOthersAtMostATenth(t *testing.T) {
	var sound, damaged cost
	crowdAtMany(t, false, func(c cost) { sound = c })
	crowdAtMany(t, true, func(c cost) {
		damaged = c
		if 10*damaged.transactions > 11*sound.transactions || 10*damaged.batches > 11*sound.batches {
			t.Errorf("with a damaged campaign %+v, without %+v", damaged, sound)
		}
	})
	t.Logf("with a damaged campaign %+v, without %+v", damaged, sound)
}

type cost struct{ transactions, batches int64 }

func crowdAtMany(t *testing.T, damaged bool, costs func(cost)) {
	const campaigns, rounds = 32, 100
	path := file(t)
	synctest.Test(t, func(t *testing.T) {
		l, db := haltingLedger(t, path), services.Beside(t, path)
		for n := range campaigns {
			create(t, l.Ledger, firstcome.CampaignID(fmt.Sprint("c", n)), firstcome.Unlimited)
		}
		create(t, l.Ledger, "first", firstcome.Unlimited)
		if damaged {
			execute(t, db, damage)
		}
		user, issued := 0, int64(0)
		round := func() {
			user++
			claims := func(id string) func() {
				return func() {
					got, want := claimOrError(l.Ledger, id, user), fmt.Sprint("issued:", user)
					switch {
					case id != "c7" && got != want:
						t.Errorf("%s is answered %s, want %s", id, got, want)
					case id == "c7" && strings.HasPrefix(got, "issued:"):
						issued++
					case id == "c7" && !strings.HasSuffix(got, "damaged (1811)"):
						t.Errorf("at the damaged campaign: %s", got)
					}
				}
			}
			var all []func()
			for n := range campaigns {
				all = append(all, claims(fmt.Sprint("c", n)))
			}
			l.during(claims("first"), all...)
			time.Sleep(20 * time.Millisecond)
		}
		l.committed, issued = nil, 0
		l.decided.Store(0)
		for range rounds {
			round()
		}
		costs(cost{int64(len(l.committed)), l.decided.Load()})
		if !damaged {
			return
		}
		stage.Same(t, "issued of the damaged campaign", int64(0), issued)
		execute(t, db, `DROP TRIGGER damage`)
		round()
		stage.Same(t, "issued since it is mended", int64(1), issued)
		stage.Same(t, "in a transaction of its own", []int{campaigns - 1, 1}, l.committed[len(l.committed)-2:])
		time.Sleep(time.Second)
		round()
		stage.Same(t, "issued a second later", int64(2), issued)
		stage.Same(t, "in the others' transaction", campaigns, l.committed[len(l.committed)-1])
	})
}

// claimOrError claims for one user and returns what is answered, or why nothing is.
func claimOrError(l *ledger.Ledger, id string, user int) string {
	decisions, err := l.Gate.Claim(context.Background(), firstcome.CampaignID(id), []firstcome.UserID{firstcome.UserID(fmt.Sprint("user-", user))})
	if err != nil {
		return err.Error()
	}
	return fmt.Sprintf("%v:%d", decisions[0].Outcome, decisions[0].Coupon.Number)
}

// TestClaimsKeepTheirOrderWhateverIsRefusedBesideThem has claims of two campaigns wait for the writer, with those of a
// damaged one and with changes among them, of which one is refused: each is decided behind what came before.
func TestClaimsKeepTheirOrderWhateverIsRefusedBesideThem(t *testing.T) {
	path := file(t)
	synctest.Test(t, func(t *testing.T) {
		l, db := haltingLedger(t, path), services.Beside(t, path)
		for id, quantity := range map[firstcome.CampaignID]int64{"c7": 9, "good": 4, "other": 1, "first": 9} {
			create(t, l.Ledger, id, quantity)
		}
		execute(t, db, damage, `CREATE TRIGGER refused BEFORE INSERT ON audit_log WHEN NEW.campaign_id = 'other' BEGIN SELECT RAISE(ABORT, 'no'); END`)
		var mu sync.Mutex
		answers := map[string]string{}
		keep := func(what string, do func() string) func() {
			return func() {
				got := do()
				mu.Lock()
				defer mu.Unlock()
				answers[what] = got
			}
		}
		claims := func(id string, user int) func() {
			return keep(fmt.Sprint(id, " ", user), func() string { return claimOrError(l.Ledger, id, user) })
		}
		switches := func(id firstcome.CampaignID, to firstcome.ChangeKind) func() {
			return keep(fmt.Sprint(to, " ", id), func() string {
				_, err := l.Campaigns.ChangeState(context.Background(), "test", id, 0, to)
				return fmt.Sprint(err)
			})
		}
		l.during(claims("first", 1),
			claims("good", 1), claims("c7", 1), claims("other", 1), claims("c7", 2), claims("good", 2), claims("other", 2),
			switches("good", firstcome.ChangePause), claims("good", 3), switches("other", firstcome.ChangeClose), claims("other", 3), switches("good", firstcome.ChangeResume),
			claims("good", 4), claims("c7", 3), keep("good 2 again", func() string { return claimOrError(l.Ledger, "good", 2) }))
		const damaged = "decide 1 claims of c7: constraint failed: damaged (1811)"
		stage.Same(t, "answers", map[string]string{
			"first 1": "issued:1",
			"good 1":  "issued:1", "good 2": "issued:2", "pause good": "<nil>", "good 3": "paused:0", "resume good": "<nil>", "good 4": "issued:3", "good 2 again": "already_issued:2",
			"other 1": "issued:1", "other 2": "sold_out:0", "close other": "close the campaign other: constraint failed: no (1811)", "other 3": "sold_out:0",
			"c7 1": damaged, "c7 2": damaged, "c7 3": damaged,
		}, answers)
		for id, want := range map[firstcome.CampaignID][2]int64{"c7": {0, 1}, "good": {3, 3}, "other": {1, 1}} {
			if s, err := l.Reads.Campaign(t.Context(), id); err != nil || [2]int64{s.Issued, s.Version} != want || s.Position != s.Issued || s.Closed || s.Paused {
				t.Errorf("%s: %+v, %v", id, s, err)
			}
		}
	})
}
