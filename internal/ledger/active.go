package ledger

import (
	"context"
	"time"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/flow"
)

// campaignsPage is how many campaign ids are read at once: some 30 kB.
const campaignsPage = 1000

// Active returns the campaigns that recorders have to look at, in the order of their ids: those of this
// node's gate and secret that are not retired. A campaign that is created or retired during the call may be
// among them or not.
func (l *Ledger) Active(ctx context.Context) ([]flow.Revision, error) {
	all, err := l.atGate(ctx, `c.retired_at IS NULL`)
	return all, wrap(err, "read the active campaigns")
}

// atGate returns the campaigns that meet a condition, in the order of their ids: those of this node's gate
// and secret that the gate has not forgotten.
func (l *Ledger) atGate(ctx context.Context, condition string, args ...any) (all []flow.Revision, err error) {
	for after, more := firstcome.CampaignID(""), true; more; {
		before := len(all)
		if all, err = l.atGateBehind(ctx, all, after, condition, args); err != nil {
			return nil, err
		}
		if more = len(all) == before+campaignsPage; more {
			after = all[len(all)-1].Campaign
		}
	}
	return all, nil
}

// atGateQuery returns the query of a page of atGate.
func atGateQuery(condition string) string {
	return `SELECT c.id, c.version, c.epoch, c.created_at, c.drained_through FROM campaigns c
		WHERE c.gate = ? AND c.forgotten_at IS NULL AND c.id > ? AND c.secret = ? AND ` + condition + ` ORDER BY c.id LIMIT ?`
}

// atGateBehind appends the page of atGate that follows an id.
func (l *Ledger) atGateBehind(ctx context.Context, all []flow.Revision, after firstcome.CampaignID, condition string, args []any) ([]flow.Revision, error) {
	given := append([]any{l.gate, string(after), l.fingerprint}, args...)
	rows, err := l.conclude.QueryContext(ctx, atGateQuery(condition), append(given, campaignsPage)...)
	page, err := allRows(rows, err, func(take scan) (r flow.Revision, err error) {
		var createdAt int64
		err = take(&r.Campaign, &r.Version, &r.Epoch, &createdAt, &r.Drained)
		r.Marker = l.marker(time.UnixMicro(createdAt), l.fingerprint)
		return r, err
	})
	return append(all, page...), err
}
