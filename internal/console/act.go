package console

import (
	"net/http"
	"strconv"
	"strings"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/ledger"
)

// A steerPage has everything that changes a campaign.
type steerPage struct {
	Row      campaignRow
	Version  int64
	Paused   bool
	Closed   bool
	Pace     *firstcome.Pace
	Logged   bool              // places are also kept in Kafka
	Ask      *asked            // a change that must be confirmed by typing the campaign's name; nil if none
	Wrong    map[string]string // by field
	Quantity string            // as typed, if it is wrong
	// LastPrize is the name of the last prize, which added coupons have, or empty if there are no prizes.
	LastPrize string
}

// PerSecond returns the pace as the form shows it, or "" if there is no pace or no limit.
func (p steerPage) PerSecond() string {
	if p.Pace == nil || p.Pace.PerSecond == 0 {
		return ""
	}
	return strconv.FormatInt(p.Pace.PerSecond, 10)
}

// Line returns which kind of line the campaign has: none, fast or paced.
func (p steerPage) Line() string {
	switch {
	case p.Pace == nil:
		return "none"
	case p.Pace.PerSecond == 0:
		return "fast"
	}
	return "paced"
}

// An asked is a change that a person must confirm by typing the campaign's name or ID.
type asked struct {
	Do        string // close, rebuild or quantity
	More      bool   // a higher quantity
	Unlimited bool
	From, To  string
	Told      string // of a rebuild: see stoppedGate
	Value     string // as the form sent it
}

// steerHandlers change a running campaign.
type steerHandlers struct{ *core }

func (c *steerHandlers) show(v *view) error { return c.render(v, http.StatusOK, nil, "", "") }

// render shows the page, with what is wrong with a field if it is not empty.
func (c *steerHandlers) render(v *view, status int, ask *asked, field, wrong string) error {
	s, err := v.status()
	if err != nil {
		return err
	}
	now, err := c.Watcher.Now(v.r.Context(), s.ID)
	if err != nil {
		return err
	}
	page := steerPage{Row: c.rowOf(v.r.Context(), &s, now), Version: s.Version, Paused: s.Paused, Closed: s.Closed, Pace: s.Pace, Logged: s.Log != nil && (s.Pace != nil || waits(now)), Ask: ask}
	if last := len(s.Prizes) - 1; last >= 0 {
		page.LastPrize = s.Prizes[last].Name
	}
	if wrong != "" {
		page.Wrong, page.Quantity = map[string]string{field: wrong}, v.form.Get("quantity")
	}
	return v.renderOf(tabsOf(&s, "steer"), status, "steer", v.say("진행 관리", "Operate"), page)
}

// shownVersion returns the campaign's version that the form showed.
func (v *view) shownVersion() (int64, error) {
	version, err := strconv.ParseInt(v.form.Get("version"), 10, 64)
	if err != nil || version < 1 {
		return 0, firstcome.ErrStale
	}
	return version, nil
}

// shownStatus returns the campaign that the path names, and its version that the form showed.
func (v *view) shownStatus() (s ledger.Status, version int64, err error) {
	if s, err = v.status(); err == nil {
		version, err = v.shownVersion()
	}
	return s, version, err
}

// doneAt redirects to the campaign's page, which reports what was done.
func (v *view) doneAt(id firstcome.CampaignID, what string) error {
	return v.redirectDone(Root+"/campaigns/"+string(id), nil, what)
}

// saidAt is doneAt for an act that has words of its own.
func (v *view) saidAt(id firstcome.CampaignID, done sentence) error {
	return v.redirectSaid(Root+"/campaigns/"+string(id), nil, done)
}

// quantitySet returns the sentence about a new quantity.
func quantitySet(n int64) sentence {
	if n == firstcome.Unlimited {
		return sentence{"수량을 무제한으로 변경했습니다.", "The quantity is now unlimited."}
	}
	return inBoth("수량을 %s장으로 변경했습니다.", "The quantity is now %s.", english.number(n))
}

// paceSet returns the sentence about a new pace.
func paceSet(p *firstcome.Pace) sentence {
	switch {
	case p == nil:
		return sentence{"대기열을 사용하지 않도록 변경했습니다.", "There is no line now."}
	case p.PerSecond == 0:
		return sentence{"대기열에 최대한 빠르게 발급하도록 변경했습니다.", "The line is now served as fast as possible."}
	}
	return inBoth("대기열 속도를 초당 %s장으로 변경했습니다.", "The pace of the line is now %s coupons a second.", english.number(p.PerSecond))
}

