package audit

import (
	"slices"
	"time"

	"github.com/firstcome/firstcome"
)

// A Ticket is a ticket of a waiting line.
type Ticket struct {
	Generation, Number int64
	User               firstcome.UserID
	JoinedAt           time.Time
	EndedAt            time.Time // zero: its user is in line, or was sent away with the generation
	Outcome            string    // issued, held or left; empty as EndedAt
}

// A PastLine is a generation of a line that ended.
type PastLine struct {
	firstcome.Line // as it was, but for Due
	Reason         string
	EndedAt        time.Time
}

// A place is what is kept of a coupon for the audit of the line.
type place struct {
	generation, ticket, number int64
	user                       uint64 // a hash
	issuedAt                   int64  // microseconds
}

// A direct is what is kept of a coupon that was issued without a line.
type direct struct {
	user     uint64 // a hash
	issuedAt int64  // microseconds
}

// lineAudit checks P9: tickets are given and served in order, and each ends once.
type lineAudit struct {
	*Breaches
	campaign *Campaign
	history  *history
	served   []place         // coupons that were issued to tickets, in number order
	direct   map[direct]bool // the others, where there is a line
	at       map[int64]bool  // microseconds: when a coupon was issued or terms changed
	past     []PastLine
	lost     int64   // of past
	letters  []place // dead letters with tickets that are not coupons
	ended    int     // of past, those before the tickets that are read
	is       firstcome.Line
	issued   int64 // the last ticket of the generation that a coupon was issued to
	first    int64 // ticket of those in line; 0: none
	waits    map[uint64]bool
	before   Ticket
	joined   time.Time // the first ticket
	latest   time.Time // of anything
}

func newLineAudit(b *Breaches, c *Campaign, h *history) lineAudit {
	return lineAudit{Breaches: b, campaign: c, history: h, direct: map[direct]bool{}, at: map[int64]bool{}, waits: map[uint64]bool{}}
}

// lined tells whether the campaign has or had a line.
func (a *lineAudit) lined() bool {
	row := a.campaign.Row
	return row != nil && (row.Line.Generation != 1 || row.Line.LastTicket > 0 || row.Line.Begun)
}

// coupon keeps what a coupon says of its ticket. Coupons are given in number order.
func (a *lineAudit) coupon(c firstcome.Coupon) {
	at := c.IssuedAt.UnixMicro()
	if a.lined() {
		a.at[at] = true
	}
	if c.Ticket == 0 && c.Generation == 0 {
		if a.lined() {
			a.direct[direct{hash(string(c.User)), at}] = true
		}
		return
	}
	p := place{c.Generation, c.Ticket, c.Number, hash(string(c.User)), at}
	if n := len(a.served); n > 0 && !a.served[n-1].before(p) {
		a.add("P9", "number %d was issued to the ticket %d.%d, behind number %d to the ticket %d.%d",
			p.number, p.generation, p.ticket, a.served[n-1].number, a.served[n-1].generation, a.served[n-1].ticket)
		return
	}
	a.served = append(a.served, p)
}

// before tells whether a ticket is before another's.
func (p place) before(o place) bool {
	return p.generation < o.generation || p.generation == o.generation && p.ticket < o.ticket
}

// generation keeps a generation that ended.
func (a *lineAudit) generation(p PastLine) {
	if want := int64(len(a.past)) + 1; p.Generation != want {
		a.add("P9", "generation %d of the line ended behind generation %d", p.Generation, want-1)
	}
	if a.past = append(a.past, p); p.Reason == "lost" {
		a.lost++
	}
	if !a.ends(p) {
		a.add("P9", "generation %d ended at %s as %s, and nothing did so then", p.Generation, text(p.EndedAt), p.Reason)
	}
}

func (a *lineAudit) sees(at time.Time) {
	if at.After(a.latest) {
		a.latest = at
	}
}

// ends tells whether a generation could end so: a coupon was issued then or terms were changed, a window closed at that
// instant, or an operator closed the campaign. When a remote gate took a change the ledger does not say.
func (a *lineAudit) ends(p PastLine) bool {
	remote, terms := a.campaign.Remote, a.history.terms
	switch p.Reason {
	case "lost":
		return remote || a.fed() && slices.ContainsFunc(terms, func(t termsFrom) bool { return t.at.Equal(p.EndedAt) })
	case "sold_out":
		changed := slices.ContainsFunc(terms, func(t termsFrom) bool { return t.at.Equal(p.EndedAt) })
		return remote || changed || a.at[p.EndedAt.UnixMicro()]
	}
	closed := a.history.closedAt
	return !closed.IsZero() && (remote || p.EndedAt.Equal(closed)) || a.passes(p.EndedAt)
}

// passes tells whether a window closed at an instant: that of terms which stood, or of terms that moved it into the past.
func (a *lineAudit) passes(at time.Time) bool {
	terms := a.history.terms
	return slices.ContainsFunc(terms, func(t termsFrom) bool {
		if t.closesAt.IsZero() {
			return false
		}
		moved := t.closesAt.Before(t.at) && (a.campaign.Remote || at.Equal(t.at))
		return moved || at.Equal(t.closesAt)
	})
}

