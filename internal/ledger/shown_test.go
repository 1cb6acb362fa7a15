package ledger_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/ledger"
	"github.com/firstcome/firstcome/test/services"
	"github.com/firstcome/firstcome/test/stage"
)

func TestTheOpenCampaignsComeFirstHoweverManyThereAre(t *testing.T) {
	onEach(t, func(t *testing.T, name string) {
		l := start(t, name, nil)
		for n := range 5 { // over, under ids that come first
			id := firstcome.CampaignID(fmt.Sprintf("a-%d", n))
			create(t, l, id, 0) // nothing is left, and nobody closes it
		}
		now := time.Now()
		for id, opens := range map[firstcome.CampaignID]time.Duration{"b-next-year": 365 * 24 * time.Hour, "b-tomorrow": 24 * time.Hour, "z-open": -365 * 24 * time.Hour} {
			terms := firstcome.Terms{Name: "t", Quantity: 1, OpensAt: now.Add(opens), Answer: firstcome.Recorded, Benefit: []byte(`{}`)}
			stage.Must(t, l.Campaigns.Create(t.Context(), "test", id, terms))
		}
		create(t, l, "a-closed", 1)
		stage.Must(t, stage.Err(l.Campaigns.ChangeState(t.Context(), "test", "a-closed", 0, "close")))
		// Of one that is open nobody can read the terms: it is shown all the same.
		execute(t, services.Beside(t, name), `UPDATE changes SET payload = '{}' WHERE campaign_id = 'z-open'`)
		for limit, left := range map[int]int64{1: 7, 7: 1, 8: 0, 9: 0} {
			all, more, err := l.Reads.Unclosed(t.Context(), limit)
			stage.Must(t, err)
			if more != left || len(all) != min(limit, 8) || all[0].ID != "z-open" {
				t.Errorf("the first %d of 8 are %d, with %d more, and the first is %s", limit, len(all), more, all[0].ID)
			}
			if limit == 8 && (all[6].ID != "b-tomorrow" || all[7].ID != "b-next-year") {
				t.Errorf("the last two are %s and %s", all[6].ID, all[7].ID)
			}
		}
	})
}

// TestTheListBeginsWithWhatIsOpenAndThenWithTheNextOpening makes campaigns of each kind under ids whose order is another one.
func TestTheListBeginsWithWhatIsOpenAndThenWithTheNextOpening(t *testing.T) {
	onEach(t, func(t *testing.T, name string) {
		l := start(t, name, nil)
		now := time.Now()
		const day = 24 * time.Hour
		for _, one := range []struct {
			id            firstcome.CampaignID
			opens, closes time.Duration // from now; 0: never
			quantity      int64
			to            firstcome.ChangeKind
		}{
			{"a-over", -9 * day, -8 * day, 5, ""},
			{"a-closed", -7 * day, 0, 5, firstcome.ChangeClose},
			{"b-gone", -2 * day, 0, 1, ""},
			{"b-paused", -3 * day, 0, 5, firstcome.ChangePause},
			{"c-december", 9 * day, 0, 5, ""},
			{"d-tomorrow", day, 0, 5, ""},
			{"e-paused-next", 2 * day, 0, 5, firstcome.ChangePause},
			{"b-next-week", 7 * day, 8 * day, 0, ""},
			{"x-open", -5 * day, day, 5, ""},
			{"y-open", -day, 0, 5, ""},
			{"z-endless", -6 * day, 0, firstcome.Unlimited, ""},
		} {
			terms := firstcome.Terms{Name: "Shop " + string(one.id), Quantity: one.quantity, OpensAt: now.Add(one.opens), Answer: firstcome.Recorded}
			if one.closes != 0 {
				terms.ClosesAt = now.Add(one.closes)
			}
			stage.Must(t, l.Campaigns.Create(t.Context(), "test", one.id, terms))
			if one.to != "" {
				stage.Must(t, stage.Err(l.Campaigns.ChangeState(t.Context(), "test", one.id, 0, one.to)))
			}
		}
		for _, id := range []firstcome.CampaignID{"b-gone", "y-open", "z-endless"} {
			claim(t, l.Gate, id, "mina")
		}
		want := []firstcome.CampaignID{
			"y-open", "x-open", "z-endless", "d-tomorrow", "e-paused-next", "b-next-week", "c-december", "b-gone", "b-paused", "a-closed", "a-over",
		}
		for _, text := range []string{"", "shop"} {
			for from := range want {
				found, err := l.Reads.List(t.Context(), ledger.Listing{Text: text, At: now, Offset: from, Limit: 3})
				stage.Must(t, err)
				var ids []firstcome.CampaignID
				for _, s := range found {
					ids = append(ids, s.ID)
				}
				if !slices.Equal(ids, want[from:min(from+3, len(want))]) {
					t.Errorf("of %q, from %d on, are listed %v, want %v", text, from, ids, want[from:min(from+3, len(want))])
				}
			}
		}
	})
}

func TestTheLastDecisionIsFoundOfWhicheverCampaign(t *testing.T) {
	onEach(t, func(t *testing.T, name string) {
		l := start(t, name, nil)
		if last, err := l.Reads.LastDecision(t.Context()); err != nil || !last.IsZero() {
			t.Errorf("without campaigns it is %v, %v", last, err)
		}
		for n := range 3 {
			create(t, l, firstcome.CampaignID(fmt.Sprintf("c-%d", n)), 1)
		}
		later := time.Date(2040, 1, 2, 3, 4, 5, 6000, time.UTC)
		execute(t, services.Beside(t, name), fmt.Sprintf(`UPDATE campaigns SET decided_at = %d WHERE id = 'c-2'`, later.UnixMicro()))
		if last, err := l.Reads.LastDecision(t.Context()); err != nil || !last.Equal(later) {
			t.Errorf("it is %v, %v, want %v", last, err, later)
		}
	})
}
