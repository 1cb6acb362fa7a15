//go:build !check

package ledger_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/test/services"
	"github.com/firstcome/firstcome/test/stage"
)

// TestAMadeUpCampaignTakesNoTransaction claims of campaigns that there are not while no transaction gets at
// their table: more claims at once than there are connections that decide.
func TestAMadeUpCampaignTakesNoTransaction(t *testing.T) {
	onServers(t, func(t *testing.T, kind services.Kind) {
		nodes, name := nodesOn(t, kind, 1, 5)
		locked, err := services.Beside(t, name).Conn(t.Context())
		stage.Must(t, err)
		defer locked.Close()
		statements := map[services.Kind][2]string{
			services.MariaDB:    {`LOCK TABLES campaigns READ`, `UNLOCK TABLES`},
			services.PostgreSQL: {`BEGIN; LOCK TABLE campaigns IN EXCLUSIVE MODE`, `ROLLBACK`},
		}[kind]
		stage.Must(t, stage.Err(locked.ExecContext(t.Context(), statements[0])))
		defer locked.ExecContext(context.WithoutCancel(t.Context()), statements[1])
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		answers := make(chan error, 100)
		for n := range cap(answers) {
			go func() {
				_, err := nodes[0].Gate.Claim(ctx, firstcome.CampaignID(fmt.Sprint("made-up-", n)), users("a"))
				answers <- err
			}()
		}
		for range cap(answers) {
			if err := <-answers; !errors.Is(err, firstcome.ErrNoCampaign) {
				t.Fatalf("it is answered %v", err)
			}
		}
	})
}

// TestACampaignIsThereAtOnceForWhoAskedBefore asks a node until another makes the campaign.
func TestACampaignIsThereAtOnceForWhoAskedBefore(t *testing.T) {
	onServers(t, func(t *testing.T, kind services.Kind) {
		nodes, name := nodesOn(t, kind, 2, 5)
		if _, err := nodes[0].Gate.Claim(t.Context(), "late", users("a")); !errors.Is(err, firstcome.ErrNoCampaign) {
			t.Fatalf("it is answered %v", err)
		}
		create(t, nodes[1], "late", 5)
		for n, user := range []firstcome.UserID{"a", "b"} {
			stage.Same(t, "issued", fmt.Sprint("issued:", n+1), claim(t, nodes[0].Gate, "late", user))
		}
		db := services.Beside(t, name)
		for _, table := range []string{"coupons", "changes", "campaigns"} {
			column := map[string]string{"campaigns": "id"}[table]
			if column == "" {
				column = "campaign_id"
			}
			stage.Must(t, stage.Err(db.ExecContext(t.Context(), `DELETE FROM `+table+` WHERE `+column+` = 'late'`)))
		}
		for range 2 { // from memory, and not
			if _, err := nodes[0].Gate.Claim(t.Context(), "late", users("a")); !errors.Is(err, firstcome.ErrNoCampaign) {
				t.Errorf("when it is gone it is answered %v", err)
			}
		}
	})
}
