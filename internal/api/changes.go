package api

import (
	"net/http"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/client"
	"github.com/firstcome/firstcome/internal/auth"
	"github.com/firstcome/firstcome/internal/wire"
)

// listChanges answers GET /v1/campaigns/{id}/changes.
func (s *Server) listChanges(w http.ResponseWriter, r *http.Request, _ auth.Caller, id firstcome.CampaignID) error {
	q := parseQuery(r)
	after, most := q.number("after"), q.limit()
	if q.err() != nil {
		return q.err()
	}
	if _, err := s.Ledger.Campaign(r.Context(), id); err != nil {
		return err
	}
	changes := []client.Change{}
	err := s.Ledger.Changes(r.Context(), id, after, most+1, func(c firstcome.Change, refused bool) error {
		changes = append(changes, wireChange(&c, refused))
		return nil
	})
	if err != nil {
		return err
	}
	changes, next := pageOf(changes, most, func(c client.Change) int64 { return c.Version })
	return writeJSON(w, http.StatusOK, client.List[client.Change]{Items: changes, Next: next})
}

// wireChange returns a change as the wire has it.
func wireChange(c *firstcome.Change, refused bool) client.Change {
	change := client.Change{Version: c.Version, Kind: string(c.Kind), At: client.Time{Time: c.At}, Refused: refused}
	switch c.Kind {
	case firstcome.ChangeTerms:
		change.Terms = wireTerms(&c.Terms)
	case firstcome.ChangeReconcile:
		change.Terms, change.Paused, change.Closed = wireTerms(&c.Terms), c.Paused, c.Closed
	case firstcome.ChangeVoid:
		user := string(c.User)
		change.Number, change.UserID = &c.Number, &user
	}
	return change
}

// wirePace returns a pace as the wire has it.
func wirePace(p *firstcome.Pace) *client.Pace {
	switch {
	case p == nil:
		return nil
	case p.PerSecond == 0:
		return &client.Pace{}
	}
	return &client.Pace{PerSecond: &p.PerSecond}
}

// wireTerms returns terms as the wire has them.
func wireTerms(t *firstcome.Terms) *client.Terms {
	terms := &client.Terms{
		Name: t.Name, OpensAt: wire.Time(t.OpensAt), ClosesAt: wire.Time(t.ClosesAt), Answer: string(t.Answer),
		Pace: wirePace(t.Pace), Waitlist: t.Waitlist, LineLog: t.Log != nil,
		Coupon: client.CouponSpec{Benefit: t.Benefit, ValidUntil: wire.Time(t.ValidUntil)},
	}
	if t.ValidFor > 0 {
		terms.Coupon.ValidFor = (*client.Duration)(&t.ValidFor)
	}
	if t.Quantity != firstcome.Unlimited {
		terms.Quantity = &t.Quantity
	}
	return terms
}
