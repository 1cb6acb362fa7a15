//go:build !check

package ledger_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/ledger"
	"github.com/firstcome/firstcome/test/services"
	"github.com/firstcome/firstcome/test/stage"
)

// TestF72ANodeWhoseClockIsWrongServesAtThePaceOfTheServers has a node whose clock stands still in the year 2000, as that of a
// bubble does while something in it waits for a server, beside one whose clock is right. Both serve one line.
func TestF72ANodeWhoseClockIsWrongServesAtThePaceOfTheServers(t *testing.T) {
	onServers(t, func(t *testing.T, kind services.Kind) {
		const perSecond = 200
		name := kind.Database(t)
		right := start(t, name, nil)
		paced(t, right, 1000, perSecond)
		_, err := right.Gate.Claim(t.Context(), "c", people(150))
		stage.Must(t, err)
		begun := status(t, right).Now
		have := 0
		serveUntil := func(l *ledger.Ledger, coupons int) {
			for have < coupons {
				served, err := l.Gate.Serve(t.Context(), "c", 7)
				stage.Must(t, err)
				have += len(served.Coupons)
			}
		}
		serveUntil(right, 50)
		synctest.Test(t, func(t *testing.T) {
			if year := time.Now().Year(); year != 2000 {
				t.Fatalf("the bubble is in the year %d", year)
			}
			wrong := start(t, name, nil)
			d, err := wrong.Gate.Claim(t.Context(), "c", []firstcome.UserID{"late"})
			stage.Must(t, err)
			if at := d[0].At; at.Before(begun) || d[0].Place.Ticket != 151 {
				t.Errorf("who joins there has ticket %d, at %v", d[0].Place.Ticket, at)
			}
			serveUntil(wrong, 100)
		})
		serveUntil(right, 151)
		var issued []time.Time
		for n, c := range allCoupons(t, right) {
			issued = append(issued, c.IssuedAt)
			if c.Ticket != int64(n+1) || c.IssuedAt.Before(begun) {
				t.Errorf("number %d is of ticket %d, issued at %v", c.Number, c.Ticket, c.IssuedAt)
			}
		}
		stage.KeepsPace(t, issued, perSecond)
		stage.Same(t, "coupons", 151, len(issued))
		if ended := status(t, right).Now; issued[150].After(ended) {
			t.Errorf("the last one was issued at %v, after %v", issued[150], ended)
		}
	})
}
