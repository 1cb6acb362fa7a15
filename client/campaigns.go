package client

import (
	"context"
	"net/http"
	"net/url"
	"strconv"
)

// CreateCampaign makes a campaign. A Problem with status 409 says that its id is taken.
func (c *Client) CreateCampaign(ctx context.Context, n NewCampaign) (Campaign, error) {
	return ask[Campaign](ctx, c, request{method: http.MethodPost, path: "/v1/campaigns", body: n})
}

// Campaign returns a campaign. A Problem with status 404 says that there is none.
func (c *Client) Campaign(ctx context.Context, id string) (Campaign, error) {
	return ask[Campaign](ctx, c, request{method: http.MethodGet, path: campaignPath(id)})
}

// Campaigns returns at most limit campaigns (0: 100) in the order of their ids,
// from the one behind after on.
func (c *Client) Campaigns(ctx context.Context, after string, limit int) (List[Campaign], error) {
	return ask[List[Campaign]](ctx, c, request{method: http.MethodGet, path: "/v1/campaigns", query: query("after", after, "limit", number(limit))})
}

// UpdateCampaign changes the named terms of a campaign; nil clears one. If version
// is not 0 and the campaign has another, the error is a Problem with status 412.
func (c *Client) UpdateCampaign(ctx context.Context, id string, version int64, changes map[string]any) (Campaign, error) {
	r := request{method: http.MethodPatch, path: campaignPath(id), body: changes}
	if version != 0 {
		r.header = http.Header{"If-Match": {`"` + strconv.FormatInt(version, 10) + `"`}}
	}
	return ask[Campaign](ctx, c, r)
}

// Pause makes the server answer claims with paused until Resume.
func (c *Client) Pause(ctx context.Context, id string) (Campaign, error) {
	return c.turn(ctx, id, "pause")
}

// Resume ends a pause.
func (c *Client) Resume(ctx context.Context, id string) (Campaign, error) {
	return c.turn(ctx, id, "resume")
}

// Close closes a campaign, for good. Once it returns, nobody new is issued a coupon.
func (c *Client) Close(ctx context.Context, id string) (Campaign, error) {
	return c.turn(ctx, id, "close")
}

// Rebuild makes the campaign's gate anew from what the ledger has. Statuses of a Problem: 409, the ledger decides the campaign, or it is
// long over.
func (c *Client) Rebuild(ctx context.Context, id string) (Rebuilt, error) {
	return ask[Rebuilt](ctx, c, request{method: http.MethodPost, path: campaignPath(id, "rebuild")})
}

// RebuildIfLost is Rebuild of a gate that has lost the campaign. If a node was faster, it returns what that came to.
func (c *Client) RebuildIfLost(ctx context.Context, id string) (Rebuilt, error) {
	return ask[Rebuilt](ctx, c, request{method: http.MethodPost, path: campaignPath(id, "rebuild"), query: query("if_lost", "1")})
}

// RebuildWithoutLineLog is Rebuild without reading the log of the campaign's line, for when Kafka has lost that, or does not come back. The
// line that the gate still has is carried over and logged again; places that only the log has are lost.
func (c *Client) RebuildWithoutLineLog(ctx context.Context, id string) (Rebuilt, error) {
	return ask[Rebuilt](ctx, c, request{method: http.MethodPost, path: campaignPath(id, "rebuild"), query: query("without_line_log", "1")})
}

// Reconcile brings back what the campaign's gate has and a ledger that was restored from a backup has forgotten. Statuses of a Problem: 409,
// the ledger is not older than the gate, or it decides the campaign.
func (c *Client) Reconcile(ctx context.Context, id string) (Reconciled, error) {
	return ask[Reconciled](ctx, c, request{method: http.MethodPost, path: campaignPath(id, "reconcile")})
}

// Estimate says what Reconcile would come to, and changes nothing. Statuses of a Problem are those of Reconcile.
func (c *Client) Estimate(ctx context.Context, id string) (Estimate, error) {
	return ask[Estimate](ctx, c, request{method: http.MethodGet, path: campaignPath(id, "reconcile")})
}

func (c *Client) turn(ctx context.Context, id, to string) (Campaign, error) {
	return ask[Campaign](ctx, c, request{method: http.MethodPost, path: campaignPath(id, to)})
}

// Changes returns at most limit changes of a campaign (0: 100) with versions above
// after, in their order.
func (c *Client) Changes(ctx context.Context, id string, after int64, limit int) (List[Change], error) {
	q := query("after", strconv.FormatInt(after, 10), "limit", number(limit))
	return ask[List[Change]](ctx, c, request{method: http.MethodGet, path: campaignPath(id, "changes"), query: q})
}

// LedgerState returns what the ledger has of a campaign.
func (c *Client) LedgerState(ctx context.Context, id string) (LedgerState, error) {
	return ask[LedgerState](ctx, c, request{method: http.MethodGet, path: campaignPath(id, "ledger")})
}

// Audit asks the server to audit a campaign, which may take minutes. A Problem with the code audit_running says that the node audits already, and
// when to ask again.
func (c *Client) Audit(ctx context.Context, id string) (Audit, error) {
	return ask[Audit](ctx, c, request{method: http.MethodGet, path: campaignPath(id, "audit")})
}

// A LogFilter chooses lines of the audit log. The zero value of a field chooses all.
type LogFilter struct {
	Campaign string
	User     string
	Before   string // the Next of the page before
	Limit    int    // at most this many; 0: 100
}

// AuditLog returns the chosen lines of the audit log, the latest first.
func (c *Client) AuditLog(ctx context.Context, f LogFilter) (List[LogEntry], error) {
	q := query("campaign", f.Campaign, "user_id", f.User, "before", f.Before, "limit", number(f.Limit))
	return ask[List[LogEntry]](ctx, c, request{method: http.MethodGet, path: "/v1/audit-log", query: q})
}

// Wallet returns at most limit coupons in force of a user (0: 100), in the order
// of their campaigns' ids, from the campaign behind after on.
func (c *Client) Wallet(ctx context.Context, user, after string, limit int) (List[Coupon], error) {
	path := "/v1/users/" + url.PathEscape(user) + "/coupons"
	return ask[List[Coupon]](ctx, c, request{method: http.MethodGet, path: path, query: query("after", after, "limit", number(limit))})
}
