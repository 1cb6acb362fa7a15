package campaign

import (
	"errors"
	"time"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/gate"
	"github.com/firstcome/firstcome/internal/sqldb"
)

// Lined reports whether the campaign has a line: it has a pace, or users still wait.
func (s *Row) Lined() bool { return s.Pace != nil || s.Line.Waiting > 0 }

// ChangeLine ends the generation in the transaction of a change at now, if it is over by the campaign's state before or after the
// change. It is over before the change if the window passed and no call has ended the generation yet. If this
// node's remote gate decides the campaign, that gate ends the line itself. If another Redis is the campaign's gate, the ledger ends the line, but only
// of a closed campaign.
func (r *Store) ChangeLine(t *sqldb.Tx, from, to Row, now time.Time) error {
	if to.Line = from.Line; r.Remote() {
		if errors.Is(from.Away, gate.ErrGone) {
			return LoseLine(t, &to, now)
		}
		return nil
	}
	ended, over := from.View(now).EndedLine()
	if !over {
		ended, over = to.View(now).EndedLine()
		ended.EndedAt = now
	}
	if !over {
		return nil
	}
	if err := InsertPast(t, from.ID, ended); err != nil {
		return err
	}
	return beginLine(t, &from)
}

// beginLine writes the line that follows s.line, which has ended.
func beginLine(t *sqldb.Tx, s *Row) error { return SetLine(t, s.ID, s.Line.Next()) }

// SetLine writes the counters of a campaign's line, but not its pace's bucket.
func SetLine(t *sqldb.Tx, id firstcome.CampaignID, l firstcome.Line) error {
	_, err := t.Change(`UPDATE campaigns SET generation = ?, last_ticket = ?, served_through = ?, served = ?, waiting = ? WHERE id = ?`,
		l.Generation, l.LastTicket, l.ServedThrough, l.Served, l.Waiting, string(id))
	return err
}

// PastColumns are the columns of past_lines that ScanPast reads.
const PastColumns = `generation, last_ticket, served_through, served, waiting, reason, ended_at`

// ScanPast reads a row of PastColumns.
func ScanPast(take sqldb.Scan) (p firstcome.PastLine, err error) {
	err = take(&p.Generation, &p.LastTicket, &p.ServedThrough, &p.Served, &p.Waiting, &p.Reason, sqldb.Time(&p.EndedAt))
	return p, err
}

// InsertPast writes a generation of a campaign's line that ended.
func InsertPast(t *sqldb.Tx, id firstcome.CampaignID, p firstcome.PastLine) error {
	_, err := t.Change(`INSERT INTO past_lines (campaign_id, generation, last_ticket, served_through, served, waiting, reason, ended_at)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?)`,
		string(id), p.Generation, p.LastTicket, p.ServedThrough, p.Served, p.Waiting, p.Reason, p.EndedAt.UnixMicro())
	return err
}
