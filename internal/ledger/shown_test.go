package ledger_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/firstcome/firstcome"
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
			stage.Must(t, l.Create(t.Context(), "test", id, terms))
		}
		create(t, l, "a-closed", 1)
		stage.Must(t, stage.Err(l.Switch(t.Context(), "test", "a-closed", 0, "close")))
		// Of one that is open nobody can read the terms: it is shown all the same.
		execute(t, services.Beside(t, name), `UPDATE changes SET payload = '{}' WHERE campaign_id = 'z-open'`)
		for limit, left := range map[int]int64{1: 7, 7: 1, 8: 0, 9: 0} {
			all, more, err := l.Unclosed(t.Context(), limit)
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

func TestTheLastDecisionIsFoundOfWhicheverCampaign(t *testing.T) {
	onEach(t, func(t *testing.T, name string) {
		l := start(t, name, nil)
		if last, err := l.LastDecision(t.Context()); err != nil || !last.IsZero() {
			t.Errorf("without campaigns it is %v, %v", last, err)
		}
		for n := range 3 {
			create(t, l, firstcome.CampaignID(fmt.Sprintf("c-%d", n)), 1)
		}
		later := time.Date(2040, 1, 2, 3, 4, 5, 6000, time.UTC)
		execute(t, services.Beside(t, name), fmt.Sprintf(`UPDATE campaigns SET decided_at = %d WHERE id = 'c-2'`, later.UnixMicro()))
		if last, err := l.LastDecision(t.Context()); err != nil || !last.Equal(later) {
			t.Errorf("it is %v, %v, want %v", last, err, later)
		}
	})
}
