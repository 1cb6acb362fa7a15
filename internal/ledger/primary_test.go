//go:build !check && (!race || soak)

package ledger

import (
	"database/sql"
	"errors"
	"net/url"
	"slices"
	"testing"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/test/services"
	"github.com/firstcome/firstcome/test/stage"
)

// demotions are how a server stops to be the primary while connections to it live on.
var demotions = map[services.Kind][]string{
	services.MariaDB:    {`SET GLOBAL read_only = 1`},
	services.PostgreSQL: {`ALTER SYSTEM SET default_transaction_read_only = on`, `SELECT pg_reload_conf()`},
}

// TestF61AConnectionToAPrimaryThatIsOneNoLongerConcludesNothing has a node that keeps its connections
// while the server at their other end is demoted and a standby is promoted, where the campaign goes on:
// nobody is told what the old primary believes.
func TestF61AConnectionToAPrimaryThatIsOneNoLongerConcludesNothing(t *testing.T) {
	for kind, demotion := range demotions {
		t.Run(string(kind), func(t *testing.T) {
			primary := kind.Primary(t)
			first, err := primary.Database(t.Context())
			stage.Must(t, err)
			u, err := url.Parse(first)
			stage.Must(t, err)
			proxy := services.Through(t, u.Host)
			name, err := proxy.URL(first)
			stage.Must(t, err)
			l := opened(t, name, "")
			for _, db := range []*sql.DB{l.db.Write, l.db.Conclude.DB} {
				db.SetConnMaxIdleTime(0) // they are not made anew meanwhile
			}
			quantity(t, l, 1)
			told(t, l, "a", firstcome.Issued)
			told(t, l, "b", firstcome.SoldOut)

			standby := primary.Standby(t)
			second, err := standby.At(first)
			stage.Must(t, err)
			stage.Must(t, services.Execute(t.Context(), first, demotion...))
			stage.Must(t, errors.Join(standby.CatchUp(t.Context()), standby.Promote(t.Context())))
			other := opened(t, second, "")
			quantity(t, other, 2)
			// Stock that came back is held for a moment.
			stage.Await(t, "what b is answered", firstcome.Issued, func() firstcome.Outcome { return at(t, other, "b") })
			proxy.SetUpstream(standby.Address())

			if kind == services.PostgreSQL {
				// It is heard with the next answer that the server takes no writes.
				stage.Must(t, stage.Err(l.Reads.Campaign(t.Context(), "c")))
			}
			if s, err := l.Reads.Campaign(t.Context(), "c"); err != nil || s.Version != 2 {
				t.Errorf("the campaign is at version %d, %v", s.Version, err)
			}
			if c, err := l.Gate.CouponOf(t.Context(), "c", "b"); err != nil || c.Number != 2 {
				t.Errorf("the holder is told of number %d, %v", c.Number, err)
			}
			var holders []firstcome.UserID
			version, err := l.Gate.Holders(t.Context(), "c", func(user firstcome.UserID) { holders = append(holders, user) })
			if slices.Sort(holders); err != nil || version != 2 || len(holders) != 2 {
				t.Errorf("at version %d %v hold one, %v", version, holders, err)
			}
			told(t, l, "b", firstcome.AlreadyIssued)
			told(t, l, "d", firstcome.SoldOut)
		})
	}
}
