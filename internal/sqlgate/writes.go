package sqlgate

import (
	"time"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/campaign"
	"github.com/firstcome/firstcome/internal/sqldb"
)

// A writes gathers what a transaction of the gate decides. Deciding a claim writes nothing. flush writes everything, so that the
// claims of many campaigns are written together.
type writes struct {
	*sqldb.Tx
	queries *queries
	coupons []campaign.Placed
	joins   []ticket   // new tickets
	ends    []ticket   // ended tickets: see ticket.outcome
	past    []pastLine // ended generations
}

// writesIn returns the empty writes of a transaction. The caller puts it into g.spare when the transaction needs it no more, so that
// the next one need not allocate.
func (g *Gate) writesIn(t *sqldb.Tx) *writes {
	w, is := g.spare.Get().(*writes)
	if !is {
		w = &writes{queries: g.queries}
	}
	w.Tx, w.coupons, w.joins, w.ends, w.past = t, w.coupons[:0], w.joins[:0], w.ends[:0], w.past[:0]
	return w
}

// stage notes the coupons issued at now and how they and the line change the row, so that the transaction writes them.
func (w *writes) stage(row *campaign.Row, s campaign.Row, issued []firstcome.Coupon, now time.Time) {
	if len(issued) > 0 || s.Line != row.Line || phase(s, now) != phase(s, row.DecidedAt) || s.Instants != row.Instants {
		s.DecidedAt = now
	} else if !s.QuarantineMoved {
		return // the window's answer is the same at the time that the row has
	}
	for _, c := range issued {
		s.Position++
		w.coupons = append(w.coupons, campaign.Placed{Coupon: c, Position: s.Position, RecordedAt: now.UnixMicro()})
	}
	if len(issued) > 0 {
		campaign.HasFacts(w.Tx, s.ID) // these issues are facts without a run: see package campaign
	}
	campaign.PutRow(w.Tx, row, s)
}

// flush writes the decisions, except the rows of campaigns. A few wide statements cover the claims of many campaigns.
func (w *writes) flush() error {
	if len(w.coupons) > 0 {
		if err := campaign.WriteCoupons(w.Tx, w.coupons); err != nil {
			return err
		}
	}
	if len(w.joins)+len(w.ends)+len(w.past) > 0 {
		return w.flushLines()
	}
	return nil
}
