package conform

import (
	"reflect"
	"time"

	"github.com/firstcome/firstcome"
)

// A model is a campaign in memory, decided by the rule itself.
type model struct {
	firstcome.Campaign
	termsVersion int64
	clock, seen  time.Time // the clock, and the latest instant that the campaign has seen
	coupons      []firstcome.Coupon
	holds        map[firstcome.UserID]int64 // numbers in force

	// Stock that came back counts as in force until quarantinedUntil by the clock: quarantined coupons.
	quarantineFor    time.Duration
	quarantined      int64
	quarantinedUntil time.Time
	// The window before it was widened, for the same time; zero if it was not.
	wasOpens, wasCloses time.Time
	// Claims heard sold_out as the first of it came back.
	wasSoldOut bool
	modelLine
}

func newModel(id firstcome.CampaignID, terms firstcome.Terms, clock time.Time, quarantineFor time.Duration) *model {
	m := &model{
		Campaign:     firstcome.Campaign{ID: id, Terms: terms, Version: 1},
		termsVersion: 1,
		clock:        clock, seen: clock, holds: map[firstcome.UserID]int64{}, quarantineFor: quarantineFor,
		modelLine: modelLine{Line: firstcome.Line{Generation: 1}},
	}
	m.fill(clock)
	return m
}

// fill keeps when nothing was left for the first time.
func (m *model) fill(now time.Time) {
	if full := int64(len(m.holds)) >= m.Quantity; full && m.SoldOutAt.IsZero() {
		m.SoldOutAt = now
	}
}

// since returns from when on who holds no coupon gets an outcome.
func (m *model) since(o firstcome.Outcome) time.Time {
	switch o {
	case firstcome.SoldOut:
		return m.SoldOutAt
	case firstcome.Closed:
		closes := m.asSeen().ClosesAt
		if m.Closed && (closes.IsZero() || m.ClosedAt.Before(closes)) {
			return m.ClosedAt
		}
		return closes
	}
	return time.Time{}
}

// recallQuarantine updates the quarantine by the clock, as each decision of a gate does. If the clock went back, the quarantine begins again, and
// stock that has left quarantine stays out.
func (m *model) recallQuarantine() {
	if latest := m.clock.Add(m.quarantineFor); m.quarantinedUntil.After(latest) {
		m.quarantinedUntil = latest
	}
	if !m.isQuarantined() {
		m.quarantined, m.wasOpens, m.wasCloses, m.wasSoldOut = 0, time.Time{}, time.Time{}, false
	}
}

// isQuarantined reports whether stock is quarantined, so that no lease may be granted.
func (m *model) isQuarantined() bool { return m.clock.Before(m.quarantinedUntil) }

// asSeen returns the campaign as claims see it: with its window as narrow as it was, while stock is quarantined, and without a
// waitlist that it did not have.
func (m *model) asSeen() firstcome.Campaign {
	c := m.Campaign
	if m.wasOpens.After(c.OpensAt) {
		c.OpensAt = m.wasOpens
	}
	if !m.wasCloses.IsZero() && (c.ClosesAt.IsZero() || m.wasCloses.Before(c.ClosesAt)) {
		c.ClosesAt = m.wasCloses
	}
	c.Waitlist = c.Waitlist && !m.wasSoldOut
	if c.Pace == nil && len(m.queue) > 0 {
		c.Pace = &firstcome.Pace{}
	}
	return c
}

// quarantine keeps back what comes back now, before it is counted.
func (m *model) quarantine() {
	if m.quarantineFor > 0 && !m.isQuarantined() {
		m.quarantinedUntil = m.clock.Add(m.quarantineFor)
		m.wasSoldOut = m.isSoldOut()
	}
}

// isSoldOut reports whether every coupon is in force and nobody stands by.
func (m *model) isSoldOut() bool {
	return int64(len(m.holds)) >= m.Quantity && !(m.Pace != nil && m.Waitlist)
}

// giveBack quarantines stock that comes back, before it is counted; a lowered quantity (back < 0) is taken
// from what is quarantined first.
func (m *model) giveBack(back int64) {
	if back > 0 {
		m.quarantine()
	}
	m.quarantined = max(0, m.quarantined+back)
}

// now returns the gate's time: the clock, or the latest instant seen if the clock went back.
func (m *model) now() time.Time {
	if m.clock.Before(m.seen) {
		return m.seen
	}
	return m.clock
}

// window returns what the window alone answers at an instant.
func (m *model) window(at time.Time) firstcome.Outcome {
	seen := m.asSeen()
	return firstcome.Decide(firstcome.Campaign{Terms: firstcome.Terms{
		OpensAt: seen.OpensAt, ClosesAt: seen.ClosesAt, Quantity: firstcome.Unlimited,
	}}, at, 0, false, false)
}

