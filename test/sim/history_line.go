package sim

import (
	"errors"
	"slices"
	"time"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/test/stage"
)

// A lineup is the line as it should be, by what the gate did: who came first stands first.
type lineup struct {
	people []firstcome.UserID
	served []time.Time // when, by the gate's time; of the pace that holds
	owners map[stage.TicketName]firstcome.UserID
}

// lined takes over what happened to the line.
func (h *history) lined(now stage.Happening, g *Gate) {
	l := &h.lineup
	if h.town.topic != nil {
		h.tracks(now)
	}
	switch {
	case now.Came != "":
		if slices.Contains(l.people, now.Came) {
			h.breach("P9", "%s joined the line, and was in it", now.Came)
		}
		if h.holds[now.Came] > 0 {
			h.breach("P9", "%s joined the line, and holds number %d", now.Came, h.holds[now.Came])
		}
		l.people = append(slices.Clone(l.people), now.Came)
		if g != h.town.gate { // the tickets of an old server are lost with it
			return
		}
		if owner, is := l.owners[now.Ticket]; is && owner != now.Came {
			h.breach("P9", "ticket %v was given to %s and to %s", now.Ticket, owner, now.Came)
		}
		if l.owners == nil {
			l.owners = map[stage.TicketName]firstcome.UserID{}
		}
		l.owners[now.Ticket] = now.Came
	case now.Went != "":
		h.steps(now.Went)
	case now.Issued.Ticket > 0:
		if len(l.people) == 0 || l.people[0] != now.Issued.User {
			h.breach("P9", "number %d was issued to %s of the line, in which %v stand", now.Issued.Number, now.Issued.User, l.people)
		}
		h.steps(now.Issued.User)
		h.paced(now.Issued.IssuedAt, g)
	case now.Issued.Number > 0:
		h.steps(now.Issued.User)
	case now.Sent != "":
		if now.Sent == firstcome.SoldOut.String() && int64(len(h.holds)) < now.Quantity {
			h.breach("P9", "%v were sent away as sold out, and %d coupons are in force", l.people, len(h.holds))
		}
		l.people = nil
	case now.Applied > 0:
		l.served = nil // perhaps at another pace
	}
}

// carried takes over the line after a rebuild: the users who were in line at the frozen gate, in order, except those who are holders by now, or were,
// as the ledger knows. A generation that has ended by the ledger is not carried over.
func (h *history) carried(was stage.Happening, c *course) {
	a := h.town.ledger.campaigns[campaign]
	over := a.sentAway(was.Generation)
	passed := func(p stage.InLine) bool {
		_, holds := c.Holders[p.User]
		return holds || slices.ContainsFunc(a.coupons, func(one stored) bool { return one.User == p.User && one.Ticket > 0 })
	}
	should, is := slices.DeleteFunc(slices.Clone(was.Carried), passed), slices.DeleteFunc(slices.Clone(c.People), passed)
	if over {
		should = nil
	}
	if h.town.topic != nil {
		h.recovered(was, c)
	} else if !slices.Equal(should, is) {
		h.breach("P9", "%v were in line at the frozen gate, and after a rebuild %v are", should, is)
	}
	h.lineup.people, h.lineup.served = nil, nil
	for _, p := range c.People {
		h.lineup.people = append(h.lineup.people, p.User)
	}
}

// steps takes somebody out of the line.
func (h *history) steps(user firstcome.UserID) {
	h.lineup.people = slices.DeleteFunc(slices.Clone(h.lineup.people), func(u firstcome.UserID) bool { return u == user })
}

// paced checks that nobody of the line is served before their turn, where the clock does not jump: in any time as many as the pace says, and a
// bucket.
func (h *history) paced(at time.Time, g *Gate) {
	pace := g.campaigns[campaign].Pace
	if pace == nil || pace.PerSecond == 0 || h.town.clock > 0 {
		return
	}
	h.lineup.served = append(h.lineup.served, at)
	turn := time.Second / time.Duration(pace.PerSecond)
	for n, before := range h.lineup.served {
		if more := time.Duration(len(h.lineup.served)-1-n) * turn; more > at.Sub(before)+max(turn, 100*time.Millisecond) {
			h.breach("P9", "%d were served within %s at a pace of %d a second", len(h.lineup.served)-n, at.Sub(before), pace.PerSecond)
			return
		}
	}
}

// stands returns whether somebody was in line at all looks between two, and whether at some.
func (l lookers) stands(user firstcome.UserID) (always, ever bool) {
	always = true
	for n := range l {
		is := slices.Contains(l[n].lineup, user)
		always, ever = always && is, ever || is
	}
	return always, ever
}

// lookers are some looks, one behind the other.
type lookers []look

// during returns the looks from the one in whose time something was asked to the one in which it was answered.
func (h *history) during(a *asked) lookers {
	return h.looks[max(0, a.sent-1):a.received]
}

