package campaign

import (
	"database/sql"
	"errors"
	"time"

	"github.com/firstcome/firstcome/internal/sqldb"
)

// ReasonLost is the reason of a generation that ended because its gate lost the line: the users in line are unknown.
const ReasonLost = "lost"

// LoseLine ends the line of a closed campaign whose gate has lost it, in a transaction: see ledger.Recorder.LoseLine. The ledger may
// have no ticket of the line: it only knows the counters that the gate last reported.
func LoseLine(t *sqldb.Tx, s *Row, now time.Time) error {
	if !s.Closed {
		return nil
	}
	if lined, err := MayBeLined(t, s); err != nil || !lined {
		return err
	}
	var before string
	err := t.Row(`SELECT reason FROM past_lines WHERE campaign_id = ? AND generation = ?`, string(s.ID), s.Line.Generation-1).Scan(&before)
	switch {
	case err == nil && before == ReasonLost && s.Line.LastTicket == 0: // this line was ended before
		return nil
	case err != nil && !errors.Is(err, sql.ErrNoRows):
		return err
	}
	if err := InsertPast(t, s.ID, s.Line.Ended(ReasonLost, now)); err != nil {
		return err
	}
	return beginLine(t, s)
}

// MayBeLined reports whether users may be in line, even if the ledger knows of no ticket. It checks also the pace of earlier terms,
// because users stay in line when the pace is removed.
func MayBeLined(t *sqldb.Tx, s *Row) (is bool, err error) {
	if s.Pace != nil || s.Line.LastTicket > 0 {
		return true, nil
	}
	rows, err := t.Query(`SELECT payload FROM changes WHERE campaign_id = ? AND kind = 'terms'`, string(s.ID))
	err = sqldb.EachRow(rows, err, func(take sqldb.Scan) error {
		payload, err := sqldb.One[string](take)
		if err != nil {
			return err
		}
		terms, err := DecodeTerms(payload)
		is = is || terms.Pace != nil
		return err
	})
	return is, err
}
