package audit

import (
	"maps"
	"slices"
)

// compareFed compares a line that a feed keeps: where it begins, how far it is served, and who left. Who is in line only the feed knows.
func (c *comparison) compareFed() {
	l := &c.line
	c.compareFeed()
	c.compareBegun()
	for _, t := range l.inLine {
		c.differs("P9", "the ticket %d.%d of the user %q is in line at the gate, and a topic keeps the line", t.Generation, t.Number, t.User)
	}
	c.compareServed()
	if l.before.Line.Generation == l.after.Line.Generation { // else who left the one before may be gone, or not
		c.compareLeft()
	}
}

// compareFeed compares which feed keeps the line.
func (c *comparison) compareFeed() {
	here, there := c.line.after.Feed, c.campaign.Feed
	if c.pending() {
		return // another one may be what is on its way
	}
	same := here != nil && there != nil && here.Topic == there.Topic && (here.Partition == there.Partition || there.Partition < 0)
	if !same {
		c.differs("P9", "by the gate the line is %s, and by the ledger it is %s", feedText(here), feedText(there))
	}
}

// compareBegun compares where the generation begins. The ledger hears of that before the gate.
func (c *comparison) compareBegun() {
	if c.line.before.Feed == nil {
		return
	}
	at, told := c.line.before.Line, c.campaign.Line
	switch {
	case !at.Begun || told.Generation > at.Generation:
	case told.Generation < at.Generation || !told.Begun:
		c.differs("P9", "generation %d has begun at the gate, and the ledger does not know it", at.Generation)
	case told.First != at.First:
		c.differs("P9", "generation %d begins at the offset %d at the gate, and at %d by the ledger", at.Generation, at.First, told.First)
	}
}

// compareServed holds the counters against themselves and against the coupons that name a ticket.
func (c *comparison) compareServed() {
	l := &c.line
	g, coupons := l.after.Line, int64(len(l.coupons))
	if g.Waiting != 0 || g.LastTicket != g.ServedThrough || g.Served > g.LastTicket || g.LastTicket > 0 && !g.Begun {
		c.differs("P9", "generation %d counts %d tickets that have ended, %d served, %d in line, and each up to %d ended; begun: %v",
			g.Generation, g.LastTicket, g.Served, g.Waiting, g.ServedThrough, g.Begun)
	}
	if g.Generation == l.before.Line.Generation && coupons > g.Served {
		c.differs("P9", "generation %d counts %d tickets served, and %d coupons name one of them", g.Generation, g.Served, coupons)
	}
}

// compareLeft checks who left: they are not served with a ticket up to theirs.
func (c *comparison) compareLeft() {
	l := &c.line
	now := l.after.Line
	for _, user := range slices.Sorted(maps.Keys(l.tickets)) {
		t := l.tickets[user]
		if !t.Over || t.Generation > now.Generation {
			c.differs("P9", "the ticket %d.%d of the user %q was not given by the gate", t.Generation, t.Number, user)
		}
		if holds := c.holders[user]; t.Generation == now.Generation && holds.generation == now.Generation && holds.ticket > 0 && holds.ticket <= t.Number {
			c.differs("P9", "number %d was issued to the ticket %d.%d of the user %q, who had left with all tickets up to %d", holds.number, holds.generation, holds.ticket, user, t.Number)
		}
	}
	if has := int64(len(l.tickets)); !l.moved() && has != l.after.Left {
		c.differs("P9", "the gate counts %d users who left, and has %d", l.after.Left, has)
	}
	for _, one := range l.left {
		if at := l.tickets[one.User]; one.Generation == now.Generation && (at.Generation != one.Generation || at.Number < one.Through) {
			c.differs("P9", "the user %q left with all tickets up to %d.%d, and the gate would serve them", one.User, one.Generation, one.Through)
		}
	}
}
