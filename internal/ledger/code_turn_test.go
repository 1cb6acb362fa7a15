package ledger

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"testing"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/test/services"
	"github.com/firstcome/firstcome/test/stage"
)

// TestInManyCampaignsOneCodeIsLookedForAtATime and waits no longer than its caller. In one campaign, or in at most a thousand, it waits for nobody.
func TestInManyCampaignsOneCodeIsLookedForAtATime(t *testing.T) {
	l := opened(t, services.Ledgers[services.SQLite](t), "")
	insert := func(from, to int) {
		t.Helper()
		tx, err := l.db.Write.BeginTx(t.Context(), nil)
		stage.Must(t, err)
		for n := from; n <= to; n++ {
			stage.Must(t, stage.Err(tx.Exec(`INSERT INTO campaigns (id, version, terms_version, applied, gate, epoch, secret, decided_at, created_at)
				VALUES (?, 1, 1, 1, 'ledger', 1, ?, 1, 1)`, fmt.Sprint("c-", n), stage.Secret().Fingerprint())))
			stage.Must(t, stage.Err(tx.Exec(`INSERT INTO coupons (campaign_id, number, user_id, code, terms_version, issued_at, recorded_at, position) VALUES (?, 1, 'mina', ?, 1, 1, 1, 1)`,
				fmt.Sprint("c-", n), stage.Secret().Code(firstcome.CampaignID(fmt.Sprint("c-", n)), 1))))
		}
		stage.Must(t, tx.Commit())
	}
	over, end := context.WithCancel(t.Context())
	end()
	looks := func(ctx context.Context, id firstcome.CampaignID, n int) error {
		found, err := l.Reads.ByCode(ctx, id, stage.Secret().Code(firstcome.CampaignID(fmt.Sprint("c-", n)), 1))
		if err == nil && found.Coupon.Campaign != firstcome.CampaignID(fmt.Sprint("c-", n)) {
			t.Errorf("the code of campaign %d finds %+v", n, found)
		}
		return err
	}
	insert(1, manyCampaigns)
	l.Reads.codes.turn <- struct{}{} // another search is running
	if err := looks(over, "", 1); !errors.Is(err, ErrSearching) {
		t.Errorf("before the node knows how many campaigns there are, it is %v", err)
	}
	<-l.Reads.codes.turn
	stage.Must(t, looks(t.Context(), "", 1))
	l.Reads.codes.turn <- struct{}{}
	stage.Must(t, looks(t.Context(), "", manyCampaigns))
	insert(manyCampaigns+1, manyCampaigns+1)
	stage.Must(t, looks(t.Context(), "", manyCampaigns+1)) // the new one alone is tried
	if err := looks(over, "", 1); !errors.Is(err, ErrSearching) || !errors.Is(err, firstcome.ErrBusy) {
		t.Errorf("in %d campaigns it is %v", manyCampaigns+1, err)
	}
	stage.Must(t, looks(t.Context(), "c-1", 1))
	<-l.Reads.codes.turn
	for n := 1; n <= manyCampaigns+1; n += 100 {
		stage.Must(t, looks(t.Context(), "", n))
	}
	if len(l.Reads.codes.turn) > 0 {
		t.Error("the turn was not given back")
	}
	// A search that finds nothing reads the list of campaigns. It keeps its turn until it has read the list.
	var taken []*sql.Conn
	for range l.db.Conclude.DB.Stats().MaxOpenConnections {
		c, err := l.db.Conclude.DB.Conn(t.Context())
		stage.Must(t, err)
		taken = append(taken, c)
	}
	waited := l.db.Conclude.DB.Stats().WaitCount
	ended := make(chan error, 1)
	go func() {
		_, err := l.Reads.ByCode(t.Context(), "", "7ZK2M0Q9X4T1B8RC")
		ended <- err
	}()
	stage.Await(t, "a search that waits for a connection", waited+1, func() int64 { return l.db.Conclude.DB.Stats().WaitCount })
	if len(l.Reads.codes.turn) == 0 {
		t.Error("the list of many campaigns is read beside other searches")
	}
	for _, c := range taken {
		stage.Must(t, c.Close())
	}
	if err := stage.Next(t, "the end of the search", ended); !errors.Is(err, firstcome.ErrNoCoupon) {
		t.Errorf("a made-up code is %v", err)
	}
}
