package conform

import (
	"slices"
	"time"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/gate"
)

// A modelLine is the line of a model: its people stand in a slice.
type modelLine struct {
	firstcome.Line
	queue  []waiter
	joined map[firstcome.UserID]bool // whose tickets have ended
	past   []firstcome.PastLine
}

// A waiter is somebody in line.
type waiter struct {
	user               firstcome.UserID
	generation, ticket int64
	at                 time.Time // when they joined
}

// ticketOf returns the ticket with which a user is in line, or 0.
func (l *modelLine) ticketOf(user firstcome.UserID) int64 {
	for _, w := range l.queue {
		if w.user == user {
			return w.ticket
		}
	}
	return 0
}

// join returns a user's ticket, a new one if they have none.
func (l *modelLine) join(user firstcome.UserID, now time.Time) int64 {
	if ticket := l.ticketOf(user); ticket > 0 {
		return ticket
	}
	l.LastTicket++
	l.Waiting++
	l.queue = append(l.queue, waiter{user, l.Generation, l.LastTicket, now})
	return l.LastTicket
}

// leave ends the ticket of a user who is in line, who was served or not.
func (l *modelLine) leave(user firstcome.UserID, served bool) bool {
	n := slices.IndexFunc(l.queue, func(w waiter) bool { return w.user == user })
	if n < 0 {
		return false
	}
	l.queue = slices.Delete(l.queue, n, n+1)
	l.Waiting--
	if l.gone(user); served {
		l.Served++
	}
	if len(l.queue) == 0 {
		l.ServedThrough = l.LastTicket
	}
	return true
}

func (l *modelLine) gone(user firstcome.UserID) {
	if l.joined == nil {
		l.joined = map[firstcome.UserID]bool{}
	}
	l.joined[user] = true
}

// away returns the outcome with which all users in line are sent away at now, or 0. A generation without tickets does not end.
func (m *model) away(now time.Time) firstcome.Outcome {
	if m.LastTicket == 0 {
		return 0
	}
	if o := firstcome.Decide(m.asSeen(), now, int64(len(m.holds)), false, true); o != firstcome.Waiting {
		return o
	}
	return 0
}

// sendAway ends the generation, if everybody in line is sent away at now, by a change that was just made or not.
func (m *model) sendAway(now time.Time, changed bool) {
	why := m.away(now)
	if why == 0 {
		return
	}
	at := now
	if why == firstcome.Closed && !changed {
		at = m.since(why)
	}
	for _, w := range m.queue {
		m.gone(w.user)
	}
	m.queue = nil
	m.finish(why.String(), at)
}

// finish ends the generation.
func (m *model) finish(why string, at time.Time) {
	m.past = append([]firstcome.PastLine{m.ended(why, at)}, m.past...)
	m.Line = firstcome.Line{Generation: m.Generation + 1, Due: m.Due}
}

func (m *model) ended(why string, at time.Time) firstcome.PastLine {
	past := firstcome.PastLine{Line: m.Line, Reason: why, EndedAt: at}
	past.Due = time.Time{}
	return past
}

// serve issues to those next in line.
func (m *model) serve(limit int64) (coupons []firstcome.Coupon, ended string) {
	if len(m.queue) == 0 {
		return nil, ""
	}
	m.recallQuarantine()
	now, before := m.now(), m.Line
	generation := m.Generation
	m.sendAway(now, false)
	if firstcome.Decide(m.asSeen(), now, -1, false, false) == firstcome.Waiting && len(m.queue) > 0 {
		free := max(0, m.Quantity-int64(len(m.holds))-m.quarantined)
		turns, due := m.asSeen().Pace.Take(m.Due, m.clock, min(limit, free, m.Waiting))
		if turns > 0 {
			m.opens(now)
		}
		for range turns {
			next := m.queue[0]
			coupons = append(coupons, m.issue(next.user, now, next, false))
			m.ServedThrough = next.ticket
			m.leave(next.user, true)
		}
		if turns > 0 || due.Before(m.Due) {
			m.Due = due
		}
		m.fill(now)
		m.sendAway(now, false)
	}
	if m.Generation != generation {
		ended = m.past[0].Reason
	}
	if m.Line != before || m.window(now) != m.window(m.seen) {
		m.seen = now
	}
	return coupons, ended
}

// leaves takes a user out of the line, or says why not.
func (m *model) leaves(user firstcome.UserID) error {
	seen := m.peek()
	if m.ticketOf(user) > 0 && seen.away(seen.now()) == 0 {
		m.recallQuarantine()
		m.leave(user, false)
		m.seen = m.now()
		return nil
	}
	if _, holds := m.holds[user]; holds {
		return firstcome.ErrServed
	}
	if m.joined[user] || m.ticketOf(user) > 0 {
		return nil
	}
	return firstcome.ErrNoTicket
}

// peek returns what somebody sees who only reads.
func (m *model) peek() *model {
	seen := *m
	seen.recallQuarantine()
	return &seen
}

// place returns where a user stands, or the number of their coupon, or neither.
func (m *model) place(user firstcome.UserID) (p firstcome.Place, number int64) {
	if number = m.holds[user]; number > 0 {
		return p, number
	}
	seen := m.peek()
	ticket := m.ticketOf(user)
	if ticket == 0 || seen.away(seen.now()) != 0 {
		return p, 0
	}
	return firstcome.View{Campaign: seen.asSeen(), Line: m.Line, InForce: int64(len(m.holds)), Now: seen.now()}.Place(ticket), 0
}

// lines returns the line, when who is next joined, and the lines before it, as somebody sees them who only reads.
func (m *model) lines() (line firstcome.Line, joined time.Time, told []firstcome.PastLine) {
	seen := m.peek()
	past := m.past
	line = m.Line
	if len(m.queue) > 0 {
		joined = m.queue[0].at
	}
	if why := seen.away(seen.now()); why != 0 {
		at := seen.now()
		if why == firstcome.Closed {
			at = seen.since(why)
		}
		past = append([]firstcome.PastLine{m.ended(why.String(), at)}, past...)
		line, joined = firstcome.Line{Generation: m.Generation + 1, Due: m.Due}, time.Time{}
	}
	return line, joined, past[:min(len(past), gate.MaxPastLines)]
}
