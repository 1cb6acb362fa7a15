package console

import (
	"net/http"
	"time"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/figures"
	"github.com/firstcome/firstcome/internal/ledger"
)

// campaignsPerPage is how many campaigns a page lists.
const campaignsPerPage = 50

// A campaignsPage lists campaigns.
type campaignsPage struct {
	Rows []campaignRow
	Next firstcome.CampaignID // where the next page begins; empty: there is none
}

// A campaignRow is one campaign in the list.
type campaignRow struct {
	ID       firstcome.CampaignID
	Name     string
	State    string // see figures.StateOf
	Quantity int64
	InForce  int64
	OpensAt  time.Time
}

// Share returns how much of the quantity is in force, of 0 to 1.
func (r campaignRow) Share() float64 {
	if r.Quantity == firstcome.Unlimited || r.Quantity == 0 {
		return 0
	}
	return min(1, float64(r.InForce)/float64(r.Quantity))
}

func (c *Console) showCampaigns(v *view) error {
	after := firstcome.CampaignID(v.r.URL.Query().Get("after"))
	found, err := c.Ledger.Campaigns(v.r.Context(), after, campaignsPerPage+1)
	if err != nil {
		return err
	}
	var page campaignsPage
	if len(found) > campaignsPerPage {
		found = found[:campaignsPerPage]
		page.Next = found[campaignsPerPage-1].ID
	}
	for n := range found {
		page.Rows = append(page.Rows, rowOf(&found[n]))
	}
	return v.render(http.StatusOK, "campaigns", v.say("캠페인", "Campaigns"), page)
}

func rowOf(s *ledger.Status) campaignRow {
	return campaignRow{ID: s.ID, Name: s.Name, State: figures.StateOf(s.Campaign, s.Now, s.InForce), Quantity: s.Quantity, InForce: s.InForce, OpensAt: s.OpensAt}
}
