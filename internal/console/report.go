package console

import (
	"context"
	"math"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/dustin/go-humanize"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/ledger"
)

// A reportPage answers how a campaign went: first its people, times and terms, then what machines counted.
type reportPage struct {
	proofPage
	Told     string    // sentences to copy
	Took     string    // how long it took from the opening to the first sell-out; empty if unknown
	EndedAt  time.Time // when it was closed, or when its window ended
	Asked    uint64    // claims that nodes counted, at least; 0 if none
	Peak     tempo     // the most coupons issued a second; zero if unknown
	Terms    []changed
	Lines    []recordLine // the latest changes of the campaign, the first first
	Earlier  bool         // there are earlier ones
	Prizes   []stock
	Gone     string    // how fast prizes ran out, to copy; empty if none did
	Checked  string    // that the last verification found nothing; empty if it did not run, or found something
	Issued   *int64    // the number of coupons; nil if unknown
	Missing  []missing // in the ledger now
	Totals   map[string]uint64
	Counters []string
}

// A missing says how many coupons did not stay with a customer, and why: a word of the glossary.
type missing struct {
	Word  string
	Count int64
}

// Began returns when the most coupons a second were issued, or the zero time if that is unknown.
func (p *reportPage) Began() time.Time {
	if p.Peak[2] == 0 {
		return time.Time{}
	}
	return instant(p.Peak[0])
}

// Fastest returns how many coupons a second that was.
func (p *reportPage) Fastest() string { return humanize.Commaf(math.Round(p.Peak[2]*10) / 10) }

// Broken reports whether the last verification found a breach.
func (p *reportPage) Broken() bool { return p.Last != nil && p.Last.Proof.Breaches() > 0 }

// changesReported is how many changes a report has.
const changesReported = 20

func (c *proofHandlers) showReport(v *view) error {
	ctx := v.r.Context()
	s, err := v.status()
	if err != nil {
		return err
	}
	now, err := c.Watcher.Now(ctx, s.ID)
	if err != nil {
		return err
	}
	page := reportPage{Issued: now.Issued, Totals: c.Watcher.Claims(ctx, s.ID), Counters: outcomesInPlots}
	var h history
	if page.proofPage, h, err = c.read(v, &s, now); err != nil {
		return err
	}
	if page.Missing, err = c.missing(ctx, &s); err != nil {
		return err
	}
	if err := c.changes(v, &s, &page); err != nil {
		return err
	}
	for _, n := range page.Totals {
		page.Asked += n
	}
	for _, at := range rates(h.Issued) {
		if at[2] > page.Peak[2] {
			page.Peak = at
		}
	}
	if at := s.Since(firstcome.Closed); !at.After(s.Now) {
		page.EndedAt = at
	}
	page.Took = v.lang.took(page.Row.OpenedAt, page.Row.SoldOutAt)
	page.Prizes = v.lang.stocks(&s.Terms, &now)
	page.Gone = v.lang.gone(page.Prizes)
	others := s.Terms
	others.Prizes = nil // they have a table of their own
	page.Terms = slices.DeleteFunc(v.lang.termsOf(&others), func(is changed) bool { return is.To == v.lang.none() || is.To == v.lang.yes(false) })
	page.Told = v.lang.told(v.Clock(), &s, &page)
	if page.Last != nil && page.Last.Failed == nil && !page.Broken() {
		page.Checked = v.lang.checked(v.Clock(), &s, &page.proofPage)
	}
	return v.renderOf(tabsOf(&s, "proof"), http.StatusOK, "report", v.say("이벤트 결과 보고서", "Event report"), &page)
}

// missing reads a campaign's voided coupons, open dead letters and lost numbers from the ledger.
func (c *proofHandlers) missing(ctx context.Context, s *ledger.Status) ([]missing, error) {
	causes, err := c.Ledger.LetterCauses(ctx, s.ID)
	if err != nil {
		return nil, err
	}
	letters, lost := int64(0), int64(0)
	for _, cause := range causes {
		letters += cause.Open
	}
	ranges, err := c.Ledger.Lost(ctx, s.ID)
	for _, r := range ranges {
		lost += r.Count
	}
	return []missing{{"voided", s.Recorded - s.InForce}, {"dead-letter", letters}, {"lost", lost}}, err
}

// changes reads who changed the campaign. Lines about single coupons are left out, since they name users, and so are reasons, which may.
func (c *proofHandlers) changes(v *view, s *ledger.Status, page *reportPage) error {
	entries, err := c.Ledger.AuditLog(v.r.Context(), ledger.LogFilter{Campaign: s.ID, CampaignOnly: true, Limit: changesReported + 1})
	if err != nil {
		return err
	}
	names, err := c.keyNames(v)
	if err != nil {
		return err
	}
	page.Earlier = len(entries) > changesReported
	entries = entries[:min(len(entries), changesReported)]
	slices.Reverse(entries)
	for n := range entries {
		line := v.lang.lineOf(&entries[n], names)
		if line.Note = ""; entries[n].Action == "campaign.create" {
			line.Changed = nil // the terms are above
		}
		page.Lines = append(page.Lines, line)
	}
	return nil
}

