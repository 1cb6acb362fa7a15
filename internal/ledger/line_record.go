package ledger

import (
	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/gate"
)

// lines notes what the batch says of a remote gate's line: the generations that ended and the ledger lacks, and the
// line's counters, if they are later than those in the row. Who joined or left since is not in the ledger.
func (r *recording) lines() error {
	if r.epochGiven != r.epoch { // a rebuild ended that gate's line
		return nil
	}
	for _, p := range r.report.Past {
		if err := r.addPast(p); err != nil {
			return err
		}
	}
	l := r.report.Line
	if !l.Later(r.line) {
		return nil
	}
	return setLine(r.Tx, r.ID, l)
}

// addPast keeps a generation that ended, once.
func (r *recording) addPast(p gate.PastLine) error {
	known, err := r.Exists(`SELECT count(*) FROM past_lines WHERE campaign_id = ? AND generation = ?`, string(r.ID), p.Generation)
	if err != nil || known {
		return err
	}
	line := firstcome.Line{Generation: p.Generation, LastTicket: p.LastTicket, ServedThrough: p.ServedThrough, Served: p.Served, Waiting: p.Waiting}
	return insertPast(r.Tx, pastLine{r.ID, line, p.Reason, p.EndedAt.UnixMicro()})
}
