package console

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/ledger"
)

// linesPerPage is how many lines of the audit log a page has.
const linesPerPage = 50

// A recordsPage shows the audit log, or its lines about one campaign.
type recordsPage struct {
	Campaign   string          // the filter
	Campaigns  []ledger.Status // to choose from
	User       string          // the filter
	Wrong      string          // what is wrong with the filter
	WrongField string          // which field of the filter
	Lines      []recordLine
	More       string // link to older lines; empty if there are none
	Of         bool   // the page belongs to one campaign
}

// A recordLine is a line of the audit log in words.
type recordLine struct {
	At       time.Time
	Actor    string // the key's name, or the actor as in the log
	Key      string // the actor as in the log, if Actor is a name
	What     string
	Campaign firstcome.CampaignID
	User     firstcome.UserID
	Number   int64
	Refused  bool
	Changed  []changed
	Note     string // the reason that was given
}

// A changed is a field that changed from one value to another.
type changed struct{ Name, From, To string }

// recordHandlers show what operators did.
type recordHandlers struct{ *core }

func (c *recordHandlers) show(v *view) error {
	filter := ledger.LogFilter{Limit: linesPerPage + 1}
	page := recordsPage{Campaign: v.form.Get("campaign"), User: v.form.Get("user_id")}
	var tabs *campaignTabs
	if v.r.PathValue("id") != "" {
		s, err := v.status()
		if err != nil {
			return err
		}
		page.Campaign, page.Of, tabs = string(s.ID), true, tabsOf(&s, "changes")
	}
	var err error
	if !page.Of {
		page.Campaigns = c.choices(v)
	}
	if filter.Campaign, page.Wrong, err = c.logged(v, page.Campaign); err != nil {
		return err
	}
	page.Campaign = cmp.Or(string(filter.Campaign), page.Campaign)
	if page.Wrong != "" {
		page.WrongField = "campaign"
	}
	if page.User != "" && page.Wrong == "" {
		if filter.User, err = firstcome.ParseUserID(page.User); err != nil {
			page.Wrong, page.WrongField = v.whyID("user_id", err), "user_id"
		}
	}
	if page.Wrong != "" {
		return v.renderOf(tabs, http.StatusUnprocessableEntity, "records", v.say("변경 이력", "Changes and audit log"), page)
	}
	filter.Before, _ = strconv.ParseInt(v.form.Get("before"), 10, 64) // the number is from one of our own links
	lines, err := c.Ledger.AuditLog(v.r.Context(), filter)
	if err != nil {
		return err
	}
	if len(lines) > linesPerPage {
		lines = lines[:linesPerPage]
		page.More = v.r.URL.Path + "?" + url.Values{"campaign": {page.Campaign}, "user_id": {page.User}, "before": {fmt.Sprint(lines[linesPerPage-1].ID)}}.Encode()
	}
	names, err := c.keyNames(v)
	if err != nil {
		return err
	}
	for n := range lines {
		page.Lines = append(page.Lines, v.lang.lineOf(&lines[n], names))
	}
	return v.renderOf(tabs, http.StatusOK, "records", v.say("변경 이력", "Changes and audit log"), page)
}

// logged returns the campaign that a text names. The log also has lines about campaigns that the ledger has forgotten, so any valid id will do.
func (c *recordHandlers) logged(v *view, text string) (id firstcome.CampaignID, wrong string, err error) {
	if text == "" {
		return "", "", nil
	}
	if id, err = firstcome.ParseCampaignID(text); err == nil {
		return id, "", nil
	}
	return c.named(v, text)
}

// keyNames returns the names of keys by the actors in the audit log.
func (c *core) keyNames(v *view) (map[string]string, error) {
	keys, err := c.Deployment.Keys(v.r.Context())
	names := map[string]string{}
	for _, k := range keys {
		names[personOf(k).Actor] = k.Name
	}
	return names, err
}

func (l locale) lineOf(e *ledger.LogEntry, names map[string]string) recordLine {
	line := recordLine{At: e.At, Actor: e.Actor, What: l.action(e.Action), Campaign: e.Campaign, User: e.User, Number: e.Number, Refused: e.Refused}
	if name, ok := names[e.Actor]; ok {
		line.Actor, line.Key = name, e.Actor
	}
	before, after, err := e.TermsOf()
	if err == nil && after != nil {
		line.Changed = l.differences(before, after)
	}
	var detail struct {
		Reason string `json:"reason"`
		Name   string `json:"name"`
		Role   string `json:"role"`
	}
	_ = json.Unmarshal(e.Detail, &detail) // firstcome audit reports what cannot be read
	line.Note = detail.Reason
	if detail.Name != "" {
		line.Note = detail.Name + " (" + detail.Role + ")"
	}
	return line
}

// by returns who did something, and why.
func (l *recordLine) by() string {
	if l.Note == "" {
		return l.Actor
	}
	return l.Actor + ": " + l.Note
}

// action returns the words for an action in the audit log.
func (l language) action(name string) string {
	words := map[string][2]string{
		"campaign.create": {"캠페인을 만들었습니다", "created the campaign"}, "campaign.update": {"조건을 변경했습니다", "changed the terms"},
		"campaign.pause": {"일시중지했습니다", "paused it"}, "campaign.resume": {"재개했습니다", "resumed it"}, "campaign.close": {"종료했습니다", "closed it"},
		"campaign.rebuild": {"게이트를 재구성했습니다", "rebuilt the gate"}, "campaign.reconcile": {"복원된 원장에 게이트의 데이터를 반영했습니다", "reconciled a restored ledger with the gate"},
		"campaign.retire": {"보관으로 옮겼습니다", "retired it"}, "codes.import": {"코드를 가져왔습니다", "imported codes"}, "coupon.void": {"쿠폰을 회수했습니다", "voided a coupon"}, ledger.CouponIssue: {"직접 발급했습니다", "issued directly"},
		"coupon.lost":        {"이미 끝난 에폭의 Redis가 발급해 유실된 번호입니다", "lost: a gate gave it whose epoch had ended"},
		"dead_letter.replay": {"기록 실패 건을 다시 기록했습니다", "replayed a dead letter"}, "dead_letter.void": {"기록 실패 건을 회수했습니다", "voided a dead letter"},
		"key.create": {"키를 만들었습니다", "created a key"}, "key.revoke": {"키를 폐기했습니다", "revoked a key"},
	}
	if w, ok := words[name]; ok {
		return l.say(w[0], w[1])
	}
	return name
}
