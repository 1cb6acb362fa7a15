//go:build soak && !check

package ledger_test

import (
	"errors"
	"testing"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/doctor"
	"github.com/firstcome/firstcome/test/services"
	"github.com/firstcome/firstcome/test/stage"
)

// TestF66ANodeAtAServerOfAGaleraClusterThatLagsConcludesNothingOld has the second of two servers apply nothing: a holder, a
// campaign that was paused and a claim are answered there once it has caught up.
func TestF66ANodeAtAServerOfAGaleraClusterThatLagsConcludesNothingOld(t *testing.T) {
	first, second := services.Galera(t)
	name := database(t, first, false)
	a := start(t, name, nil)
	create(t, a, "c", 9)
	at := parse(t, name)
	at.Host = second.Address()
	b := start(t, at.String(), nil)
	stage.Same(t, "before", int64(0), status(t, b).InForce)
	examine(t, name).Want(t, doctor.Warn, "cluster")
	examine(t, name).Want(t, doctor.OK, "settings")

	db := services.Beside(t, second.URL())
	lag, err := db.Conn(t.Context())
	stage.Must(t, err)
	defer lag.Close()
	stage.Must(t, stage.Err(lag.ExecContext(t.Context(), `FLUSH TABLES WITH READ LOCK`)))
	stage.Same(t, "at the first", "issued:1", claim(t, a.Gate, "c", "mina"))
	answers := map[string]chan error{"the holder": make(chan error, 1), "the campaign": make(chan error, 1)}
	go func() {
		_, err := b.Gate.CouponOf(t.Context(), "c", "mina")
		answers["the holder"] <- err
	}()
	go func() {
		s, err := b.Reads.Campaign(t.Context(), "c")
		if err == nil && s.InForce != 1 {
			err = firstcome.ErrNoCampaign
		}
		answers["the campaign"] <- err
	}()
	stage.Await(t, "reads that wait, or are answered", true, func() bool {
		var waiting int
		stage.Must(t, db.QueryRowContext(t.Context(), `SELECT count(*) FROM information_schema.processlist
			WHERE db LIKE 'firstcome%' AND command = 'Query' AND time_ms > 500`).Scan(&waiting))
		return waiting >= len(answers) || len(answers["the holder"])+len(answers["the campaign"]) > 0
	})
	stage.Must(t, stage.Err(lag.ExecContext(t.Context(), `UNLOCK TABLES`)))
	for what, answer := range answers {
		if err := <-answer; errors.Is(err, firstcome.ErrNoCoupon) || errors.Is(err, firstcome.ErrNoCampaign) {
			t.Errorf("%s is told of what was before: %v", what, err)
		}
	}
	stage.Same(t, "at the second", "already_issued:1", claim(t, b.Gate, "c", "mina"))
	keepsPlaces(t, b)
}
