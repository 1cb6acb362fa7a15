package sim

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/gate"
	"github.com/firstcome/firstcome/internal/issue"
	"github.com/firstcome/firstcome/internal/ledger"
	"github.com/firstcome/firstcome/test/stage"
)

// A history is all calls of users and operators, their answers, and what the gate did. The promises are checked by it.
type history struct {
	town     *town
	asked    []*asked
	looks    []look
	read     int // how many happenings of the gate's log
	issues   []given
	holds    map[firstcome.UserID]int64 // by the gate's actions, not its answers
	backs    []time.Time                // when stock came back
	breaches []breach
	lineup   lineup
	promised promised
	ranks    ranks
	stop     *asked // the last pause or close that was answered, after which nobody may be given anything; nil: none
}

// A breach is a promise that was broken, and how.
type breach struct{ promise, text string }

// An asked is one call of a user or operator to a node, and its answer.
type asked struct {
	*person
	node           *node
	what           string
	sent, received int // how many looks there were
	sentAt, at     time.Time
	outcome        firstcome.Outcome // 0: an error, or nobody told them
	number         int64
	over           bool
	heard          bool  // they heard the answer
	stray          bool  // it may be what a server said whose epoch had ended
	refused        bool  // the node knew before that its gate is in an epoch that has ended
	knew           int64 // the epoch that the node knew before
	cancel         context.CancelFunc
}

// A given is a number that the gate issued, and when it was voided there, or lost, as the number of looks until then; 0 if it was not.
type given struct {
	firstcome.Coupon
	epoch        int64
	voided, lost int
	outlived     bool // the epoch had ended
}

// A look is the decider's campaign from one instant on, until the next look.
type look struct {
	from    time.Time
	jumped  time.Duration
	course  // without its maps
	taken   int64
	lineup  []firstcome.UserID
	stopped bool // the gate decides nothing: its server lost something, or is another one
}

func (h *history) breach(promise, format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	h.town.say("BREACH of", promise+":", text)
	h.breaches = append(h.breaches, breach{promise, text})
}

// watch looks at the gate, after each event.
func (h *history) watch() {
	if h.holds == nil {
		h.holds = map[firstcome.UserID]int64{}
	}
	h.town.strays()
	g := h.town.decider()
	c := g.campaigns[campaign]
	if c == nil {
		c = &course{}
	}
	l := look{from: time.Now(), jumped: h.town.jumped, course: *c, taken: c.InForce(), stopped: h.town.standsAt(g) != nil}
	defer func() { h.looks[len(h.looks)-1].lineup = h.lineup.people }()
	raised := len(h.looks) > 0 && c.Quantity > h.looks[len(h.looks)-1].Quantity
	h.looks = append(h.looks, l)
	h.reads(h.town.gate, &h.read)
	if old := h.town.old.Load(); old != nil {
		h.reads(old.gate, &old.read)
	}
	if l.stopped {
		return
	}
	if raised {
		h.backs = append(h.backs, l.from)
	}
	if held := int64(len(h.holds)); held > c.Quantity {
		h.breach("P1", "%d coupons are in force at the gate, the quantity is %d", held, c.Quantity)
	}
}

// reads takes over what a server did since it was read last.
func (h *history) reads(g *Gate, from *int) {
	log, epoch := *g.logs[campaign], h.town.ledger.campaigns[campaign].epoch
	for ; *from < len(log); *from++ {
		if g != h.town.gate {
			h.town.say("  … at the old server", words(&log[*from]))
		}
		if c := g.campaigns[campaign]; c != nil && c.Epoch < epoch && log[*from].Outlived == 0 {
			h.outlives(log[*from], c.Epoch)
			continue
		}
		h.happened(log[*from], g)
	}
}

// happened takes over one thing that the server did that is in the ledger's epoch, or that one is behind it.
func (h *history) happened(now stage.Happening, g *Gate) {
	defer h.lined(now, g)
	switch {
	case now.Issued.Number > 0:
		c := now.Issued
		h.given(c)
		if before := h.holds[c.User]; before > 0 {
			h.breach("P3", "%s was given number %d while they held number %d", c.User, c.Number, before)
		}
		if h.stop != nil {
			h.breach("P7", "%s was given number %d, after %s had been told that %s is done", c.User, c.Number, h.stop.name, h.stop.what)
		}
		h.holds[c.User] = c.Number
		h.issues = append(h.issues, given{Coupon: c, epoch: g.campaigns[campaign].Epoch})
	case now.Voided.Number > 0:
		delete(h.holds, now.Voided.User)
		h.backs = append(h.backs, time.Now())
		if i := h.issueOf(now.Voided.Number); i != nil {
			i.voided = len(h.looks)
		}
	case now.Outlived > 0:
		h.breach("P8", "the gate is in epoch %d, which has ended, and has not gone back: nobody decides there until a person says so", now.Outlived)
	case now.Rebuilt > 0:
		h.town.older = h.town.rolledBack()
		h.rebuilt(now, g)
		if since := time.Since(g.leased); since < lease {
			h.breach("P2", "the gate was rebuilt %s after a lease was granted: a node may still repeat what it was told", since)
		}
		for _, c := range now.Unread {
			if a, i := h.town.ledger.campaigns[campaign], h.issueOf(c.Number); a.isLost(c.Number, now.Rebuilt-1) && i != nil && i.voided == 0 {
				h.breach("P5", "number %d of %s was in the journal of the frozen gate, and was lost by epoch %d", c.Number, c.User, now.Rebuilt)
			}
		}
	}
}

