package redis

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/gate"
)

// errPart says that a gate's keys of a campaign do not agree.
var errPart = fmt.Errorf("%w: part of it is gone", gate.ErrGone)

// errUser is returned to callers that pass on a user id that firstcome.ParseUserID would refuse.
var errUser = errors.New("a user id has no control characters")

// decide runs a script that decides: claim, issue, serve or leave. It remembers how far the gate has got.
func (c *conn) decide(ctx context.Context, s *script, k *keys, backlog string, limit int64, users []firstcome.UserID) (*answer, stateAfter, error) {
	args := make([]string, 0, 7+len(users))
	args = append(args, c.clock(), backlog, c.wakeChannel(), string(k.id), quarantineArg, formatInt(limit), witnessArg(c.remembers.witness(k)))
	for _, user := range users {
		if strings.Contains(string(user), separator) {
			return nil, stateAfter{}, errUser
		}
		args = append(args, string(user))
	}
	a, err := c.run(ctx, s, k, args...)
	switch {
	case err != nil:
		return nil, stateAfter{}, err
	case a.word == "part_gone":
		return nil, stateAfter{}, errPart
	}
	now := readStateAfter(a)
	c.remembers.add(k, gate.Witness{Epoch: now.epoch, Version: now.version, Number: now.lastNumber, Ticket: now.lastTicket()})
	return a, now, a.err
}

// A stateAfter is what scripts that decide say of a campaign, after they ran.
type stateAfter struct {
	firstcome.Campaign // its window as claims see it, when it opened, sold out and closed, and what decides about the line
	line
	lined        bool  // the campaign ever had a pace
	epoch        int64 // of the campaign
	version      int64
	lastNumber   int64
	now          time.Time // the gate's time
	termsVersion int64
	inQuarantine bool // stock that came back is quarantined
	inForce      int64
}

// readLined reads the values that a stateAfter has if there is a line.
func (c *stateAfter) readLined(a *answer) {
	c.Quantity, c.Paused, c.Campaign.Waitlist = quantityOf(a.integer("quantity")), a.is("paused"), a.is("stands_by")
	c.Campaign.Pace = c.pace
}

// readStateAfter reads what all answers have that decide.lua's state_after writes.
func readStateAfter(a *answer) (c stateAfter) {
	c.epoch, c.version, c.lastNumber, c.now = a.integer("epoch"), a.integer("version"), a.integer("last_number"), a.instant("now")
	if field := a.text("line"); field != "" {
		var err error
		c.line, err = readLine(field)
		a.fail("line", err)
		c.lined = true
	}
	c.termsVersion, c.OpensAt, c.ClosesAt = a.integer("terms_version"), a.instant("opens_at"), a.instant("closes_at")
	c.inQuarantine, c.inForce = a.is("in_quarantine"), a.integer("in_force")
	return c
}

// A verdict is the answer of claim.lua or issue.lua.
type verdict struct {
	stateAfter
	direct   bool // of issue.lua
	full     bool // the script was asked to issue nothing, and to let nobody join
	outcomes string
	entries  []string
	joined   int64
	tickets  []int64
}

func readVerdict(a *answer, c stateAfter, direct, full bool) verdict {
	v := verdict{stateAfter: c, direct: direct, full: full, outcomes: a.text("outcomes")}
	v.OpenedAt, v.SoldOutAt, v.ClosedAt = a.instant("opened_at"), a.instant("sold_out_at"), a.instant("closed_at")
	if v.entries = a.texts("entries"); v.lined {
		v.joined, v.tickets = a.integer("joined"), a.integers("tickets")
		v.readLined(a)
	}
	return v
}

// check returns why an answer is no verdict about these users.
func (v *verdict) check(a *answer, users []firstcome.UserID) error {
	switch {
	case a.word != "decided":
		return a.unexpected()
	case a.err == nil && len(v.outcomes) != len(users):
		return fmt.Errorf("the %s script answered %d claims of %d", a.script, len(v.outcomes), len(users))
	}
	return a.err
}

// issuedDigit is firstcome.Issued among the outcomes of a verdict.
const issuedDigit = string('0' + rune(firstcome.Issued))

// decisions returns the decision of each user.
func (v *verdict) decisions(secret firstcome.Secret, k *keys, users []firstcome.UserID) (_ []firstcome.Decision, err error) {
	id, at, entries := k.id, v.now, v.entries
	issued := int64(strings.Count(v.outcomes, issuedDigit))
	number, inForce := v.lastNumber-issued+1, v.inForce-issued
	decisions, view := make([]firstcome.Decision, len(users)), v.view()
	for n, user := range users {
		d := firstcome.Decision{Outcome: firstcome.Outcome(v.outcomes[n] - '0'), At: at, Version: v.version, TermsVersion: v.termsVersion}
		d.Lease, d.Since, d.OpenedAt = view.Lease(d.Outcome), v.Since(d.Outcome), v.OpenedAt
		switch d.Outcome {
		case 0:
			if !v.direct && !v.full && (v.pace != nil || v.Waiting > 0) {
				d.Undecided = firstcome.ErrLineFull // the backlog counts only where nobody joins
			}
		case firstcome.Issued:
			d.Coupon = firstcome.Coupon{Campaign: id, Number: number, User: user, IssuedAt: at, TermsVersion: v.termsVersion, Direct: v.direct}
			number++
			inForce++
		case firstcome.AlreadyIssued:
			if len(entries) == 0 {
				return nil, errors.New("the script names too few coupons")
			}
			if d.Coupon, err = readEntry(id, user, entries[0][1:]); err != nil {
				return nil, err
			}
			d.Coupon.Recorded = entries[0][0] == '1'
			entries = entries[1:]
		}
		if d.Outcome.HasCoupon() {
			d.Coupon.Code = secret.Code(id, d.Coupon.Number)
		}
		if v.direct && !d.Outcome.HasCoupon() {
			d.Lease = 0 // a claim may be decided otherwise
		}
		d.InForce = inForce
		decisions[n] = d
	}
	if v.lined {
		return decisions, v.places(k, view, decisions)
	}
	return decisions, nil
}

// view returns what the rules of the line and of leases depend on, without the stock in quarantine.
func (c *stateAfter) view() firstcome.View {
	return firstcome.View{Campaign: c.Campaign.Seen(c.Waiting, firstcome.Quarantine{}), Line: c.Line, InForce: c.inForce, Now: c.now, InQuarantine: c.inQuarantine}
}

// places adds to decisions where their users are in line.
func (v *verdict) places(k *keys, view firstcome.View, decisions []firstcome.Decision) error {
	tickets, waiting, last := v.tickets, v.Waiting-v.joined, v.LastTicket-v.joined
	logged := v.logOf(k, v.epoch, v.now)
	for n := range decisions {
		d := &decisions[n]
		takes := v.direct || d.Outcome == firstcome.Waiting
		if takes && len(tickets) == 0 {
			return fmt.Errorf("the script names too few tickets")
		}
		switch {
		case v.direct:
			waiting, tickets = tickets[0], tickets[1:]
		case takes:
			ticket := tickets[0]
			tickets = tickets[1:]
			if ticket > last {
				waiting, last = waiting+1, ticket
			}
			then := view // the script says how the line is after all of them
			then.Line.LastTicket, then.Line.Waiting, then.InForce = last, waiting, d.InForce
			d.Place = then.Place(ticket)
			d.Place.Log = logged
		}
		d.InLine = waiting
	}
	return nil
}