// ticket checks the next ticket. They are given in the order of generations and tickets, after all coupons.
func (a *lineAudit) ticket(t Ticket) {
	if t.Generation != a.is.Generation {
		a.turn(t.Generation)
	}
	if t.Number != a.is.LastTicket+1 {
		a.add("P9", "the ticket %d.%d follows the ticket %d.%d", t.Generation, t.Number, t.Generation, a.is.LastTicket)
	}
	if t.JoinedAt.Before(a.before.JoinedAt) {
		a.add("P9", "the ticket %d.%d was given at %s, before the one before it", t.Generation, t.Number, text(t.JoinedAt))
	}
	if a.joined.IsZero() {
		a.joined = t.JoinedAt
	}
	a.is.LastTicket, a.before = t.Number, t
	a.sees(t.JoinedAt)
	a.sees(t.EndedAt)
	a.end(t)
}

// end checks how a ticket ended.
func (a *lineAudit) end(t Ticket) {
	user := hash(string(t.User))
	var coupon *place
	for len(a.served) > 0 && !(place{generation: t.Generation, ticket: t.Number}).before(a.served[0]) {
		if p := a.served[0]; p.generation == t.Generation && p.ticket == t.Number {
			coupon = &p
		} else {
			a.add("P9", "number %d was issued to the ticket %d.%d, which was not given", p.number, p.generation, p.ticket)
		}
		a.served = a.served[1:]
	}
	if !t.EndedAt.IsZero() && t.EndedAt.Before(t.JoinedAt) {
		a.add("P9", "the ticket %d.%d ended at %s, before it was given at %s", t.Generation, t.Number, text(t.EndedAt), text(t.JoinedAt))
	}
	switch {
	case coupon != nil && (t.Outcome != "issued" || coupon.user != user || coupon.issuedAt != t.EndedAt.UnixMicro()):
		a.add("P9", "number %d was issued to the ticket %d.%d, which says that %q got one at %s: %q", coupon.number, t.Generation, t.Number, t.User, text(t.EndedAt), t.Outcome)
	case coupon == nil && t.Outcome == "issued":
		a.add("P9", "no coupon was issued to the ticket %d.%d, which says so", t.Generation, t.Number)
	case t.Outcome == "already_issued" && !a.direct[direct{user, t.EndedAt.UnixMicro()}]:
		a.add("P9", "the ticket %d.%d ended at %s since %q got a coupon directly, and none was issued so", t.Generation, t.Number, text(t.EndedAt), t.User)
	}
	switch t.Outcome {
	case "issued":
		a.issued = t.Number
		a.is.Served++
	case "already_issued":
		a.is.Served++
	case "":
		if a.waits[user] {
			a.add("P9", "the user %q is in line twice", t.User)
		}
		a.waits[user] = true
		if a.is.Waiting++; a.first == 0 {
			a.first = t.Number
		}
	}
}

// turn ends the tickets of a generation, and those of generations before another one of which there are none.
func (a *lineAudit) turn(next int64) {
	if a.is.Generation > 0 {
		a.count()
	}
	a.is, a.issued, a.first, a.before = firstcome.Line{Generation: next}, 0, 0, Ticket{JoinedAt: a.before.JoinedAt}
	clear(a.waits)
}

// count holds the tickets of a generation against what the campaign's row, or that of the generation, counts.
func (a *lineAudit) count() {
	var says firstcome.Line
	switch g := a.is.Generation; {
	case g == a.campaign.Row.Line.Generation:
		says = a.campaign.Row.Line
	case a.ended < len(a.past) && a.past[a.ended].Generation == g:
		says = a.past[a.ended].Line
		a.ended++
	default:
		a.add("P9", "there are tickets of the generation %d, and no row of it", g)
		return
	}
	if a.is.LastTicket != says.LastTicket || a.is.Served != says.Served || a.is.Waiting != says.Waiting {
		a.add("P9", "generation %d counts %d tickets, %d served and %d in line; by the tickets it is %d, %d and %d",
			a.is.Generation, says.LastTicket, says.Served, says.Waiting, a.is.LastTicket, a.is.Served, a.is.Waiting)
	}
	least, most := a.issued, a.is.LastTicket
	if a.first > 0 {
		most = a.first - 1
	}
	if through := says.ServedThrough; through < least || through > most || a.first == 0 && through != most {
		a.add("P9", "every ticket of the generation %d up to %d has ended, by the tickets themselves up to %d to %d", a.is.Generation, through, least, most)
	}
}

// finish checks what was not given as a ticket.
func (a *lineAudit) finish() {
	if a.fed() {
		a.finishFed()
		return
	}
	if a.is.Generation > 0 {
		a.count()
	}
	for _, p := range a.served {
		a.add("P9", "number %d was issued to the ticket %d.%d, which was not given", p.number, p.generation, p.ticket)
	}
	line := a.campaign.Row.Line
	if n := int64(len(a.past)); line.Generation != n+1 {
		a.add("P9", "the line is in generation %d, and %d have ended", line.Generation, n)
	}
	if a.ended < len(a.past) {
		a.add("P9", "generation %d ended, and there are no tickets of it", a.past[a.ended].Generation)
	}
	if line.LastTicket > 0 && a.is.Generation != line.Generation {
		a.add("P9", "the line counts %d tickets, and there are none of its generation %d", line.LastTicket, line.Generation)
	}
}
