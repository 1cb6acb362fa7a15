package console

import (
	"cmp"
	"net/http"
	"net/url"
	"slices"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/ledger"
)

// A termsPage has all terms of a campaign, and who changed what.
type termsPage struct {
	newPage  // the terms that can be changed here, as they are or as somebody typed them
	Row      campaignRow
	Version  int64
	Closed   bool
	Answered string
	Pace     string
	Waitlist bool
	Terms    []changed // of a closed campaign, all
	Changes  []changed // what was asked for, and needs the campaign's name typed
	Typed    []field   // what was asked for, as the form has it
	NotTyped string
	Note     string
	Lines    []recordLine // the latest changes
}

// changesShown is how many changes the page shows.
const changesShown = 10

func (c *campaignHandlers) showTerms(v *view) error {
	s, err := v.status()
	if err != nil {
		return err
	}
	return c.renderTerms(v, http.StatusOK, &s, &termsPage{newPage: newPage{Form: formOf(s.Terms)}})
}

func (c *campaignHandlers) renderTerms(v *view, status int, s *ledger.Status, page *termsPage) error {
	page.Row, page.Version, page.Closed, page.Waitlist = rowOf(s, c.Watcher.Of(v.r.Context(), []ledger.Status{*s})[0]), s.Version, s.Closed, s.Waitlist
	page.Answered, page.newPage.Terms = v.lang.answered(s.Answer), s.Terms
	page.Pace, page.Terms = v.lang.pace(s.Pace), v.lang.differences(nil, &s.Terms)
	entries, err := c.Ledger.AuditLog(v.r.Context(), ledger.LogFilter{Campaign: s.ID, Limit: changesShown})
	if err != nil {
		return err
	}
	names, err := c.keyNames(v)
	if err != nil {
		return err
	}
	for n := range entries {
		page.Lines = append(page.Lines, v.lang.lineOf(&entries[n], names))
	}
	return v.renderOf(tabsOf(s, "terms"), status, "terms", v.say("조건", "Terms"), page)
}

// changeTerms shows first what becomes what, and changes it when the campaign's name or id was typed.
func (c *campaignHandlers) changeTerms(v *view) error {
	s, version, err := v.shownStatus()
	if err != nil {
		return err
	}
	page := termsPage{newPage: newPage{Form: v.typedForm(), Wrong: map[string]string{}}}
	asked := s.Terms
	page.readInto(v, &asked)
	page.refuse(v, asked.Check())
	if len(page.Wrong) > 0 {
		return c.renderTerms(v, http.StatusUnprocessableEntity, &s, &page)
	}
	if version == s.Version && !v.typed(&s) {
		if page.Changes = v.lang.differences(&s.Terms, &asked); len(page.Changes) == 0 {
			page.Note = v.say("바뀐 것이 없습니다.", "Nothing is different.")
			return c.renderTerms(v, http.StatusOK, &s, &page)
		}
		page.Typed, page.NotTyped = typedFields(v.form), v.notTyped()
		return c.renderTerms(v, http.StatusUnprocessableEntity, &s, &page)
	}
	_, err = c.Operator.SetTerms(v.r.Context(), v.who.Actor, s.ID, version, func(t *firstcome.Terms) { page.readInto(v, t) })
	if err != nil {
		return err
	}
	return v.doneAt(s.ID, "changed")
}

// typedFields returns what a form of terms sent, for the form that confirms it.
func typedFields(form url.Values) (all []field) {
	for name, values := range form {
		if name != "version" && name != "typed" {
			all = append(all, field{Name: name, Value: values[0]})
		}
	}
	slices.SortFunc(all, func(a, b field) int { return cmp.Compare(a.Name, b.Name) })
	return all
}

// answered returns when a claim is answered, in words.
func (l language) answered(when firstcome.AnswerWhen) string {
	if when == firstcome.Decided {
		return l.say("게이트가 결정하자마자", "as soon as the gate decided")
	}
	return l.say("원장에 기록된 뒤", "once it is in the ledger")
}
