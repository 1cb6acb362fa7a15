package console

import (
	"net/http"
	"strconv"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/ledger"
)

// A livePage shows one campaign as it is now.
type livePage struct {
	campaignRow
	Version int64
	Issued  int64
	Left    *int64 // nil: unlimited
	Waiting int64
	Paced   bool
	Paused  bool
	Closed  bool
}

func (c *Console) showLive(v *view) error {
	s, err := v.status()
	if err != nil {
		return err
	}
	page := livePage{
		campaignRow: rowOf(&s), Version: s.Version, Issued: s.Issued, Waiting: s.Line.Waiting, Paced: s.Pace != nil, Paused: s.Paused, Closed: s.Closed,
	}
	if s.Quantity != firstcome.Unlimited {
		left := max(0, s.Quantity-s.InForce)
		page.Left = &left
	}
	return v.renderOf(tabsOf(&s, ""), http.StatusOK, "live", s.Name, page)
}

// status returns the campaign that the path names.
func (v *view) status() (ledger.Status, error) {
	id, err := v.campaign()
	if err != nil {
		return ledger.Status{}, err
	}
	return v.Ledger.Campaign(v.r.Context(), id)
}

func tabsOf(s *ledger.Status, tab string) *campaignTabs {
	return &campaignTabs{ID: s.ID, Name: s.Name, Tab: tab}
}

// switchCampaign pauses or resumes.
func (c *Console) switchCampaign(v *view) error {
	s, err := v.status()
	if err != nil {
		return err
	}
	if shown, err := strconv.ParseInt(v.r.PostFormValue("version"), 10, 64); err != nil || shown != s.Version {
		return firstcome.ErrStale
	}
	to, ok := map[string]ledger.Switch{"pause": ledger.Pause, "resume": ledger.Resume}[v.r.PostFormValue("to")]
	if !ok {
		return errLost
	}
	if _, err := c.Operator.Switch(v.r.Context(), v.who.Actor, s.ID, to); err != nil {
		return err
	}
	return v.lead(Root + "/campaigns/" + string(s.ID))
}
