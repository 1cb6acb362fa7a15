package epoch

import (
	"time"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/campaign"
	"github.com/firstcome/firstcome/internal/gate"
	"github.com/firstcome/firstcome/internal/recovery"
	"github.com/firstcome/firstcome/internal/sqldb"
)

// carryLine ends the generation, because it is unknown which of its tickets were assigned, and begins the next one with the users
// who were carried over. So new users never get a ticket that a lost user may hold. It returns the past generations that a gate
// keeps.
func carryLine(t *sqldb.Tx, s *campaign.Row, carried recovery.Carried, now time.Time) (past []firstcome.PastLine, err error) {
	lined, err := campaign.MayBeLined(t, s)
	if err != nil {
		return nil, err
	}
	if lined || carried.People > 0 {
		if err := campaign.InsertPast(t, s.ID, s.Line.Ended(campaign.ReasonLost, now)); err != nil {
			return nil, err
		}
		s.Line = s.Line.Next()
		for ; s.Line.Generation < carried.Generation; s.Line.Generation++ { // generations that only the line's log has
			if err := campaign.InsertPast(t, s.ID, firstcome.Line{Generation: s.Line.Generation}.Ended(campaign.ReasonLost, now)); err != nil {
				return nil, err
			}
		}
		if carried.People > 0 {
			s.Line.LastTicket, s.Line.ServedThrough, s.Line.Waiting = carried.Last, carried.First-1, carried.People
		}
		if err := campaign.SetLine(t, s.ID, s.Line); err != nil {
			return nil, err
		}
	}
	rows, err := t.Query(`SELECT `+campaign.PastColumns+` FROM past_lines WHERE campaign_id = ? ORDER BY generation DESC `+t.Dialect.Limit, string(s.ID), gate.MaxPastLines)
	return sqldb.AllRows(rows, err, campaign.ScanPast)
}
