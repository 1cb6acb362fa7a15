package ledger

import (
	"context"
	"database/sql"
	"errors"
	"time"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/gate"
	"github.com/firstcome/firstcome/internal/recovery"
	"github.com/firstcome/firstcome/internal/sqldb"
)

// reasonLost is the reason of a generation that ended because its gate lost the line: the users in line are unknown.
const reasonLost = "lost"

// LoseLine ends the line of a closed campaign whose gate has lost it, with the counters that the ledger has. It may be repeated. If
// the campaign is not closed, LoseLine changes nothing.
func (rc *Recorder) LoseLine(ctx context.Context, id firstcome.CampaignID) error {
	err := rc.rows.locked(ctx, id, func(t *sqldb.Tx, s stock) error { return loseLine(t, &s, rc.rows.decidesAt(s)) })
	return sqldb.Wrap(err, "end the line of %s", id)
}

// loseLine does the work of LoseLine in its transaction. The ledger may have no ticket of the line: it only knows the counters that
// the gate last reported.
func loseLine(t *sqldb.Tx, s *stock, now time.Time) error {
	if !s.Closed {
		return nil
	}
	if lined, err := mayBeLined(t, s); err != nil || !lined {
		return err
	}
	var before string
	err := t.Row(`SELECT reason FROM past_lines WHERE campaign_id = ? AND generation = ?`, string(s.ID), s.line.Generation-1).Scan(&before)
	switch {
	case err == nil && before == reasonLost && s.line.LastTicket == 0: // this line was ended before
		return nil
	case err != nil && !errors.Is(err, sql.ErrNoRows):
		return err
	}
	return loseGeneration(t, s, now)
}

// mayBeLined reports whether users may be in line, even if the ledger knows of no ticket. It checks also the pace of earlier terms,
// because users stay in line when the pace is removed.
func mayBeLined(t *sqldb.Tx, s *stock) (is bool, err error) {
	if s.Pace != nil || s.line.LastTicket > 0 {
		return true, nil
	}
	rows, err := t.Query(`SELECT payload FROM changes WHERE campaign_id = ? AND kind = 'terms'`, string(s.ID))
	err = sqldb.EachRow(rows, err, func(take sqldb.Scan) error {
		payload, err := sqldb.One[string](take)
		if err != nil {
			return err
		}
		terms, err := decodeTerms(payload)
		is = is || terms.Pace != nil
		return err
	})
	return is, err
}

// loseGeneration ends the current generation with reasonLost.
func loseGeneration(t *sqldb.Tx, s *stock, now time.Time) error {
	if err := insertPast(t, s.ID, s.line.Ended(reasonLost, now)); err != nil {
		return err
	}
	return beginLine(t, s)
}

// beginLine writes the line that follows s.line, which has ended.
func beginLine(t *sqldb.Tx, s *stock) error { return setLine(t, s.ID, s.line.Next()) }

func setLine(t *sqldb.Tx, id firstcome.CampaignID, l firstcome.Line) error {
	_, err := t.Change(`UPDATE campaigns SET generation = ?, last_ticket = ?, served_through = ?, served = ?, waiting = ? WHERE id = ?`,
		l.Generation, l.LastTicket, l.ServedThrough, l.Served, l.Waiting, string(id))
	return err
}

// carryLine ends the generation, because it is unknown which of its tickets were assigned, and begins the next one with the users
// who were carried over. So new users never get a ticket that a lost user may hold. It returns the past generations that a gate
// keeps.
func carryLine(t *sqldb.Tx, s *stock, carried recovery.Carried, now time.Time) (past []firstcome.PastLine, err error) {
	lined, err := mayBeLined(t, s)
	if err != nil {
		return nil, err
	}
	if lined || carried.People > 0 {
		if err := insertPast(t, s.ID, s.line.Ended(reasonLost, now)); err != nil {
			return nil, err
		}
		s.line = s.line.Next()
		for ; s.line.Generation < carried.Generation; s.line.Generation++ { // generations that only the line's log has
			if err := insertPast(t, s.ID, firstcome.Line{Generation: s.line.Generation}.Ended(reasonLost, now)); err != nil {
				return nil, err
			}
		}
		if carried.People > 0 {
			s.line.LastTicket, s.line.ServedThrough, s.line.Waiting = carried.Last, carried.First-1, carried.People
		}
		if err := setLine(t, s.ID, s.line); err != nil {
			return nil, err
		}
	}
	rows, err := t.Query(`SELECT `+pastColumns+` FROM past_lines WHERE campaign_id = ? ORDER BY generation DESC `+t.Dialect.Limit, string(s.ID), gate.MaxPastLines)
	return sqldb.AllRows(rows, err, scanPast)
}