// switchTo pauses, resumes or closes a campaign. To close it, a person must type its name or ID.
func (c *steerHandlers) switchTo(v *view) error {
	s, version, err := v.shownStatus()
	if err != nil {
		return err
	}
	to := firstcome.ChangeKind(v.form.Get("to"))
	done, ok := map[firstcome.ChangeKind]string{firstcome.ChangePause: "paused", firstcome.ChangeResume: "resumed", firstcome.ChangeClose: "closed"}[to]
	if !ok {
		return errLost
	}
	if to == firstcome.ChangeClose && version == s.Version && !v.typed(&s) {
		return c.render(v, http.StatusUnprocessableEntity, &asked{Do: "close"}, "typed", v.notTyped())
	}
	if _, err := c.Operator.ChangeState(v.r.Context(), v.who.Actor, s.ID, version, to); err != nil {
		return err
	}
	return v.doneAt(s.ID, done)
}

// typed reports whether the person typed the campaign's name or ID.
func (v *view) typed(s *ledger.Status) bool {
	text := strings.TrimSpace(v.form.Get("typed"))
	return text == s.Name || text == string(s.ID)
}

// notTyped returns an error message if a wrong name was typed, or "" if none was typed yet.
func (v *view) notTyped() string {
	if v.form.Get("typed") == "" {
		return ""
	}
	return v.say("이름이나 ID가 일치하지 않습니다. 아무것도 변경되지 않았습니다.", "That is neither the name nor the id. Nothing was changed.")
}

// changeQuantity raises or lowers the quantity if the campaign's name or ID was typed.
func (c *steerHandlers) changeQuantity(v *view) error {
	s, version, err := v.shownStatus()
	if err != nil {
		return err
	}
	text := strings.NewReplacer(",", "", " ", "").Replace(v.form.Get("quantity"))
	quantity, err := strconv.ParseInt(text, 10, 64)
	if v.form.Get("unlimited") != "" {
		quantity, err = firstcome.Unlimited, nil
	}
	if err != nil || quantity < 0 {
		return c.render(v, http.StatusUnprocessableEntity, nil, "quantity", v.say("수량은 0 이상의 정수로 입력하세요.", "A quantity is a whole number from 0 up."))
	}
	if last := len(s.Prizes) - 1; last >= 0 {
		if from, _ := s.Ranks(last); quantity < from-1 {
			return c.render(v, http.StatusUnprocessableEntity, nil, "quantity", v.say("수량은 경품 수량의 합인 %s장 이상이어야 합니다.", "The quantity must be at least %s, the sum of the prizes' quantities.", v.lang.number(from-1)))
		}
	}
	if quantity != s.Quantity && version == s.Version && !v.typed(&s) {
		ask := asked{Do: "quantity", More: quantity > s.Quantity, Unlimited: quantity == firstcome.Unlimited, From: v.lang.quantity(s.Quantity), To: v.lang.quantity(quantity), Value: text}
		return c.render(v, http.StatusUnprocessableEntity, &ask, "typed", v.notTyped())
	}
	_, err = c.Operator.SetTerms(v.r.Context(), v.who.Actor, s.ID, version, func(t *firstcome.Terms) { t.Quantity = quantity })
	if err != nil {
		return err
	}
	return v.saidAt(s.ID, quantitySet(quantity))
}

// changePace changes the pace of the line, adds a line or removes it.
func (c *steerHandlers) changePace(v *view) error {
	id, err := v.campaign()
	if err != nil {
		return err
	}
	version, err := v.shownVersion()
	if err != nil {
		return err
	}
	pace, wrong := v.formPace()
	if wrong != "" {
		return c.render(v, http.StatusUnprocessableEntity, nil, "per_second", wrong)
	}
	_, err = c.Operator.SetTerms(v.r.Context(), v.who.Actor, id, version, func(t *firstcome.Terms) {
		if t.Pace = pace; pace == nil {
			t.Waitlist = false
		}
	})
	if err != nil {
		return err
	}
	return v.saidAt(id, paceSet(pace))
}

// formPace parses the pace of a form. If it is invalid, formPace returns an error message.
func (v *view) formPace() (pace *firstcome.Pace, wrong string) {
	switch v.form.Get("line") {
	case "none", "":
		return nil, ""
	case "fast":
		return &firstcome.Pace{}, ""
	}
	n, err := strconv.ParseInt(strings.TrimSpace(v.form.Get("per_second")), 10, 64)
	if err != nil || n < 1 || n > firstcome.MaxPace {
		return nil, v.say("속도는 초당 1장에서 %s장까지 지정할 수 있습니다.", "A pace is 1 to %s coupons a second.", v.lang.number(int64(firstcome.MaxPace)))
	}
	return &firstcome.Pace{PerSecond: n}, ""
}
