package epoch

import (
	"context"
	"encoding/json"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/campaign"
	"github.com/firstcome/firstcome/internal/recovery"
	"github.com/firstcome/firstcome/internal/sqldb"
)

// The changes of a campaign hold where its line is logged. The terms that first set a log name it. Each rebuild names the log again,
// and the offset at which its epoch begins.

// LineHistory returns the data of a campaign's changes about the log of its line.
func (e *Epochs) LineHistory(ctx context.Context, id firstcome.CampaignID) (recovery.LineHistory, error) {
	all, err := e.lineHistories(ctx, `c.id = ?`, string(id))
	return all[id].LineHistory, sqldb.Wrap(err, "read where the line of %s is logged", id)
}

// LineLogs calls each with the campaigns of this node's gate whose lines have a log. It leaves out campaigns that an operator closed.
func (e *Epochs) LineLogs(ctx context.Context, each func(firstcome.CampaignID, firstcome.LineLog)) error {
	all, err := e.lineHistories(ctx, `NOT c.closed AND c.gate = ? AND c.secret = ? AND `+campaign.MayBeInLine, e.store.Gate, e.store.Fingerprint)
	for id, history := range all {
		if history.Log != nil {
			each(id, *history.Log)
		}
	}
	return sqldb.Wrap(err, "read which lines are logged")
}

// A lineHistory is a recovery.LineHistory while its changes are read. epoch is the epoch of the last change read.
type lineHistory struct {
	recovery.LineHistory
	epoch int64
}

// lineHistories returns the data about line logs from the changes of the campaigns that a condition selects.
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
			Epoch int64               `json:"epoch"` // of a rebuild and a reconcile
			Log   *campaign.StoredLog `json:"line_log"`
			Anew  bool                `json:"logged_anew"`
		}
		if json.Unmarshal([]byte(payload), &said) == nil { // the audit reports unreadable payloads
			h := all[id]
			h.hears(said.Epoch, (*firstcome.LineLog)(said.Log), said.Anew)
			all[id] = h
		}
		return nil
	})
	return all, err
}

// hears adds the data of a change: the epoch that it began, or 0, and the log of the line from then on, or nil.
func (h *lineHistory) hears(epoch int64, log *firstcome.LineLog, anew bool) {
	h.epoch = max(h.epoch, epoch, campaign.FirstEpoch)
	switch {
	case log == nil:
		return
	case h.Log == nil || anew:
		h.Log, h.Epochs = log, map[int64]int64{h.epoch: log.First}
		return
	case epoch == 0: // terms only repeat the first log
		return
	case !log.Same(*h.Log): // from a reconcile: the ledger lost the change that began this log
		h.Log, h.Epochs = &firstcome.LineLog{Topic: log.Topic, Partition: log.Partition}, map[int64]int64{}
	}
	if log.First >= 0 {
		h.Epochs[epoch] = log.First
	}
}
