package conform

import (
	"time"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/gate"
)

// begin has a generation begin.
func (m *model) begin(generation, first int64) {
	if generation == m.Generation && !m.Begun {
		m.First, m.Begun = first, true
	}
}

// passes tells whether a ticket of a feed is passed over.
func (m *model) passes(user firstcome.UserID, ticket int64) bool {
	_, holds := m.holds[user]
	return user == "" || holds || m.left[user] >= ticket
}

// turnOf serves a turn.
func (m *model) turnOf(t gate.Turn) (coupons []firstcome.Coupon, over int64, ended string) {
	m.recallQuarantine()
	now, before := m.now(), m.Line
	m.sendAway(now, false)
	if m.Begun && t.Generation == m.Generation && t.From == m.Serving() && firstcome.Decide(m.asSeen(), now, -1, false, false) == firstcome.Waiting {
		coupons, over = m.serveUsers(t.Users, now)
		m.fill(now)
		m.sendAway(now, false)
	}
	if m.Generation != before.Generation {
		ended = m.past[0].Reason
	}
	if m.Line != before || m.window(now) != m.window(m.seen) {
		m.seen = now
	}
	return coupons, over, ended
}

// serveUsers ends tickets from the next one on.
func (m *model) serveUsers(users []firstcome.UserID, now time.Time) (coupons []firstcome.Coupon, over int64) {
	wanting := map[firstcome.UserID]bool{}
	for n, user := range users {
		if !m.passes(user, m.Serving()+int64(n)) {
			wanting[user] = true
		}
	}
	free := max(0, m.Quantity-int64(len(m.holds))-m.quarantined)
	turns, due := m.asSeen().Pace.Take(m.Due, m.clock, min(free, int64(len(wanting))))
	if turns > 0 || due.Before(m.Due) {
		m.Due = due
	}
	for _, user := range users {
		ticket := m.Serving()
		_, holds := m.holds[user]
		if m.passes(user, ticket) {
			over++
		} else {
			if turns == 0 {
				break
			}
			turns--
			m.opens(now)
			coupons = append(coupons, m.issue(user, now, waiter{generation: m.Generation, ticket: ticket}, false))
			holds = true
		}
		if holds {
			m.Served++
		}
		m.ServedThrough, m.LastTicket = ticket, ticket
	}
	return coupons, over
}

// endedOf tells whether a ticket of a feed has ended, unless its user left.
func (m *model) endedOf(ticket firstcome.Ticket) bool {
	seen := m.peek()
	return !m.Begun || ticket.Generation != m.Generation || ticket.Number < m.Serving() || seen.away(seen.now()) != 0
}

// leavesOf notes that a user left, or says why not.
func (m *model) leavesOf(user firstcome.UserID, ticket firstcome.Ticket) error {
	if _, holds := m.holds[user]; holds {
		return firstcome.ErrServed
	}
	if !m.endedOf(ticket) {
		if m.left == nil {
			m.left = map[firstcome.UserID]int64{}
		}
		m.left[user] = max(m.left[user], ticket.Number)
	}
	return nil
}

// placeOf returns where a ticket stands, or the number of its user's coupon, or neither.
func (m *model) placeOf(user firstcome.UserID, ticket firstcome.Ticket) (p firstcome.Place, number int64) {
	if number = m.holds[user]; number > 0 {
		return p, number
	}
	if m.endedOf(ticket) || ticket.Number <= m.left[user] {
		return p, 0
	}
	seen := m.peek()
	return seen.asSeen().Place(m.Line, ticket.Number, int64(len(m.holds)), seen.now()), 0
}

// setFeed changes the feed.
func (m *model) setFeed(feed *firstcome.Feed) error {
	switch {
	case m.Closed:
		return firstcome.ErrClosed
	case *feed == *m.Feed:
		return nil
	}
	m.recallQuarantine()
	m.sendAway(m.now(), false)
	m.keepNarrow(m.OpensAt, m.ClosesAt)
	m.Feed = feed
	m.changed()
	if m.Begun {
		m.finish("lost", m.seen)
	}
	m.termsVersion = m.Version
	return nil
}
