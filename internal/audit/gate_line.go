package audit

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/firstcome/firstcome"
)

// A GateLine reads the waiting line of a campaign at a remote gate.
type GateLine struct {
	// Counters returns the line's counters and the last ended generations.
	Counters func(context.Context, firstcome.CampaignID) (LineView, error)
	// InLine calls each with every ticket in line, in order. Tickets calls each with the last ticket of each user, in no order. Both may include
	// tickets that no longer count: of earlier generations, or already served.
	InLine, Tickets func(ctx context.Context, id firstcome.CampaignID, each func(GateTicket) error) error
}

// A GateTicket is a ticket at a remote gate.
type GateTicket struct {
	Generation, Number int64
	User               firstcome.UserID
	JoinedAt           time.Time // only of a ticket in line
	Over               bool      // the user left or got a coupon directly, or its coupon was voided
}

// A lineComparison is one reading of a line at a gate, and of the tickets of coupons. The coupons of ledger, dead letters and journal are read
// between the two readings of the counters.
type lineComparison struct {
	before, after LineView
	inLine        []GateTicket
	tickets       map[firstcome.UserID]GateTicket
	coupons       map[int64]int64      // number of the coupon, by its ticket in the generation
	elsewhere     int64                // number of coupons with a ticket of another generation
	last          place                // the last ticket of a coupon
	past          []firstcome.PastLine // ended generations in the ledger
}

// begin reads the counters and the tickets.
func (l *lineComparison) begin(ctx context.Context, gate GateLine, id firstcome.CampaignID) (err error) {
	l.tickets, l.coupons = map[firstcome.UserID]GateTicket{}, map[int64]int64{}
	if l.before, err = gate.Counters(ctx, id); err != nil {
		return err
	}
	err = gate.InLine(ctx, id, func(t GateTicket) error {
		l.inLine = append(l.inLine, t)
		return nil
	})
	if err != nil {
		return err
	}
	return gate.Tickets(ctx, id, func(t GateTicket) error {
		l.tickets[t.User] = t
		return nil
	})
}

// end reads the line's ended generations in the ledger, and the counters again.
func (l *lineComparison) end(ctx context.Context, ledger Source, gate GateLine, id firstcome.CampaignID) (err error) {
	if ledger.Past != nil {
		err = ledger.Past(ctx, id, func(p firstcome.PastLine) { l.past = append(l.past, p) })
	}
	if err == nil {
		l.after, err = gate.Counters(ctx, id)
	}
	return err
}

// known notes the ticket of a coupon.
func (l *lineComparison) known(g grant) {
	p := place{firstcome.Ticket{Generation: g.generation, Number: g.ticket}, g.number}
	switch {
	case g.number == 0 || g.ticket == 0:
		return
	case g.generation == l.before.Line.Generation:
		l.coupons[g.ticket] = g.number
	default:
		l.elsewhere++
	}
	if l.last.Before(p.Ticket) {
		l.last = p
	}
}

// moved reports whether a user joined, left or was served during the comparison.
func (l *lineComparison) moved() bool {
	return l.before.Line != l.after.Line
}

// passed reports whether a ticket does not count, because it is of an earlier generation or was served before it was read.
func (l *lineComparison) passed(t GateTicket) bool {
	now := l.before.Line
	return t.Generation < now.Generation || t.Generation == now.Generation && t.Number <= now.ServedThrough && l.coupons[t.Number] > 0
}

// compareLine compares the line with itself, with the coupons and with what the ledger was told.
func (c *comparison) compareLine() {
	l := &c.line
	if now := l.after.Line; (firstcome.Ticket{Generation: now.Generation, Number: now.ServedThrough}).Before(l.last.Ticket) {
		c.differs("P9", "number %d was issued to the ticket %d.%d, whose turn has not come at the gate", l.last.number, l.last.Generation, l.last.Number)
	}
	c.compareTold()
	if l.before.Line.Generation != l.after.Line.Generation {
		return // users who were in line when the generation ended are gone, but their tickets remain
	}
	here := c.compareInLine()
	over := c.compareTickets(here)
	c.compareSums(int64(len(here)), over)
}

// compareInLine checks the tickets in line, in order, and returns them by user.
func (c *comparison) compareInLine() map[firstcome.UserID]int64 {
	l, here := &c.line, map[firstcome.UserID]int64{}
	var before GateTicket
	for _, t := range l.inLine {
		if l.passed(t) {
			continue
		}
		if t.JoinedAt.Before(before.JoinedAt) {
			c.differs("P9", "the ticket %d.%d was given at %s, before the ticket %d.%d", t.Generation, t.Number, text(t.JoinedAt), before.Generation, before.Number)
		}
		if first, twice := here[t.User]; twice {
			c.differs("P9", "the user %q is in line twice, with the tickets %d.%d and %d.%d", t.User, t.Generation, first, t.Generation, t.Number)
		}
		c.compareLive(t)
		if own := l.tickets[t.User]; own.Generation != t.Generation || own.Number != t.Number || own.Over {
			c.differs("P9", "the ticket %d.%d of the user %q is in line, but is not the ticket that the gate finds for them", t.Generation, t.Number, t.User)
		}
		here[t.User], before = t.Number, t
	}
	return here
}