// over reports whether everybody in line was as good as sent away since something was asked, by a window that passed: the gate ends the generation
// when somebody comes. Or the clock jumped, and a node may still go by its own: see history.since.
func (h *history) over(a *asked) bool {
	from := h.since(a.sentAt)
	ended := func(o firstcome.Outcome) bool { return o == firstcome.Closed || o == firstcome.SoldOut }
	return from != a.sentAt || h.says(ended, from, time.Now())
}

// waits checks the answer to a claim against P9: a user who is told to wait is in line, and a user who is in line is told so.
func (h *history) waits(a *asked) {
	always, ever := h.during(a).stands(firstcome.UserID(a.name))
	switch {
	case a.outcome == firstcome.Waiting && !ever:
		h.breach("P9", "%s was told to wait, and was not in line", a.name)
	case a.outcome != firstcome.Waiting && !a.outcome.HasCoupon() && always && !h.over(a):
		h.breach("P9", "%s was told %s, and was in line all the time", a.name, a.outcome)
	}
}

// leave makes a user leave the line through a node.
func (t *town) leave(p *person, n *node) {
	ctx, a := t.begin(p, n, "to leave")
	go func() {
		_, err := n.places.Leave(ctx, campaign, firstcome.UserID(p.name))
		said := "done"
		if err != nil {
			said = "error"
		}
		t.post(n, show(n.name, "tells", p.name, "of leaving:", said), func() {
			defer func() {
				if err == nil && a.heard {
					t.promised.toldGone(firstcome.UserID(p.name))
				}
			}()
			if always, _ := t.until(a).stands(firstcome.UserID(a.name)); t.end(a) && err == nil && always && !a.stray && !t.over(a) {
				t.breach("P9", "%s was told that they left, and was in line all the time", a.name)
			}
		})
	}()
}

// until works like during, for a call that is answered now.
func (h *history) until(a *asked) lookers { return h.looks[max(0, a.sent-1):] }

// place has a user ask for their place at a node.
func (t *town) place(p *person, n *node) {
	ctx, a := t.begin(p, n, "their place")
	go func() {
		at, held, err := n.places.Place(ctx, campaign, firstcome.UserID(p.name))
		said := show("ticket", at.Ticket, "number", held.Number)
		if err != nil {
			said = "error"
		}
		t.post(n, show(n.name, "tells", p.name, "of their place:", said), func() { t.placed(a, at, held, err) })
	}()
}

// placed holds where somebody was told to stand against what the gate did.
func (h *history) placed(a *asked, at firstcome.Place, held firstcome.Coupon, err error) {
	always, ever := h.until(a).stands(firstcome.UserID(a.name))
	if !h.end(a) {
		return
	}
	switch {
	case err == nil && a.refused:
		h.breach("P8", "%s was told their place, and %s had known that the gate's epoch has ended", a.name, a.node.name)
	case a.stray && held.Number == 0: // each server has a line of its own
	case err == nil && held.Number > 0:
		if given := h.issueOf(held.Number); given == nil || given.User != firstcome.UserID(a.name) {
			h.breach("P3", "%s was told to hold number %d, which the gate did not give them", a.name, held.Number)
		}
	case err == nil && !ever:
		h.breach("P9", "%s was told to have ticket %d, and was not in line", a.name, at.Ticket)
	case err == nil && h.town.topic != nil:
		h.isTold(a, at)
	case errors.Is(err, firstcome.ErrNoTicket) && always && !h.over(a):
		h.breach("P9", "%s was told to have no ticket, and was in line all the time", a.name)
	case errors.Is(err, firstcome.ErrNoTicket) && a.heard:
		h.promised.toldGone(firstcome.UserID(a.name))
	}
}

// visit makes a user claim or, sometimes if there is a line, ask for their place, or leave.
func (t *town) visit(p *person, n *node) {
	switch {
	case !t.paced || t.IntN(6) > 1:
		t.claim(p, n)
	case t.IntN(2) == 0:
		t.place(p, n)
	default:
		t.leave(p, n)
	}
}

// repace changes the pace, or takes it away.
func (t *town) repace(terms func(string, func(*firstcome.Terms))) {
	pace := t.pace()
	waitlist := pace != nil && t.IntN(3) == 0
	what := "no pace"
	if pace != nil {
		what = show("a pace of", pace.PerSecond, "and waitlist:", waitlist)
	}
	terms(what, func(terms *firstcome.Terms) { terms.Pace, terms.Waitlist = pace, waitlist })
}

// pace draws one, or none.
func (t *town) pace() *firstcome.Pace {
	switch t.IntN(4) {
	case 0:
		return nil
	case 1:
		return &firstcome.Pace{}
	}
	return &firstcome.Pace{PerSecond: 1 + t.Int64N(30)}
}
