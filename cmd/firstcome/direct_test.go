//go:build !check

package main

import (
	"fmt"
	"testing"
	"time"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/audit"
	"github.com/firstcome/firstcome/internal/ledger"
	"github.com/firstcome/firstcome/test/services"
	"github.com/firstcome/firstcome/test/stage"
)

// TestF61WhatIsIssuedDirectlyStaysSoThroughARebuild issues coupons on Redis directly, before the opening and in a pause. Then Redis loses the holders,
// while one coupon is only in its journal, and is rebuilt. A coupon from before the opening that is not marked as direct is a breach.
func TestF61WhatIsIssuedDirectlyStaysSoThroughARebuild(t *testing.T) {
	ledgers(t, func(t *testing.T, name string) {
		r := &rewind{desk: newDesk(t, services.Redis.Database(t), name, nil)}
		terms := stage.Terms(10)
		terms.OpensAt = time.Now().Add(time.Hour).UTC().Truncate(time.Second)
		r.reaches("c", r.ledger.Campaigns.Create(t.Context(), "test", "c", terms))
		stage.Same(t, "a claim before the opening", []string{"not_open:0"}, r.claims("a"))
		r.directly("a")
		r.records()
		r.reaches("c", stage.Err(r.ledger.Campaigns.ChangeState(t.Context(), "op", "c", 0, firstcome.ChangePause)))
		r.directly("b")
		direct := func(at string, c firstcome.Coupon) string { return fmt.Sprint(c.User, " ", c.Direct, " ", at) }
		look := func() (all []string) {
			for _, user := range []firstcome.UserID{"a", "b"} {
				c, err := r.remote.gate.CouponOf(t.Context(), "c", user)
				stage.Must(t, err)
				all = append(all, direct("at the gate", c))
			}
			stage.Must(t, r.ledger.Reads.Coupons(t.Context(), "c", ledger.Page{}, func(c firstcome.Coupon) error {
				all = append(all, direct("in the ledger", c))
				return nil
			}))
			return all
		}
		stage.Same(t, "before", []string{"a true at the gate", "b true at the gate", "a true in the ledger"}, look())
		r.do("DEL", r.key("holders"))
		r.rebuilt(r.rebuilder())
		stage.Same(t, "after", []string{"a true at the gate", "b true at the gate", "a true in the ledger", "b true in the ledger"}, look())
		if state, err := r.remote.gate.State(t.Context(), "c"); err != nil || !state.OpenedAt.IsZero() {
			t.Errorf("the gate says that it opened at %v, %v", state.OpenedAt, err)
		}
		r.audited()

		db := services.Beside(t, name)
		_, err := db.Exec(`UPDATE coupons SET direct = FALSE WHERE number = 2`)
		stage.Must(t, err)
		found, err := audit.Ledger(t.Context(), r.ledger.Tables().Source(), "c", nil, nil)
		stage.Must(t, err)
		if found.Breaches.Count["P7"] != 1 {
			t.Errorf("the audit finds %+v of a claim before the opening", found.Breaches)
		}
	})
}