// rebuilt takes over the state of a rebuilt gate: the holders are those of the ledger, and numbers that the ledger does not have are lost.
func (h *history) rebuilt(now stage.Happening, g *Gate) {
	a, c := h.town.ledger.campaigns[campaign], g.campaigns[campaign]
	h.backs = append(h.backs, time.Now()) // the stock of lost numbers returns
	h.carried(now, c)
	h.holds = map[firstcome.UserID]int64{}
	for user, held := range c.Holders {
		h.holds[user] = held.Number
	}
	for n := range h.issues {
		i := &h.issues[n]
		kept := a.coupon(i.Number)
		switch {
		case i.lost > 0 || i.voided > 0:
		case a.isLost(i.Number, 0):
			if i.lost = len(h.looks); h.town.lasts() {
				h.breach("P5", "number %d of %s was lost, and the gate's server kept all", i.Number, i.User)
			}
		case kept == nil:
			h.breach("P5", "number %d of %s is neither in the ledger nor lost after a rebuild", i.Number, i.User)
		case !kept.VoidedAt.IsZero():
			i.voided = len(h.looks)
		case c.Holders[i.User].Number != i.Number:
			h.breach("P3", "%s has number %d in the ledger, and holds number %d after a rebuild", i.User, i.Number, c.Holders[i.User].Number)
		}
	}
}

func (h *history) issueOf(number int64) *given {
	for n := range h.issues {
		if h.issues[n].Number == number {
			return &h.issues[n]
		}
	}
	return nil
}

// highest returns the highest number that was given.
func (h *history) highest() (n int64) {
	for _, i := range h.issues {
		n = max(n, i.Number)
	}
	return n
}

// begin notes that somebody asks something.
func (h *history) begin(p *person, n *node, what string) (context.Context, *asked) {
	ctx, cancel := context.WithCancel(context.WithValue(context.Background(), asksFor, p.name))
	a := &asked{person: p, node: n, what: what, sent: len(h.looks), sentAt: time.Now(), cancel: cancel, stray: h.town.astray(n), refused: n.refuses(), knew: n.epoch()}
	h.town.say("  …", p.name, "wants", what, "of", n.name)
	if what == string(firstcome.ChangeResume) && h.stop != nil && h.stop.what == string(firstcome.ChangePause) {
		h.stop = nil
	}
	p.busy = a
	h.asked = append(h.asked, a)
	return ctx, a
}

// end ends a call, and reports whether its caller gets the answer.
func (h *history) end(a *asked) (hears bool) {
	if a.over {
		return false
	}
	a.over, a.busy, a.received, a.at = true, nil, len(h.looks), time.Now()
	a.cancel()
	if h.town.percent(h.town.lost) {
		h.town.say("  … which", a.name, "never hears")
		return false
	}
	a.heard = true
	return true
}

// giveUp has somebody wait no longer.
func (h *history) giveUp(a *asked) {
	if a != nil && !a.over {
		a.over, a.busy, a.received, a.at = true, nil, len(h.looks), time.Now()
		a.cancel()
	}
}

// answered notes the answer to a claim, and holds against it what can be told at once.
func (h *history) answered(a *asked, d firstcome.Decision, err error) {
	if !h.end(a) {
		return
	}
	if err != nil {
		h.town.say("  … because:", err)
		if h.town.outages == 0 && (errors.Is(err, issue.ErrUnrecorded) || errors.Is(err, gate.ErrGone)) {
			h.breach("P5", "%s was told: %v", a.name, err)
		}
		return
	}
	a.outcome, a.number = d.Outcome, d.Coupon.Number
	if a.stray && !d.Outcome.HasCoupon() {
		return
	}
	h.waits(a)
	if d.Outcome == firstcome.Waiting && h.town.topic != nil {
		h.isTold(a, d.Place)
	}
	if d.Outcome == firstcome.Waiting {
		return
	}
	if !d.Outcome.HasCoupon() {
		h.refused(a)
		return
	}
	if terms, err := a.node.answerer.Terms(context.Background(), campaign, d.Coupon.TermsVersion); err == nil {
		h.ranks.told = append(h.ranks.told, rankOf(d.Coupon, terms))
	}
	given := h.issueOf(a.number)
	if given == nil || given.User != firstcome.UserID(a.name) {
		h.breach("P3", "%s was told number %d, which the gate did not give them", a.name, a.number)
	}
	if given != nil && !a.stray && given.lost > 0 && given.lost <= a.sent && h.looks[given.lost-1].from.Add(lease).Before(a.sentAt) {
		h.breach("P8", "%s was told number %d, which had been lost before they asked", a.name, a.number)
	}
	if given != nil && given.outlived && given.epoch < a.knew {
		h.breach("P8", "%s was told number %d of an epoch that had ended, and %s had known so before", a.name, a.number, a.node.name)
	}
	kept := h.town.ledger.campaigns[campaign].coupon(a.number)
	if d.Coupon.Recorded && !h.town.older && (kept == nil || kept.User != firstcome.UserID(a.name)) {
		h.breach("P5", "%s was told that number %d is recorded, and the ledger does not have it", a.name, a.number)
	}
	if h.town.ledger.campaigns[campaign].changes[0].Terms.Answer == firstcome.Recorded && !d.Coupon.Recorded {
		h.breach("P5", "%s was told number %d before it was recorded", a.name, a.number)
	}
}

