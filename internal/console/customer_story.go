package console

import (
	"slices"
	"strings"
	"time"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/gate"
	"github.com/firstcome/firstcome/internal/ledger"
)

// An event happened to a customer or to the campaign.
type event struct {
	What string
	At   time.Time // zero if unknown
	Note string
	Own  bool      // it happened to the customer
	sort time.Time // At, or where an event of an unknown time belongs
}

// story returns what happened in the page's campaign and to its user, as far as gate and ledger know, in order. log has the user's audit log.
func (c *customerHandlers) story(v *view, page *customerPage, log []ledger.LogEntry) (events []event, err error) {
	words := customerWords{v.lang, v.Clock()}
	names, err := c.keyNames(v)
	if err != nil {
		return nil, err
	}
	events = words.ofCampaign(page)
	for _, coupon := range page.Found {
		var issued, voided string
		var lost time.Time
		for n := range log {
			line := v.lang.lineOf(&log[n], names)
			switch {
			case log[n].Number != coupon.Number:
			case strings.HasSuffix(log[n].Action, ".void"):
				voided = line.by()
			case log[n].Action == ledger.CouponIssue:
				issued = line.by()
			case log[n].Action == ledger.CouponLost:
				lost = log[n].At
			}
		}
		steps, err := c.Ledger.StepsAt(v.r.Context(), coupon.Campaign, []int64{coupon.Number})
		if err != nil {
			return nil, err
		}
		var recorded time.Time
		if len(steps) > 0 && !coupon.Lost {
			recorded = steps[0].RecordedAt
		}
		events = append(events, words.ofCoupon(page, &coupon, recorded, lost, issued, voided)...)
	}
	for _, stay := range page.Stays {
		events = append(events, words.ofStay(page, stay)...)
	}
	for n := range events {
		if events[n].sort.IsZero() {
			events[n].sort = events[n].At
		}
	}
	slices.SortStableFunc(events, func(a, b event) int { return a.sort.Compare(b.sort) })
	return events, nil
}

// ofCampaign returns what happened to the page's campaign.
func (w customerWords) ofCampaign(page *customerPage) (events []event) {
	of, s := page.Of, page.Status
	switch {
	case !of.OpenedAt.IsZero():
		events = append(events, event{What: w.say("오픈했습니다", "the campaign opened"), At: of.OpenedAt})
	case of.OpensIn > 0:
		events = append(events, event{What: w.say("오픈 예정입니다", "the campaign will open"), At: s.OpensAt})
	}
	if !of.SoldOutAt.IsZero() {
		what := sentence{"쿠폰이 모두 소진되었습니다", "the campaign sold out"}
		if of.Restocked {
			what = sentence{"쿠폰이 처음 소진되었습니다", "the campaign first sold out"}
		}
		events = append(events, event{What: w.words(what), At: of.SoldOutAt})
	}
	if at := s.Since(firstcome.Closed); !at.IsZero() && !at.After(w.now) {
		events = append(events, event{What: w.say("이벤트가 종료되었습니다", "the campaign closed"), At: at})
	}
	return events
}

// ofCoupon returns what happened to a coupon. issued and voided say who did it and why, if an operator did.
func (w customerWords) ofCoupon(page *customerPage, c *customerCoupon, recorded, lost time.Time, issued, voided string) (events []event) {
	number := w.number(c.Number)
	knows := slices.ContainsFunc(page.Stays, func(s gate.Stay) bool { return s.Number == c.Ticket && s.Generation == c.Generation })
	if c.Ticket > 0 && !knows { // when is unknown
		events = append(events, event{What: w.joined(c.Ticket), sort: c.IssuedAt})
	}
	e := event{What: w.say("발급되었습니다: 번호 %s", "was issued number %s", number), At: c.IssuedAt, Note: issued}
	switch {
	case c.Direct:
		e.What = w.say("직접 발급되었습니다: 번호 %s", "was issued number %s directly", number)
	case c.Ticket > 0:
		e.What = w.say("차례가 되어 발급되었습니다: 번호 %s", "was served, and was issued number %s", number)
	}
	events = append(events, e)
	switch {
	case c.Lost:
		events = append(events, event{What: w.say("이전 Redis에서 발급되어 무효가 된 번호입니다. 고객은 다시 신청할 수 있습니다", "was lost: the gate that gave it was one whose epoch had ended. The customer may claim again"), At: lost})
	case !recorded.IsZero():
		events = append(events, event{What: w.say("원장에 기록되었습니다", "was recorded in the ledger"), At: recorded})
	case !c.Recorded:
		events = append(events, event{What: w.say("원장에 기록되는 중입니다", "is on its way to the ledger"), sort: w.now})
	}
	if !c.VoidedAt.IsZero() {
		events = append(events, event{What: w.say("회수되었습니다: 번호 %s", "number %s was voided", number), At: c.VoidedAt, Note: voided})
	}
	return owned(events)
}

func owned(events []event) []event {
	for n := range events {
		events[n].Own = true
	}
	return events
}

func (w customerWords) joined(ticket int64) string {
	return w.say("대기열에 들어왔습니다: 순번 %s", "joined the line: ticket %s", w.number(ticket))
}

// ofStay returns how a ticket began and ended. That it was served is said with its coupon.
func (w customerWords) ofStay(page *customerPage, s gate.Stay) []event {
	first := s.JoinedAt
	if first.IsZero() {
		first = s.EndedAt
	}
	events := []event{{What: w.joined(s.Number), At: s.JoinedAt, sort: first}}
	var ended sentence
	switch s.Ended {
	case "left":
		ended = sentence{"대기를 취소했습니다", "left the line"}
	case "already_issued":
		ended = sentence{"차례 전에 쿠폰을 받아 대기가 끝났습니다", "got a coupon before their turn, so their ticket ended"}
	case "sold_out":
		ended = sentence{"소진되어 대기열이 끝났습니다", "the line ended, sold out"}
	case "closed":
		ended = sentence{"종료되어 대기열이 끝났습니다", "the line ended, closed"}
	case "lost":
		ended = sentence{"장애로 대기열이 유실되었습니다", "the line was lost"}
	case gate.StayOver:
		if ended = (sentence{"대기를 취소했습니다", "left the line"}); len(page.Found) > 0 { // or a coupon ended it
			return owned(events)
		}
	case gate.StayEnded:
		ended = sentence{"대기가 끝났습니다", "the ticket ended"}
	default:
		return owned(events)
	}
	return owned(append(events, event{What: w.words(ended), At: s.EndedAt, sort: s.EndedAt}))
}