// compareLive checks a ticket that has not ended.
func (c *comparison) compareLive(t GateTicket) {
	now := c.line.after.Line
	switch {
	case t.Generation > now.Generation || t.Number > now.LastTicket:
		c.differs("P9", "the ticket %d.%d of the user %q was not given", t.Generation, t.Number, t.User)
	case t.Number <= c.line.before.Line.ServedThrough:
		c.differs("P9", "the ticket %d.%d of the user %q was passed over: it has not ended, but later tickets were served", t.Generation, t.Number, t.User)
	}
	if holds, ok := c.holders[t.User]; ok {
		c.differs("P9", "the user %q has the ticket %d.%d, which has not ended, and holds number %d", t.User, t.Generation, t.Number, holds.number)
	}
}

// compareTickets checks the tickets that the gate finds for users, and returns how many have ended without a coupon. here has the tickets in line.
func (c *comparison) compareTickets(here map[firstcome.UserID]int64) (over int64) {
	l := &c.line
	for _, user := range slices.Sorted(maps.Keys(l.tickets)) {
		t := l.tickets[user]
		if l.passed(t) {
			continue
		}
		if t.Over {
			over++
		}
		switch in, ok := here[user]; {
		case t.Over && (t.Generation > l.after.Line.Generation || t.Number > l.after.Line.LastTicket):
			c.differs("P9", "the ticket %d.%d of the user %q was not given", t.Generation, t.Number, user)
		case t.Over || ok && in == t.Number:
		case !ok:
			c.differs("P9", "the ticket %d.%d of the user %q has not ended, but is not in line", t.Generation, t.Number, user)
			c.compareLive(t)
		}
	}
	return over
}

// compareSums compares the counters with the numbers of tickets in line and of tickets that ended without a coupon. A ticket ends only once, so a
// ticket that was read as ended is not counted as waiting later.
func (c *comparison) compareSums(inLine, over int64) {
	l := &c.line
	g, coupons := l.after.Line, int64(len(l.coupons))
	if g.Left() < 0 || coupons+over+g.Waiting > g.LastTicket {
		c.differs("P9", "generation %d counts %d tickets, %d of them served, %d in line, and each up to %d ended; %d have coupons, and %d others have ended",
			g.Generation, g.LastTicket, g.Served, g.Waiting, g.ServedThrough, coupons, over)
	}
	if coupons > g.Served {
		c.differs("P9", "generation %d counts %d tickets served, and %d coupons name one of them", g.Generation, g.Served, coupons)
	}
	if unknown := c.highest - l.elsewhere; l.before.Line.Served > unknown {
		c.differs("P9", "generation %d counts %d tickets served, and %d numbers were not issued to another generation", g.Generation, l.before.Line.Served, unknown)
	}
	if !l.moved() && inLine != g.Waiting {
		c.differs("P9", "generation %d counts %d tickets in line, and has %d", g.Generation, g.Waiting, inLine)
	}
}

// compareTold compares what the ledger was told of the line with the gate, and the gate must not lag. If a line was lost, the ledger has what it
// knew by then.
func (c *comparison) compareTold() {
	l, lost := &c.line, false
	for _, told := range l.past {
		lost = lost || told.Reason == "lost"
		for _, at := range l.after.Past {
			if told.Reason != "lost" && told.Generation == at.Generation && pastText(told) != pastText(at) {
				c.differs("P9", "generation %d %s at the gate, but in the ledger it %s", at.Generation, pastText(at), pastText(told))
			}
		}
	}
	if lost {
		return
	}
	told, now := c.campaign.Line, l.after.Line
	beyond := told.ServedThrough > now.ServedThrough || told.LastTicket > now.LastTicket || told.Served > now.Served
	if told.Generation > now.Generation || told.Generation == now.Generation && beyond {
		c.differs("P9", "the ledger was told that the line is at the ticket %d.%d of %d, %d served; at the gate it is at %d.%d of %d, %d served",
			told.Generation, told.ServedThrough, told.LastTicket, told.Served, now.Generation, now.ServedThrough, now.LastTicket, now.Served)
	}
}

// pastText describes a generation that ended.
func pastText(p firstcome.PastLine) string {
	return fmt.Sprintf("ended as %s at %s with %d tickets, %d served, %d in line, and each up to %d ended", p.Reason, text(p.EndedAt), p.LastTicket, p.Served, p.Waiting, p.ServedThrough)
}
