package ledger

import (
	"context"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/campaign"
	"github.com/firstcome/firstcome/internal/gate"
	"github.com/firstcome/firstcome/internal/sqldb"
)

// LogDirect notes in the audit log a direct issue at a gate beside the ledger. If it issued no coupon, LogDirect notes nothing.
func (rc *Recorder) LogDirect(ctx context.Context, order gate.Order, id firstcome.CampaignID, decisions []firstcome.Decision) error {
	err := rc.db.Update(ctx, func(t *sqldb.Tx) error {
		return campaign.LogDirect(t, &order, id, decisions)
	})
	return sqldb.Wrap(err, "log a direct issue of %s", id)
}

// LoseLine ends the line of a closed campaign whose gate has lost it, with the counters that the ledger has. It may be repeated. If
// the campaign is not closed, LoseLine changes nothing.
func (rc *Recorder) LoseLine(ctx context.Context, id firstcome.CampaignID) error {
	err := rc.store.Locked(ctx, id, func(t *sqldb.Tx, s campaign.Row) error { return campaign.LoseLine(t, &s, rc.store.DecidesAt(s)) })
	return sqldb.Wrap(err, "end the line of %s", id)
}

// lines records a remote gate's report about its line. It adds ended generations that the ledger lacks. It updates the line's counters if
// the report is later than the row. The ledger does not learn which users joined or left.
func (r *recording) lines() error {
	if r.epochGiven != r.Epoch { // a rebuild ended that gate's line
		return nil
	}
	for _, p := range r.report.Past {
		known, err := r.Exists(`SELECT count(*) FROM past_lines WHERE campaign_id = ? AND generation = ?`, string(r.ID), p.Generation)
		if err == nil && !known {
			err = campaign.InsertPast(r.Tx, r.ID, p)
		}
		if err != nil {
			return err
		}
	}
	l := r.report.Line
	if !l.Later(r.Line) {
		return nil
	}
	return campaign.SetLine(r.Tx, r.ID, l)
}
