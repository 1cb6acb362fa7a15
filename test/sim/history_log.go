package sim

import (
	"slices"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/test/stage"
)

// A promised line is what people were told of a line that has a log. That holds whatever the gate loses.
type promised struct {
	at      map[firstcome.UserID]stage.TicketName // in which ticket somebody is in line, by what the gate did
	told    map[firstcome.UserID]bool             // that they are
	dropped map[firstcome.UserID]stage.TicketName // the last ticket that a recovery did not bring back, of somebody who had not been told it
	seen    int64                                 // the version of the ledger at the last recovery
	ended   map[firstcome.UserID]ending           // how the last ticket of somebody ended who is not in line
}

// An ending is how a ticket ended.
type ending struct {
	ticket stage.TicketName
	number int64 // with a coupon; 0: without
	left   bool  // its user was told that they left
	sent   bool  // all were sent away
}

func newPromised() promised {
	return promised{
		at: map[firstcome.UserID]stage.TicketName{}, told: map[firstcome.UserID]bool{}, dropped: map[firstcome.UserID]stage.TicketName{}, ended: map[firstcome.UserID]ending{},
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

// toldGone notes that a user who is not in line was told so. If they left, no recovery may bring their ticket back.
func (p *promised) toldGone(user firstcome.UserID) {
	how, is := p.ended[user]
	if _, waits := p.at[user]; is && !waits {
		how.left = how.number == 0 && !how.sent
		p.ended[user] = how
	}
}

// tracks takes over what the gate did to its line.
func (h *history) tracks(now stage.Happening) {
	p := &h.promised
	switch {
	case now.Came != "":
		for user, other := range p.at {
			if other.Number >= now.Ticket.Number {
				h.breach("P9", "%s was given ticket %d, and %s has ticket %d", now.Came, now.Ticket.Number, user, other.Number)
			}
		}
		p.at[now.Came] = now.Ticket
		delete(p.told, now.Came)
		delete(p.dropped, now.Came)
		delete(p.ended, now.Came)
	case now.Went != "":
		p.ends(now.Went, ending{})
	case now.Issued.Number > 0:
		p.ends(now.Issued.User, ending{number: now.Issued.Number})
	case now.Sent != "":
		for user := range p.at {
			p.ends(user, ending{sent: true})
		}
	}
}

// isTold notes that somebody was told a place, at a line that has a log.
func (h *history) isTold(a *asked, place firstcome.Place) {
	p, user := &h.promised, firstcome.UserID(a.name)
	if gone, is := p.dropped[user]; is && gone.Number == place.Ticket && place.Generation <= gone.Generation {
		h.breach("P9", "%s was told ticket %d, which a recovery had not brought back", user, place.Ticket)
	}
	if p.at[user].Number == place.Ticket && place.Generation <= p.at[user].Generation {
		p.told[user] = true
	}
}

// recovered holds a line that was recovered against what people were told.
func (h *history) recovered(was stage.Happening, c *course) {
	p, a := &h.promised, h.town.ledger.campaigns[campaign]
	without, carries := h.withoutLog(a)
	now := map[firstcome.UserID]stage.TicketName{}
	last := int64(0)
	for _, one := range c.People {
		if _, twice := now[one.User]; twice {
			h.breach("P9", "%s is in line twice after a recovery", one.User)
		}
		if one.Ticket <= last {
			h.breach("P9", "ticket %d stands behind ticket %d after a recovery", one.Ticket, last)
		}
		last = one.Ticket
		now[one.User] = stage.TicketName{Generation: c.Line.Generation, Number: one.Ticket}
		h.returned(one, a)
	}
	for _, user := range h.lineup.people {
		before := p.at[user]
		after, is := now[user]
		switch {
		case is && after.Number != before.Number && p.told[user]:
			h.breach("P9", "%s was told ticket %d, and has ticket %d after a recovery", user, before.Number, after.Number)
		case !is && p.told[user] && !without:
			h.breach("P9", "%s was told ticket %d.%d, and is not in line after a recovery", user, before.Generation, before.Number)
		case !is && !without:
			p.dropped[user] = before
		}
		if !is {
			delete(p.told, user)
		}
	}
	for _, one := range was.Carried {
		if _, is := now[one.User]; carries && !is && c.Holders[one.User].Number == 0 && !h.isOver(was, a) && !h.hadTicket(one.User, a) {
			h.breach("P9", "%s was in line at the frozen gate, and is not after a rebuild without the log", one.User)
		}
	}
	p.at = now
}

// isOver reports whether a frozen line has ended by the ledger.
func (h *history) isOver(was stage.Happening, a *account) bool { return a.sentAway(was.Generation) }

// hadTicket reports whether the ledger has a coupon of a user that was issued to a ticket.
func (h *history) hadTicket(user firstcome.UserID, a *account) bool {
	return slices.ContainsFunc(a.coupons, func(c stored) bool { return c.User == user && c.Ticket > 0 })
}

// returned holds somebody whom a recovery has in line against how their ticket had ended.
func (h *history) returned(one stage.InLine, a *account) {
	if gone, is := h.promised.dropped[one.User]; is && gone.Number == one.Ticket && h.promised.at[one.User].Number == 0 && h.town.puts == 0 {
		h.breach("P9", "%s has ticket %d again, which an earlier recovery had not brought back", one.User, one.Ticket)
	}
	how, is := h.promised.ended[one.User]
	if !is || how.ticket.Number != one.Ticket {
		return
	}
	switch i := h.issueOf(how.number); {
	case how.left:
		h.breach("P9", "%s was told that they left, and has ticket %d again after a recovery", one.User, one.Ticket)
	case how.number > 0 && i != nil && i.lost == 0 && a.coupon(how.number) != nil:
		h.breach("P9", "%s got number %d for ticket %d, and has that again after a recovery", one.User, how.number, one.Ticket)
	case how.sent && a.sentAway(how.ticket.Generation):
		h.breach("P9", "%s was sent away with generation %d, as the ledger knows, and has ticket %d again after a recovery", one.User, how.ticket.Generation, one.Ticket)
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
