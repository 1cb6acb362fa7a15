package campaign

import (
	"cmp"
	"time"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/gate"
	"github.com/firstcome/firstcome/internal/sqldb"
)

// An Entry has the subject of a line of the audit log, and its detail.
type Entry struct {
	Campaign firstcome.CampaignID
	User     firstcome.UserID
	Number   int64
	Detail   string // JSON
}

// AddLog writes a line of the audit log: at a time, an actor did an action.
func AddLog(t *sqldb.Tx, at time.Time, actor, action string, e Entry) error {
	_, err := t.Change(`INSERT INTO audit_log (at, actor, action, campaign_id, user_id, number, detail)
		VALUES (?, ?, ?, ?, ?, ?, ?)`,
		at.UnixMicro(), actor, action, sqldb.OrNull(e.Campaign), sqldb.OrNull(e.User), sqldb.OrNull(e.Number), e.Detail)
	return err
}

// termsDetail returns the detail of an audit log line about a change of terms. before and after are JSON.
func termsDetail(before, after string) string { return `{"old":` + before + `,"new":` + after + `}` }

// AddLogJSON encodes a detail as JSON and calls AddLog with it.
func AddLogJSON(t *sqldb.Tx, at time.Time, actor, action string, detail map[string]any, e Entry) error {
	e.Detail = JSON(detail)
	return AddLog(t, at, actor, action, e)
}

// LogDetail returns the detail of the audit log for a change with a payload. before is the payload of the previous terms, or empty if
// the change creates the campaign.
func LogDetail(kind firstcome.ChangeKind, before, payload string) string {
	switch kind {
	case firstcome.ChangeTerms, firstcome.ChangeReconcile:
		return termsDetail(cmp.Or(before, "null"), payload)
	case firstcome.ChangeRebuild:
		return payload
	}
	return Nothing
}

// VoidsOf selects the numbers of a user's voided coupons in a campaign. COALESCE stops the planner from using the index by campaign, with
// which it would read all of the campaign's lines.
const VoidsOf = `SELECT number FROM audit_log WHERE user_id = ? AND COALESCE(campaign_id, '') = ? AND action = 'coupon.void'`

// CouponIssue is the action of a direct issue in the audit log.
const CouponIssue = "coupon.issue"

// LogDirect notes in the audit log how many coupons a direct issue issued, and how many users were in line. It notes nothing if order
// is nil, or if no coupon was issued.
func LogDirect(t *sqldb.Tx, order *gate.Order, id firstcome.CampaignID, decisions []firstcome.Decision) error {
	if order == nil {
		return nil
	}
	issued, waiting := int64(0), int64(0)
	var last firstcome.Coupon
	for n := range decisions {
		d := &decisions[n]
		if waiting = max(waiting, d.InLine); d.Outcome == firstcome.Issued {
			issued, last = issued+1, d.Coupon
		}
	}
	if issued == 0 {
		return nil
	}
	about, detail := Entry{Campaign: id}, map[string]any{"issued": issued, "last_number": last.Number, "waiting": waiting}
	if issued == 1 {
		about.User, about.Number = last.User, last.Number
	}
	if order.Reason != "" {
		detail["reason"] = order.Reason
	}
	return AddLogJSON(t, decisions[0].At, order.Actor, CouponIssue, detail, about)
}
