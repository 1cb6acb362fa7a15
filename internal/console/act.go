package console

import (
	"strconv"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/ledger"
)

// shownVersion returns the campaign's version that the form showed.
func (v *view) shownVersion() (int64, error) {
	version, err := strconv.ParseInt(v.r.PostFormValue("version"), 10, 64)
	if err != nil || version < 1 {
		return 0, firstcome.ErrStale
	}
	return version, nil
}

// switchCampaign pauses or resumes.
func (c *Console) switchCampaign(v *view) error {
	s, err := v.status()
	if err != nil {
		return err
	}
	if shown, err := v.shownVersion(); err != nil || shown != s.Version {
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
