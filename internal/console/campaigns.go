package console

import (
	"context"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/figures"
	"github.com/firstcome/firstcome/internal/ledger"
)

// campaignsPerPage is the number of campaigns on a page.
const campaignsPerPage = 50

// A campaignsPage lists campaigns: open ones first, then those that open next.
type campaignsPage struct {
	Rows   []campaignRow
	Search string
	More   string // link to the next page; empty on the last
}

// A campaignRow is one campaign in the list.
type campaignRow struct {
	ID                 firstcome.CampaignID
	Name               string
	State              string // see figures.Sample; and Why
	Why                string
	KnownAt            time.Time
	Quantity           int64
	InForce            int64
	Unknown            bool // the number of coupons in force is unknown
	OpensAt            time.Time
	OpensIn            time.Duration // zero if it has opened, or was closed before
	LapsedAt           time.Time     // when the coupons of a campaign expired that is not closed; zero if they have not
	firstcome.Instants               // zero if it has not happened, or is unknown
	Restocked          bool          // coupons came back after it first sold out, or may have: see core.restocked
	Now                time.Time     // by the clock of what decides
	Waiting            *int64        // nil if it has no line, or if the count is unknown
	Unrecorded         *int64        // nil if unknown
	Proved             *proving      // nil if never verified
}

// Share returns the share of the quantity that is in force, from 0 to 1.
func (r campaignRow) Share() float64 {
	if r.Unknown || r.Quantity == firstcome.Unlimited || r.Quantity == 0 {
		return 0
	}
	return min(1, float64(r.InForce)/float64(r.Quantity))
}

// campaignHandlers list campaigns, create them, and show and change their terms.
type campaignHandlers struct{ *core }

func (c *campaignHandlers) list(v *view) error {
	page := campaignsPage{Search: strings.TrimSpace(v.form.Get("q"))}
	offset, _ := strconv.Atoi(v.form.Get("offset")) // our own links have valid numbers
	found, err := c.Ledger.List(v.r.Context(), ledger.Listing{Text: page.Search, At: c.Clock(), Offset: max(0, offset), Limit: campaignsPerPage + 1})
	if err != nil {
		return err
	}
	if len(found) > campaignsPerPage {
		found = found[:campaignsPerPage]
		page.More = Root + "?" + url.Values{"q": {page.Search}, "offset": {strconv.Itoa(max(0, offset) + campaignsPerPage)}}.Encode()
	}
	var ids []firstcome.CampaignID
	for n := range found {
		ids = append(ids, found[n].ID)
	}
	proofs, err := c.proved(v.r.Context(), ids...)
	if err != nil {
		return err
	}
	for n, now := range c.Watcher.Of(v.r.Context(), found) {
		row := c.rowOf(v.r.Context(), &found[n], now)
		row.Proved = proofs[row.ID]
		page.Rows = append(page.Rows, row)
	}
	return v.render(http.StatusOK, "campaigns", v.say("캠페인", "Campaigns"), page)
}

// rowOf returns a campaign's row. It takes the terms from the ledger, and the figures from now, a sample of the gate. A figure that the sample
// lacks is unknown.
func (c *core) rowOf(ctx context.Context, s *ledger.Status, now figures.Sample) campaignRow {
	row := campaignRow{
		ID: s.ID, Name: s.Name, State: now.State, Quantity: s.Quantity, Unknown: now.InForce == nil, OpensAt: s.OpensAt,
		Waiting: now.Waiting, Unrecorded: now.Unrecorded, Instants: now.Instants, Why: now.Why, KnownAt: now.KnownAt, Now: s.Now,
	}
	if now.InForce != nil {
		row.InForce = *now.InForce
	}
	row.Restocked = !row.SoldOutAt.IsZero() && c.restocked(ctx, s, now)
	if now.State == firstcome.Closed.String() {
		row.ClosedAt = s.Since(firstcome.Closed)
	}
	if !s.Closed && now.State != firstcome.Closed.String() && s.HasLapsed(s.Now) {
		row.LapsedAt = s.ExpiresAt(s.Now)
	}
	if !s.Closed && s.OpensAt.After(s.Now) {
		row.OpensIn = s.OpensAt.Sub(s.Now)
	}
	return row
}

// restocked reports whether a campaign that sold out had coupons again: some are left, or the last one was issued later. It also reports true if that
// is unknown.
func (c *core) restocked(ctx context.Context, s *ledger.Status, now figures.Sample) bool {
	if now.InForce == nil || *now.InForce < s.Quantity || now.Unrecorded == nil || *now.Unrecorded > 0 {
		return true
	}
	last, err := c.Ledger.StepsAt(ctx, s.ID, []int64{lastNumber(s)})
	return err != nil || len(last) == 0 && lastNumber(s) > 0 || len(last) > 0 && last[0].IssuedAt.After(now.Instants.SoldOutAt)
}

// SoldOutAfter returns the time from the opening to the first sell-out, or nil if unknown.
func (r campaignRow) SoldOutAfter() *time.Duration {
	if r.OpenedAt.IsZero() || r.SoldOutAt.Before(r.OpenedAt) { // direct issues may use up the quantity before the opening
		return nil
	}
	d := r.SoldOutAt.Sub(r.OpenedAt)
	return &d
}

// Bounded reports whether the quantity has a limit.
func (r campaignRow) Bounded() bool { return r.Quantity != firstcome.Unlimited }