// told returns how a campaign went, in sentences that people copy. They name the zone once.
func (l locale) told(now time.Time, s *ledger.Status, page *reportPage) string {
	row, all := &page.Row, []string{}
	voided := page.Missing[0].Count
	switch count := l.number(row.InForce); {
	case row.Unknown:
		all = append(all, l.say("‘%s’: 몇 명이 쿠폰을 받았는지 지금은 알 수 없습니다.", "“%s”: how many customers got a coupon is not known now.", s.Name))
	case row.InForce == 0 && voided > 0:
		all = append(all, l.say("‘%s’: 고객이 받은 쿠폰 %s장이 모두 회수되었습니다.", "“%s”: all coupons that customers got were taken back: %s.", s.Name, l.number(voided)))
	case s.Quantity == firstcome.Unlimited:
		all = append(all, l.say("‘%s’: 고객 %s명이 쿠폰을 받았습니다.", "“%s”: coupons that customers got, one each: %s.", s.Name, count))
	case row.InForce == 0:
		all = append(all, l.say("‘%s’: 준비한 쿠폰 %s장을 받은 고객은 없습니다.", "“%s”: no customer got one of the %s coupons.", s.Name, l.quantity(s.Quantity)))
	default:
		all = append(all, l.say("‘%s’: 준비한 쿠폰 %[3]s장 중 %[2]s장을 고객 %[2]s명이 받았습니다.", "“%s”: customers got %s of %s coupons, one each.", s.Name, count, l.quantity(s.Quantity)))
	}
	if voided > 0 && row.InForce > 0 && !row.Unknown {
		all = append(all, l.say("회수된 쿠폰 %s장은 제외한 수입니다.", "Coupons taken back, not counted here: %s.", l.number(voided)))
	}
	all = append(all, l.course(now, s, page)...)
	if page.Asked > 0 {
		all = append(all, l.say("신청은 %s건 이상이었습니다.", "Requests: at least %s.", l.number(page.Asked)))
	}
	zone := " (" + l.zoneWord() + ")"
	first, rest, _ := strings.Cut(strings.Join(all, " "), zone)
	if rest == "" {
		return first
	}
	return first + zone + strings.ReplaceAll(rest, zone, "")
}

// course returns when a campaign opened, sold out and ended, in sentences.
func (l locale) course(now time.Time, s *ledger.Status, page *reportPage) (all []string) {
	row := &page.Row
	if !row.OpenedAt.IsZero() {
		all = append(all, l.say("%s에 오픈했습니다.", "It opened at %s.", l.spoken(now, row.OpenedAt)))
	}
	switch {
	case row.SoldOutAt.IsZero():
	case page.Took == "" && row.Restocked:
		all = append(all, l.say("%s에 처음으로 모두 소진되었습니다.", "It first sold out at %s.", l.spoken(now, row.SoldOutAt)))
	case page.Took == "":
		all = append(all, l.say("%s에 모두 소진되었습니다.", "It sold out at %s.", l.spoken(now, row.SoldOutAt)))
	case row.Restocked:
		all = append(all, l.say("오픈 후 %s 처음으로 모두 소진되었습니다.", "It first sold out after %s.", page.Took))
	default:
		all = append(all, l.say("오픈 후 %s 모두 소진되었습니다.", "It sold out after %s.", page.Took))
	}
	switch {
	case !page.EndedAt.IsZero() && page.EndedAt.Before(s.OpensAt):
		all = append(all, l.say("오픈하기 전인 %s에 종료되었습니다.", "It was closed before it opened, at %s.", l.spoken(now, page.EndedAt)))
	case !page.EndedAt.IsZero():
		all = append(all, l.say("%s에 종료되었습니다.", "It ended at %s.", l.spoken(now, page.EndedAt)))
	case row.State == firstcome.NotOpen.String():
		all = append(all, l.say("%s에 오픈합니다.", "It opens at %s.", l.spoken(now, s.OpensAt)))
	case row.State == firstcome.Paused.String():
		all = append(all, l.say("현재 발급이 일시 중지되어 있습니다.", "It is paused now."))
	case row.State == "open":
		all = append(all, l.say("아직 진행 중입니다.", "It is still open."))
	}
	return all
}

// checked says what the last verification, which found nothing, has checked, and when.
func (l locale) checked(now time.Time, s *ledger.Status, page *proofPage) string {
	var names []string
	for _, p := range page.Promises {
		if p.Held {
			names = append(names, p.Promise)
		}
	}
	last := page.Last
	text := l.say("확인한 약속을 모두 지켰습니다", "Every promise that was checked was kept")
	if len(names) > 0 {
		text += ": " + strings.Join(names, l.say(", ", "; "))
	}
	text += l.say(". %s에 원장의 쿠폰 %s장을 모두 다시 읽고 확인했습니다.", ". All coupons in the ledger were read again at %s: %s.", l.spoken(now, last.Ended), l.number(last.Proof.Ledger.Coupons))
	if since := s.Recorded - last.Proof.Ledger.Coupons; since > 0 {
		text += l.say(" 그 뒤에 기록된 쿠폰 %s장은 확인하지 않았습니다.", " Coupons recorded since then, not checked: %s.", l.number(since))
	}
	return text
}
