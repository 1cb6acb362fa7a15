package sim

import (
	"slices"

	"github.com/firstcome/firstcome"
)

// A promised line is what people were told of a line that has a log. That holds whatever the gate loses.
type promised struct {
	at      map[firstcome.UserID]ticketName // in which ticket somebody is in line, by what the gate did
	told    map[firstcome.UserID]bool       // that they are
	dropped map[firstcome.UserID]ticketName // the last ticket that a recovery did not bring back, of somebody who had not been told it
	seen    int64                           // the version of the ledger at the last recovery
	ended   map[firstcome.UserID]ending     // how the last ticket of somebody ended who is not in line
}

// An ending is how a ticket ended.
type ending struct {
	ticket ticketName
	number int64 // with a coupon; 0: without
	left   bool  // its user was told that they left
	sent   bool  // all were sent away
}

func newPromised() promised {
	return promised{
		at: map[firstcome.UserID]ticketName{}, told: map[firstcome.UserID]bool{}, dropped: map[firstcome.UserID]ticketName{}, ended: map[firstcome.UserID]ending{},
	}
}

// ends notes how a user's ticket ended, if they were in line.
func (p *promised) ends(user firstcome.UserID, how ending) {
	if ticket, is := p.at[user]; is {
		how.ticket = ticket
		p.ended[user] = how
		delete(p.at, user)
		delete(p.told, user)
	}
}

// tracks takes over what the gate did to its line.
func (h *history) tracks(now happening) {
	p := &h.promised
	switch {
	case now.came != "":
		for user, other := range p.at {
			if other.number >= now.ticket.number {
				h.breach("P9", "%s was given ticket %d, and %s has ticket %d", now.came, now.ticket.number, user, other.number)
			}
		}
		p.at[now.came] = now.ticket
		delete(p.told, now.came)
		delete(p.dropped, now.came)
		delete(p.ended, now.came)
	case now.went != "":
		p.ends(now.went, ending{})
	case now.issued.Number > 0:
		p.ends(now.issued.User, ending{number: now.issued.Number})
	case now.sent != "":
		for user := range p.at {
			p.ends(user, ending{sent: true})
		}
	}
}

// isTold notes that somebody was told a place, at a line that has a log.
func (h *history) isTold(a *asked, place firstcome.Place) {
	p, user := &h.promised, firstcome.UserID(a.name)
	if gone, is := p.dropped[user]; is && gone.number == place.Ticket && place.Generation <= gone.generation {
		h.breach("P9", "%s was told ticket %d, which a recovery had not brought back", user, place.Ticket)
	}
	if p.at[user].number == place.Ticket && place.Generation <= p.at[user].generation {
		p.told[user] = true
	}
}

// recovered holds a line that was recovered against what people were told.
func (h *history) recovered(was happening, c *course) {
	p, a := &h.promised, h.town.ledger.campaigns[campaign]
	without, carries := h.withoutLog(a)
	now := map[firstcome.UserID]ticketName{}
	last := int64(0)
	for _, one := range c.people {
		if _, twice := now[one.user]; twice {
			h.breach("P9", "%s is in line twice after a recovery", one.user)
		}
		if one.ticket <= last {
			h.breach("P9", "ticket %d stands behind ticket %d after a recovery", one.ticket, last)
		}
		last = one.ticket
		now[one.user] = ticketName{c.line.Generation, one.ticket}
		h.returned(one, a)
	}
	for _, user := range h.lineup.people {
		before := p.at[user]
		after, is := now[user]
		switch {
		case is && after.number != before.number && p.told[user]:
			h.breach("P9", "%s was told ticket %d, and has ticket %d after a recovery", user, before.number, after.number)
		case !is && p.told[user] && !without:
			h.breach("P9", "%s was told ticket %d.%d, and is not in line after a recovery", user, before.generation, before.number)
		case !is && !without:
			p.dropped[user] = before
		}
		if !is {
			delete(p.told, user)
		}
	}
	for _, one := range was.lined {
		if _, is := now[one.user]; carries && !is && c.holders[one.user].Number == 0 && !h.isOver(was, a) && !h.hadTicket(one.user, a) {
			h.breach("P9", "%s was in line at the frozen gate, and is not after a rebuild without the log", one.user)
		}
	}
	p.at = now
}

// isOver reports whether a frozen line has ended by the ledger.
func (h *history) isOver(was happening, a *account) bool { return a.sentAway(was.generation) }

// hadTicket reports whether the ledger has a coupon of a user that was issued to a ticket.
func (h *history) hadTicket(user firstcome.UserID, a *account) bool {
	return slices.ContainsFunc(a.coupons, func(c stored) bool { return c.User == user && c.Ticket > 0 })
}

// returned holds somebody whom a recovery has in line against how their ticket had ended.
func (h *history) returned(one inLine, a *account) {
	if gone, is := h.promised.dropped[one.user]; is && gone.number == one.ticket && h.promised.at[one.user].number == 0 && h.town.puts == 0 {
		h.breach("P9", "%s has ticket %d again, which an earlier recovery had not brought back", one.user, one.ticket)
	}
	how, is := h.promised.ended[one.user]
	if !is || how.ticket.number != one.ticket {
		return
	}
	switch i := h.issueOf(how.number); {
	case how.left:
		h.breach("P9", "%s was told that they left, and has ticket %d again after a recovery", one.user, one.ticket)
	case how.number > 0 && i != nil && i.lost == 0 && a.coupon(how.number) != nil:
		h.breach("P9", "%s got number %d for ticket %d, and has that again after a recovery", one.user, how.number, one.ticket)
	case how.sent && a.sentAway(how.ticket.generation):
		h.breach("P9", "%s was sent away with generation %d, as the ledger knows, and has ticket %d again after a recovery", one.user, how.ticket.generation, one.ticket)
	}
}

// sentAway reports whether the ledger knows that a generation, or a later one, sent its people away.
func (a *account) sentAway(generation int64) bool {
	for _, p := range a.line.Past {
		if p.Generation >= generation && p.Reason != reasonLost {
			return true
		}
	}
	return false
}

// withoutLog reports whether any rebuild went without the log since the gate was put last, and whether the one that puts it now did.
func (h *history) withoutLog(a *account) (without, now bool) {
	for _, d := range a.changes[h.promised.seen:] {
		if d.Kind == firstcome.ChangeRebuild {
			now = d.anew || d.Terms.Log.First < 0
			without = without || now
		}
	}
	h.promised.seen = a.Version
	return without, now
}
