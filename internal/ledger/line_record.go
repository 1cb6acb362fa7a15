package ledger

import "github.com/firstcome/firstcome"

// lines records a remote gate's report about its line. It adds ended generations that the ledger lacks. It updates the line's counters if
// the report is later than the row. The ledger does not learn which users joined or left.
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

// addPast adds a generation that ended, unless the ledger has it.
func (r *recording) addPast(p firstcome.PastLine) error {
	known, err := r.Exists(`SELECT count(*) FROM past_lines WHERE campaign_id = ? AND generation = ?`, string(r.ID), p.Generation)
	if err != nil || known {
		return err
	}
	return insertPast(r.Tx, r.ID, p)
}