// claim decides a claim; a direct one passes the line.
func (m *model) claim(user firstcome.UserID, direct bool) firstcome.Decision {
	m.recallQuarantine()
	now, before := m.now(), m.Line
	m.sendAway(now, false)
	number, holds := m.holds[user]
	seen, inForce := m.asSeen(), int64(len(m.holds))
	if direct {
		seen = seen.Direct()
	}
	if seen.Pace == nil || m.wasSoldOut {
		inForce += m.quarantined
	}
	outcome := firstcome.Decide(seen, now, inForce, holds, m.ticketOf(user) > 0 && !direct)
	opens := m.opens(now)
	d := firstcome.Decision{Outcome: outcome, At: now, Version: m.Version, TermsVersion: m.termsVersion}
	switch outcome {
	case firstcome.Issued:
		number = m.issue(user, now, waiter{}, direct).Number
		m.leave(user, true)
	case firstcome.Waiting:
		ticket := m.join(user, now)
		d.Place = firstcome.View{Campaign: seen, Line: m.Line, InForce: int64(len(m.holds)), Now: now}.Place(ticket)
	}
	m.fill(now)
	m.sendAway(now, false)
	if outcome == firstcome.Issued || opens || m.Line != before || m.window(now) != m.window(m.seen) {
		m.seen = now
	}
	d.InForce, d.InLine, d.Since, d.OpenedAt = int64(len(m.holds)), m.Waiting, m.since(outcome), m.OpenedAt
	if outcome.HasCoupon() {
		d.Coupon = m.coupons[number-1]
	}
	return d
}

// opens notes when the campaign opened, and reports whether that is now.
func (m *model) opens(now time.Time) bool {
	seen := m.asSeen()
	seen.Quantity = firstcome.Unlimited
	opens := m.OpenedAt.IsZero() && firstcome.Decide(seen, now, 0, false, false) >= firstcome.Waiting
	if opens {
		m.OpenedAt = now
	}
	return opens
}

func (m *model) issue(user firstcome.UserID, now time.Time, place waiter, direct bool) firstcome.Coupon {
	c := firstcome.Coupon{Campaign: m.ID, Number: int64(len(m.coupons)) + 1, User: user, IssuedAt: now, TermsVersion: m.termsVersion, Generation: place.generation, Ticket: place.ticket, Direct: direct}
	m.holds[user] = c.Number
	m.coupons = append(m.coupons, c)
	return c
}

// changed counts a change.
func (m *model) changed() {
	m.Version++
	m.seen = m.now()
}

// setTerms changes all terms at once, as one change.
func (m *model) setTerms(edit func(*firstcome.Terms)) error {
	terms := m.Terms
	edit(&terms)
	switch {
	case m.Closed:
		return firstcome.ErrClosed
	case terms.Quantity < int64(len(m.holds)):
		return firstcome.ErrBelowInForce
	case len(m.coupons) > 0 && terms.MovesPrizes(m.Terms): // P10: a number was given
		return firstcome.ErrPrizesFixed
	case reflect.DeepEqual(terms, m.Terms):
		return nil
	}
	m.recallQuarantine()
	m.sendAway(m.now(), false)
	m.keepNarrow(terms.OpensAt, terms.ClosesAt)
	if m.isSoldOut() && terms.Waitlist {
		m.quarantine()
	}
	m.giveBack(terms.Quantity - m.Quantity)
	m.Terms = terms
	m.changed()
	m.fill(m.seen)
	m.sendAway(m.seen, true)
	m.termsVersion = m.Version
	return nil
}

// keepNarrow holds the window as it was, if the new one opens earlier or opens again what has closed: not_open and
// closed may be under lease.
func (m *model) keepNarrow(opens, closes time.Time) {
	was, now := m.asSeen(), m.now()
	earlier := now.Before(was.OpensAt) && opens.Before(was.OpensAt)
	again := !was.ClosesAt.IsZero() && !now.Before(was.ClosesAt) && (closes.IsZero() || closes.After(was.ClosesAt))
	if !earlier && !again {
		return
	}
	m.wasOpens, m.wasCloses = was.OpensAt, was.ClosesAt
	m.quarantine()
}

func (m *model) turn(to string) error {
	if m.Closed && to != "close" {
		return firstcome.ErrClosed
	}
	paused, closed := to == "pause" || to == "close" && m.Paused, m.Closed || to == "close"
	if paused != m.Paused || closed != m.Closed {
		m.recallQuarantine()
		m.sendAway(m.now(), false)
		if closed && !m.Closed {
			m.ClosedAt = m.now()
		}
		m.Paused, m.Closed = paused, closed
		m.changed()
		m.sendAway(m.seen, true)
	}
	return nil
}

func (m *model) void(number int64) error {
	if number < 1 || number > int64(len(m.coupons)) {
		return firstcome.ErrNoCoupon
	}
	c := &m.coupons[number-1]
	if !c.VoidedAt.IsZero() {
		return firstcome.ErrAlreadyVoided
	}
	m.recallQuarantine()
	m.sendAway(m.now(), false)
	c.VoidedAt = m.now()
	m.giveBack(1)
	delete(m.holds, c.User)
	m.changed()
	m.fill(m.seen)
	return nil
}
