//go:build !check

package ledger_test

import (
	"context"
	"database/sql"
	"fmt"
	"testing"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/test/services"
	"github.com/firstcome/firstcome/test/stage"
)

// TestF75AServiceBehindAChangeGoesByTheChange has a change of the row wait for the lock before the service, by hand: pause,
// close, no pace.
func TestF75AServiceBehindAChangeGoesByTheChange(t *testing.T) {
	onServers(t, func(t *testing.T, kind services.Kind) {
		nodes, name := nodesOn(t, kind, 2, 50)
		db := services.Beside(t, name)
		for change, want := range map[string]string{
			`paused = TRUE`:               "0, , 2",
			`closed = TRUE`:               "0, closed, 0",
			`pace = NULL`:                 "2, , 0",
			`opens_at = 9007199254740992`: "0, , 2",
			`quantity = 1`:                "1, sold_out, 0",
		} {
			id := firstcome.CampaignID("c-" + change[:4])
			stage.Must(t, nodes[0].Campaigns.Create(t.Context(), "test", id, withPace(9, 1000)))
			stage.Same(t, "in line", "waiting:0 waiting:0", claim(t, nodes[0].Gate, id, "a", "b"))
			hand := begin(t, db, `UPDATE campaigns SET `+change+` WHERE id = '`+string(id)+`'`)
			served := make(chan string, 1)
			go func() {
				s, err := nodes[1].Gate.Serve(context.Background(), id, 9)
				if err != nil {
					t.Error(err)
				}
				served <- fmt.Sprintf("%d, %s, %d", len(s.Coupons), s.Ended, s.Waiting)
			}()
			waitUntilBlocked(t, kind, db)
			stage.Must(t, hand.Commit())
			stage.Same(t, change, want, <-served)
		}
	})
}

// TestF71AServiceWhoseCommitIsUnknownIsDoneOnceOrNotAtAll has the reply of each statement of a service lost in turn, that of COMMIT among them: the next service goes on
// behind what was committed, and nobody is skipped or served twice.
func TestF71AServiceWhoseCommitIsUnknownIsDoneOnceOrNotAtAll(t *testing.T) {
	onServers(t, func(t *testing.T, kind services.Kind) {
		name := kind.Database(t)
		direct := start(t, name, nil)
		paced(t, direct, 1000, 0)
		proxy, far := through(t, name)
		l := start(t, far, nil)
		claims, err := direct.Gate.Claim(t.Context(), "c", people(200))
		stage.Must(t, err)
		stage.Same(t, "the last one's ticket", int64(200), claims[199].Place.Ticket)
		unknown, ended := 0, false
		for n, k := 1, 1; n <= 60 && !(ended && unknown > 0); n, k = n+1, k+1 { // see TestF52AVoidWhoseCommitIsUnknownIsNotRunAgain
			lost := proxy.DropReply(k)
			if _, err := l.Gate.Serve(t.Context(), "c", 3); err != nil {
				unknown++
			}
			select {
			case <-lost:
			default:
				ended, k = true, 0
			}
			proxy.Heal()
		}
		if unknown == 0 {
			t.Error("no service was unknown")
		}
		serveAll(t, direct)
		all := allCoupons(t, direct)
		stage.Same(t, "coupons", 200, len(all))
		for n, c := range all {
			if c.Ticket != int64(n+1) || c.User != people(200)[n] {
				t.Errorf("number %d is of the ticket %d, of %s", n+1, c.Ticket, c.User)
			}
		}
		keepsPlaces(t, direct)
	})
}

// TestTheLineOfACampaignWithoutAPaceCostsNoStatement holds that tickets are looked up only where there is a line.
func TestTheLineOfACampaignWithoutAPaceCostsNoStatement(t *testing.T) {
	onServers(t, func(t *testing.T, kind services.Kind) {
		nodes, name := nodesOn(t, kind, 1, 5)
		rename := func(db *sql.DB, from, to string) {
			_, err := db.Exec(`ALTER TABLE ` + from + ` RENAME TO ` + to)
			stage.Must(t, err)
		}
		db := services.Beside(t, name)
		rename(db, "tickets", "hidden")
		defer rename(db, "hidden", "tickets")
		stage.Same(t, "claims", "issued:1 issued:2", claim(t, nodes[0].Gate, "c", "a", "b"))
		_, err := nodes[0].Campaigns.Void(t.Context(), "test", "c", 1, "test")
		stage.Must(t, err)
	})
}
