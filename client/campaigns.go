package client

import (
	"context"
	"net/http"
	"net/url"
	"strconv"
)

// CreateCampaign creates a campaign. A Problem with status 409 means that its id is taken.
func (c *Client) CreateCampaign(ctx context.Context, n NewCampaign) (Campaign, error) {
	return ask[Campaign](ctx, c, request{method: http.MethodPost, path: "/v1/campaigns", body: n})
}

// Campaign returns a campaign. A Problem with status 404 means that it does not exist.
func (c *Client) Campaign(ctx context.Context, id string) (Campaign, error) {
	return ask[Campaign](ctx, c, request{method: http.MethodGet, path: campaignPath(id)})
}

// Campaigns returns at most limit campaigns (0 means 100) in the order of their ids, with ids greater than after.
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

// Pause makes the server answer claims with the outcome paused until Resume.
func (c *Client) Pause(ctx context.Context, id string) (Campaign, error) {
	return c.turn(ctx, id, "pause")
}

// Resume ends a pause.
func (c *Client) Resume(ctx context.Context, id string) (Campaign, error) {
	return c.turn(ctx, id, "resume")
}

// Close closes a campaign permanently. Once it returns, no other user is issued a coupon.
func (c *Client) Close(ctx context.Context, id string) (Campaign, error) {
	return c.turn(ctx, id, "close")
}

func (c *Client) turn(ctx context.Context, id, to string) (Campaign, error) {
	return ask[Campaign](ctx, c, request{method: http.MethodPost, path: campaignPath(id, to)})
}

// Wallet returns at most limit coupons in force of a user (0 means 100), in the order of their campaigns' ids, for campaigns with ids greater than
// after.
func (c *Client) Wallet(ctx context.Context, user, after string, limit int) (List[Coupon], error) {
	path := "/v1/users/" + url.PathEscape(user) + "/coupons"
	return ask[List[Coupon]](ctx, c, request{method: http.MethodGet, path: path, query: query("after", after, "limit", number(limit))})
}
