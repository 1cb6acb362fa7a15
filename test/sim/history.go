package sim

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/audit"
	"github.com/firstcome/firstcome/internal/flow"
	"github.com/firstcome/firstcome/internal/ledger"
)

// A history is what everybody asked and was told, and what the gate did meanwhile: what the promises are held against.
type history struct {
	town     *town
	asked    []*asked
	looks    []look
	read     int // how many happenings of the gate's log
	issues   []issue
	holds    map[firstcome.UserID]int64 // by what the gate did, not by what it says
	backs    []time.Time                // when stock came back
	breaches []audit.Breach
}

// An asked is one thing that somebody asked of a node, and what they were told.
type asked struct {
	*person
	node           *node
	what           string
	sent, received int // how many looks there were
	sentAt, at     time.Time
	outcome        firstcome.Outcome // 0: an error, or nobody told them
	number         int64
	over           bool
	cancel         context.CancelFunc
}

// An issue is a number that the gate gave, and when it was voided there.
type issue struct {
	firstcome.Coupon
	voided int // how many looks there were; 0: it was not
}

// A look is the gate's campaign from one instant on, until the next look.
type look struct {
	from   time.Time
	jumped time.Duration
	course // without its maps
	taken  int64
}

func (h *history) breach(promise, format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	h.town.say("BREACH of", promise+":", text)
	h.breaches = append(h.breaches, audit.Breach{Promise: promise, Text: text})
}

// watch looks at the gate, behind each event.
func (h *history) watch() {
	if h.holds == nil {
		h.holds = map[firstcome.UserID]int64{}
	}
	c := h.town.gate.campaigns[campaign]
	l := look{from: time.Now(), jumped: h.town.jumped, course: *c, taken: c.inForce()}
	raised := len(h.looks) > 0 && c.Quantity > h.looks[len(h.looks)-1].Quantity
	h.looks = append(h.looks, l)
	for ; h.read < len(c.log); h.read++ {
		h.happened(c.log[h.read])
	}
	if raised {
		h.backs = append(h.backs, l.from)
	}
	if held := int64(len(h.holds)); held > c.Quantity {
		h.breach("P1", "%d coupons are in force at the gate, the quantity is %d", held, c.Quantity)
	}
}

// happened takes over one thing that the gate did.
func (h *history) happened(now happening) {
	switch {
	case now.issued.Number > 0:
		c := now.issued
		if before := h.issueOf(c.Number); before != nil {
			h.breach("P4", "number %d was given to %s and to %s", c.Number, before.User, c.User)
		}
		if before := h.holds[c.User]; before > 0 {
			h.breach("P3", "%s was given number %d while they held number %d", c.User, c.Number, before)
		}
		h.holds[c.User] = c.Number
		h.issues = append(h.issues, issue{Coupon: c})
	case now.voided.Number > 0:
		delete(h.holds, now.voided.User)
		h.backs = append(h.backs, time.Now())
		if i := h.issueOf(now.voided.Number); i != nil {
			i.voided = len(h.looks)
		}
	}
}

func (h *history) issueOf(number int64) *issue {
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
	a := &asked{person: p, node: n, what: what, sent: len(h.looks), sentAt: time.Now(), cancel: cancel}
	h.town.say("  …", p.name, "wants", what, "of", n.name)
	p.busy = a
	h.asked = append(h.asked, a)
	return ctx, a
}

// end ends what somebody waits for, and tells whether they hear the answer.
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
		if errors.Is(err, flow.ErrUnrecorded) || errors.Is(err, flow.ErrLost) {
			h.breach("P5", "%s was told: %v", a.name, err)
		}
		return
	}
	a.outcome, a.number = d.Outcome, d.Coupon.Number
	if !d.Outcome.HasCoupon() {
		h.refused(a)
		return
	}
	given := h.issueOf(a.number)
	if given == nil || given.User != firstcome.UserID(a.name) {
		h.breach("P3", "%s was told number %d, which the gate did not give them", a.name, a.number)
	}
	kept := h.town.ledger.campaigns[campaign].coupon(a.number)
	if d.Coupon.Recorded && (kept == nil || kept.User != firstcome.UserID(a.name)) {
		h.breach("P5", "%s was told that number %d is recorded, and the ledger does not have it", a.name, a.number)
	}
	if h.town.ledger.campaigns[campaign].changes[0].Terms.Answer == firstcome.Recorded && !d.Coupon.Recorded {
		h.breach("P5", "%s was told number %d before it was recorded", a.name, a.number)
	}
}

// changed notes the answer to an operator: what was done is at the gate.
func (h *history) changed(a *asked, s ledger.Status, err error) {
	if !h.end(a) || err != nil {
		return
	}
	a.outcome = firstcome.Issued
	c := h.town.gate.campaigns[campaign]
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

// slack is how far back a refusal may be true if the gate's clock jumped since: whatever ends by that clock ends at once then, and a node
// that has the refusal under a lease goes by its own clock.
const (
	slack = cools
	cools = 250 * time.Millisecond
	lease = 200 * time.Millisecond
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

// says tells whether the gate said one of some outcomes to strangers at some instant.
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

// says tells whether the gate says one of some outcomes to a stranger at some instant: at both ends, and wherever what it says may turn.
func (l *look) says(is func(firstcome.Outcome) bool, from, to time.Time) bool {
	at := []time.Time{from, to}
	for _, turns := range []time.Time{l.OpensAt, l.ClosesAt, l.wasOpens, l.wasCloses, l.until} {
		for _, turn := range []time.Time{turns.Add(-l.jumped), turns.Add(-l.jumped - time.Microsecond)} {
			if turn.After(from) && turn.Before(to) {
				at = append(at, turn)
			}
		}
	}
	for _, one := range at {
		clock := one.Add(l.jumped)
		cooling := l.cooling
		cooling.release(clock, cools)
		if is(firstcome.Decide(cooling.narrow(l.Campaign), later(clock, l.seen), l.taken+cooling.stock, false, false)) {
			return true
		}
	}
	return false
}
