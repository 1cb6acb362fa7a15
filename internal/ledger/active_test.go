package ledger_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/gate"
	"github.com/firstcome/firstcome/internal/ledger"
	"github.com/firstcome/firstcome/test/services"
	"github.com/firstcome/firstcome/test/stage"
)

// active expects the active campaigns.
func active(t testing.TB, l *ledger.Ledger, want ...firstcome.CampaignID) {
	t.Helper()
	got, err := l.Recorder.Active(t.Context())
	stage.Must(t, err)
	var ids []firstcome.CampaignID
	for _, r := range got {
		ids = append(ids, r.Campaign)
	}
	if diff := cmp.Diff(want, ids); diff != "" {
		t.Errorf("active (-want +got):\n%s", diff)
	}
}

func TestActiveCampaignsAreThoseOfTheNodesGateThatAreNotRetired(t *testing.T) {
	onEach(t, func(t *testing.T, name string) {
		l := remoteAt(t, name)
		active(t, l)
		for _, id := range []firstcome.CampaignID{"old", "another-gates", "b-", "b", "another-secrets"} {
			create(t, l, id, 5)
		}
		db := services.Beside(t, name)
		for _, change := range []string{
			`UPDATE campaigns SET retired_at = 1 WHERE id = 'old'`,
			`UPDATE campaigns SET gate = 'redis:other' WHERE id = 'another-gates'`,
			`UPDATE campaigns SET secret = 'other' WHERE id = 'another-secrets'`,
		} {
			execute(t, db, change)
		}
		active(t, l, "b", "b-")
		stage.Must(t, l.Campaigns.Applied(t.Context(), firstcome.Change{Campaign: "b", Version: 1, Kind: firstcome.ChangeTerms}, false))
		stage.Must(t, stage.Err(l.Campaigns.ChangeState(t.Context(), "test", "b", 0, firstcome.ChangeClose)))
		execute(t, db, `UPDATE campaigns SET epoch = 7 WHERE id = 'b-'`)
		got, err := l.Recorder.Active(t.Context())
		want := []gate.Revision{{Campaign: "b", Version: 2, Applied: 1, Epoch: 1, TermsVersion: 1}, {Campaign: "b-", Version: 1, Epoch: 7, TermsVersion: 1, Creating: true, Open: true}}
		for n := range want {
			c, err := l.Reads.Campaign(t.Context(), want[n].Campaign)
			stage.Must(t, err)
			want[n].CampaignUID = c.CampaignUID
		}
		if diff := cmp.Diff(want, got); err != nil || diff != "" {
			t.Errorf("active, %v (-want +got):\n%s", err, diff)
		}
	})
}

func TestWhichCampaignsAreOpenIsByTheirTerms(t *testing.T) {
	onEach(t, func(t *testing.T, name string) {
		l := remoteAt(t, name)
		db := services.Beside(t, name)
		past, future := time.Now().Add(-time.Hour).UnixMicro(), time.Now().Add(time.Hour).UnixMicro()
		want := map[firstcome.CampaignID]bool{}
		for _, c := range []struct {
			id, change string
			open       bool
		}{
			{"without-times", `epoch = 1`, true},
			{"between", fmt.Sprintf(`opens_at = %d, closes_at = %d`, past, future), true},
			{"not-yet", fmt.Sprintf(`opens_at = %d`, future), false},
			{"over", fmt.Sprintf(`opens_at = %d, closes_at = %d`, past-1, past), false},
			{"paused", `paused = TRUE`, false},
			{"closed", `closed = TRUE`, false},
		} {
			create(t, l, firstcome.CampaignID(c.id), 5)
			execute(t, db, fmt.Sprintf(`UPDATE campaigns SET %s WHERE id = '%s'`, c.change, c.id))
			want[firstcome.CampaignID(c.id)] = c.open
		}
		all, err := l.Recorder.Active(t.Context())
		stage.Must(t, err)
		got := map[firstcome.CampaignID]bool{}
		for _, r := range all {
			got[r.Campaign] = r.Open
		}
		stage.Same(t, "open", want, got)
	})
}

func TestActiveCampaignsMayBeMoreThanAPage(t *testing.T) {
	onEach(t, func(t *testing.T, name string) {
		l := remoteAt(t, name)
		create(t, l, "c", 5)
		db := services.Beside(t, name)
		var want []firstcome.CampaignID
		for n := range 2000 {
			want = append(want, firstcome.CampaignID(fmt.Sprintf("c-%04d", n)))
		}
		copyRow := `INSERT INTO campaigns (id, version, terms_version, applied, gate, epoch, secret, decided_at, created_at)
			SELECT '%s', version, terms_version, applied, gate, epoch, secret, decided_at, created_at FROM campaigns WHERE id = 'c'`
		tx, err := db.Begin()
		stage.Must(t, err)
		for _, id := range want {
			execute(t, tx, fmt.Sprintf(copyRow, id))
		}
		stage.Must(t, tx.Commit())
		active(t, l, append([]firstcome.CampaignID{"c"}, want...)...)
	})
}
