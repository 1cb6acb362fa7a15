package ledger

import (
	"context"
	"encoding/json"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/recovery"
	"github.com/firstcome/firstcome/internal/sqldb"
)

// Where a line is logged stands in the changes of its campaign: in the terms that had it logged first, and in each rebuild, where its epoch begins.

// LineHistory returns what the changes of a campaign say of the log of its line.
func (e *Epochs) LineHistory(ctx context.Context, id firstcome.CampaignID) (recovery.LineHistory, error) {
	all, err := e.lineHistories(ctx, `c.id = ?`, string(id))
	return all[id].LineHistory, sqldb.Wrap(err, "read where the line of %s is logged", id)
}

// LineLogs calls each with the campaigns of this node's gate whose lines are logged, unless they are closed for good.
func (e *Epochs) LineLogs(ctx context.Context, each func(firstcome.CampaignID, firstcome.LineLog)) error {
	all, err := e.lineHistories(ctx, `NOT c.closed AND c.gate = ? AND c.secret = ? AND `+mayBeInLine, e.rows.gate, e.rows.fingerprint)
	for id, history := range all {
		if history.Log != nil {
			each(id, *history.Log)
		}
	}
	return sqldb.Wrap(err, "read which lines are logged")
}

// A lineHistory is a recovery.LineHistory, read up to a change of an epoch.
type lineHistory struct {
	recovery.LineHistory
	epoch int64
}

// lineHistories returns what the changes of some campaigns say of the logs of their lines.
func (e *Epochs) lineHistories(ctx context.Context, which string, args ...any) (map[firstcome.CampaignID]lineHistory, error) {
	rows, err := e.db.Conclude.QueryContext(ctx, `SELECT h.campaign_id, h.payload FROM campaigns c JOIN changes h ON h.campaign_id = c.id
		WHERE `+which+` AND h.kind IN ('terms', 'rebuild', 'reconcile') AND NOT h.refused ORDER BY h.campaign_id, h.version`, args...)
	all := map[firstcome.CampaignID]lineHistory{}
	err = sqldb.EachRow(rows, err, func(take sqldb.Scan) error {
		var id firstcome.CampaignID
		var payload string
		if err := take(&id, &payload); err != nil {
			return err
		}
		var said struct {
			Epoch int64      `json:"epoch"` // of a rebuild and a reconcile
			Log   *storedLog `json:"line_log"`
			Anew  bool       `json:"logged_anew"`
		}
		if json.Unmarshal([]byte(payload), &said) == nil { // terms that cannot be read are found by the audit
			h := all[id]
			h.hears(said.Epoch, (*firstcome.LineLog)(said.Log), said.Anew)
			all[id] = h
		}
		return nil
	})
	return all, err
}

// hears takes over what a change says: the epoch that it began, if it began one, and where the line was logged from then on.
func (h *lineHistory) hears(epoch int64, log *firstcome.LineLog, anew bool) {
	h.epoch = max(h.epoch, epoch, firstEpoch)
	switch {
	case log == nil:
		return
	case h.Log == nil || anew:
		h.Log, h.Epochs = log, map[int64]int64{h.epoch: log.First}
		return
	case epoch == 0: // terms only repeat where the line was logged first
		return
	case !log.Same(*h.Log): // by a reconcile: the ledger has forgotten that the line was logged again, elsewhere
		h.Log, h.Epochs = &firstcome.LineLog{Topic: log.Topic, Partition: log.Partition}, map[int64]int64{}
	}
	if log.First >= 0 {
		h.Epochs[epoch] = log.First
	}
}