// changed notes the answer to an operator: what was done is at the gate.
func (h *history) changed(a *asked, s ledger.Status, err error) {
	if !h.end(a) || err != nil || a.stray {
		return
	}
	a.outcome = firstcome.Issued
	h.stops(a)
	if h.looks[len(h.looks)-1].stopped {
		return // the rebuild brings what it lost
	}
	c := h.town.decider().campaigns[campaign]
	if c.Version < s.Applied {
		h.breach("changes", "%s was told that change %d is done, and the gate is at %d", a.name, s.Applied, c.Version)
	}
	var number int64
	if _, err := fmt.Sscanf(a.what, "number %d voided", &number); err != nil {
		return
	}
	if i := h.issueOf(number); i != nil && i.voided == 0 {
		h.breach("changes", "%s was told that number %d is voided, and the gate does not know", a.name, number)
	}
}

// stops notes a pause or a close that was answered, if it surely lasts: a resume that was asked for before may arrive again, or late.
func (h *history) stops(a *asked) {
	resumed := func(b *asked) bool {
		return b.what == string(firstcome.ChangeResume) && (h.town.lost > 0 || b.outcome == 0 || b.received > a.sent)
	}
	switch {
	case a.what == string(firstcome.ChangeClose), a.what == string(firstcome.ChangePause) && !slices.ContainsFunc(h.asked, resumed):
		h.stop = a
	}
}

// slack is how far back a refusal may be true if the gate's clock jumped since: whatever ends by that clock ends at once then, and a node
// that has the refusal under a lease goes by its own clock.
const (
	slack      = quarantine
	quarantine = 250 * time.Millisecond
	lease      = 200 * time.Millisecond
)

// since returns from when on an answer may be true that was asked for at an instant.
func (h *history) since(asked time.Time) time.Time {
	for n := range h.looks {
		if l := &h.looks[n]; n > 0 && l.jumped != h.looks[n-1].jumped && !l.from.After(asked) && !l.from.Add(slack).Before(asked) {
			return asked.Add(-slack)
		}
	}
	return asked
}

// refused wants a refusal to be what the gate said to strangers at some instant between the question and the answer. A node may also
// have it under a lease from before a change that another one made, if that change lets nobody in.
func (h *history) refused(a *asked) {
	from := h.since(a.sentAt)
	told := func(o firstcome.Outcome) bool { return o == a.outcome }
	refused := func(o firstcome.Outcome) bool { return o != firstcome.Issued }
	if h.says(told, from, a.at) || h.says(told, from.Add(-lease), a.at) && h.says(refused, from, a.at) {
		return
	}
	promise := "P7"
	if a.outcome == firstcome.SoldOut {
		promise = "P2"
	}
	h.breach(promise, "%s was told %s, and the gate would have said so to nobody since they asked", a.name, a.outcome)
}

// says reports whether the gate said one of some outcomes to strangers at some instant.
func (h *history) says(is func(firstcome.Outcome) bool, from, to time.Time) bool {
	for n := range h.looks {
		until := to
		if n+1 < len(h.looks) {
			until = earlier(to, h.looks[n+1].from)
		}
		if begin := later(from, h.looks[n].from); !begin.After(until) && h.looks[n].says(is, begin, until) {
			return true
		}
	}
	return false
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

func earlier(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}

// says reports whether the gate says one of some outcomes to a stranger at some instant: at both ends, and wherever what it says may turn.
func (l *look) says(is func(firstcome.Outcome) bool, from, to time.Time) bool {
	at := []time.Time{from, to}
	for _, turns := range []time.Time{l.OpensAt, l.ClosesAt, l.WasOpens, l.WasCloses, l.Until} {
		for _, turn := range []time.Time{turns.Add(-l.jumped), turns.Add(-l.jumped - time.Microsecond)} {
			if turn.After(from) && turn.Before(to) {
				at = append(at, turn)
			}
		}
	}
	if l.stopped {
		return is(0)
	}
	for _, one := range at {
		clock := one.Add(l.jumped)
		seen := l.course
		seen.Release(clock, quarantine)
		as, taken := seen.AsSeen(), l.taken
		if as.Pace == nil || seen.WasSoldOut {
			taken += seen.Stock
		}
		if is(firstcome.Decide(as, later(clock, l.Seen), taken, false, false)) {
			return true
		}
	}
	return false
}
