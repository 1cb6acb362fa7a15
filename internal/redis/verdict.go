package redis

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/redis/rueidis"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/gate"
)

// errPart says that a gate's keys of a campaign do not agree.
var errPart = fmt.Errorf("%w: part of it is gone", gate.ErrLost)

// errUser is returned to callers that pass on a user id that firstcome.ParseUserID would refuse.
var errUser = errors.New("a user id has no control characters")

// verdict runs the claim script.
func (g *Gate) verdict(ctx context.Context, k *keys, want, backlog, limit string, users []firstcome.UserID) (v verdict, err error) {
	known := int64(0)
	if g.conn.options.Epoch != nil {
		known = g.conn.options.Epoch(k.id)
	}
	args := make([]string, 0, 10+len(users))
	args = append(args, g.conn.clock(), backlog, g.conn.wakeChannel(), string(k.id), strconv.FormatInt(quarantineFor.Microseconds(), 10), want, limit, whole10(known))
	args = append(args, g.conn.remembers.told(k).args()...)
	for _, user := range users {
		if strings.Contains(string(user), separator) {
			return v, errUser
		}
		args = append(args, string(user))
	}
	word, parts, err := g.conn.run(ctx, g.claim, k, args...)
	switch {
	case err != nil:
		return v, err
	case word == "lost":
		return v, errPart
	case word == "behind":
		return v, older(k.id, parts, known)
	case word != "decided":
		return v, fmt.Errorf("the claim script answered %q", word)
	}
	if v, err = readVerdict(parts); err != nil {
		return v, fmt.Errorf("the claim script's answer cannot be read: %w", err)
	}
	if want != wantServe && len(v.outcomes) != len(users) {
		return v, fmt.Errorf("the claim script answered %d claims of %d", len(v.outcomes), len(users))
	}
	issued := strings.Count(v.outcomes, issuedDigit)
	if want == wantServe {
		issued = len(v.line.users)
	}
	g.conn.remembers.hears(k, told{v.epoch, v.first - 1 + int64(issued)})
	return v, nil
}

// A verdict is what the claim script says of a batch: see lua/claim.lua.
type verdict struct {
	outcomes              string
	first                 int64
	now                   int64
	version, termsVersion int64
	epoch                 int64
	opensAt, closesAt     int64 // 0: none
	quarantined           int64 // 1: stock that came back is quarantined, 0: none is
	inForce               int64 // after the batch
	openedAt              int64 // 0: it did not
	soldOutAt, closedAt   int64 // 0: it is not
	entries               []string
	line                  lineVerdict
	outOfMemory           bool // the script was asked to issue nothing, and to let nobody join
}

// campaign returns what the verdict says of the campaign's course.
func (v *verdict) campaign() (c firstcome.Campaign) {
	c.ClosesAt = instant(v.closesAt)
	c.OpenedAt, c.SoldOutAt, c.ClosedAt = instant(v.openedAt), instant(v.soldOutAt), instant(v.closedAt)
	return c
}

// issuedDigit is firstcome.Issued among the outcomes of a verdict.
const issuedDigit = string('0' + rune(firstcome.Issued))

// readVerdict reads the parts of the claim script's answer.
func readVerdict(parts []rueidis.RedisMessage) (v verdict, err error) {
	if len(parts) != 14 && len(parts) != 19 {
		return v, fmt.Errorf("the claim script answered %d parts", len(parts)+1)
	}
	if v.outcomes, err = parts[0].ToString(); err != nil {
		return v, err
	}
	for n, into := range []*int64{&v.first, &v.now, &v.version, &v.termsVersion, &v.epoch, &v.opensAt, &v.closesAt, &v.quarantined, &v.inForce, &v.openedAt, &v.soldOutAt, &v.closedAt} {
		if *into, err = whole(parts[1+n]); err != nil {
			return v, err
		}
	}
	if v.entries, err = parts[13].AsStrSlice(); err != nil || len(parts) == 14 {
		return v, err
	}
	v.line, err = readLineVerdict(parts[14:])
	return v, err
}

// decisions makes decisions of the claim script's answer.
func (g *Gate) decisions(k *keys, want string, users []firstcome.UserID, v *verdict) (_ []firstcome.Decision, err error) {
	id, at, number, entries := k.id, time.UnixMicro(v.now).UTC(), v.first, v.entries
	campaign := v.campaign()
	inForce := v.inForce - int64(strings.Count(v.outcomes, issuedDigit))
	decisions := make([]firstcome.Decision, len(users))
	for n, user := range users {
		d := firstcome.Decision{Outcome: firstcome.Outcome(v.outcomes[n] - '0'), At: at, Version: v.version, TermsVersion: v.termsVersion}
		d.Lease, d.Since, d.OpenedAt = v.lease(d.Outcome), campaign.Since(d.Outcome), campaign.OpenedAt
		switch d.Outcome {
		case 0:
			if want == wantClaim && !v.outOfMemory && (v.line.pace != nil || v.line.Waiting > 0) {
				d.Undecided = firstcome.ErrLineFull // the script looks at the backlog only where nobody joins
			}
		case firstcome.Issued:
			d.Coupon = firstcome.Coupon{Campaign: id, Number: number, User: user, IssuedAt: at, TermsVersion: v.termsVersion, Direct: want == wantIssue}
			number++
			inForce++
		case firstcome.AlreadyIssued:
			if len(entries) == 0 {
				return nil, errors.New("the claim script names too few coupons")
			}
			if d.Coupon, err = readEntry(id, user, entries[0][1:]); err != nil {
				return nil, err
			}
			d.Coupon.Recorded = entries[0][0] == '1'
			entries = entries[1:]
		}
		if d.Outcome.HasCoupon() {
			d.Coupon.Code = g.conn.options.Secret.Code(id, d.Coupon.Number)
		}
		if want == wantIssue && !d.Outcome.HasCoupon() {
			d.Lease = 0 // others may hear otherwise
		}
		d.InForce = inForce
		decisions[n] = d
	}
	if v.line.kept {
		return decisions, v.places(k, want, decisions)
	}
	return decisions, nil
}

// lease returns how long a decision may be repeated: no coupon, because another node
// may void it; none while stock is quarantined; a refusal not past the instant at which the
// window answers otherwise, and a pause not at all.
func (v *verdict) lease(o firstcome.Outcome) time.Duration {
	if v.quarantined != 0 || o == firstcome.NotOpen && v.line.Waiting > 0 { // nor is that repeated to those in line
		return 0
	}
	return o.Lasts(instant(v.now), instant(v.opensAt), instant(v.closesAt), refusalLease)
}

// A lineVerdict is what the claim script says of a campaign's line, after the batch.
type lineVerdict struct {
	kept bool // the campaign ever had a pace
	line
	quantity int64
	paused   bool
	// What is quarantined counts until then, by the clock; all in microseconds.
	quarantined, quarantinedUntil, clock int64
	room                                 bool  // in the backlog
	joined                               int64 // tickets given in the batch
	standsBy                             bool  // who is in line
	ended                                string
	tickets                              []int64 // see lua/claim.lua
	users                                []string
}

// readLineVerdict reads what the claim script's answer has of the line.
func readLineVerdict(parts []rueidis.RedisMessage) (v lineVerdict, err error) {
	v.kept = true
	field, err := parts[0].ToString()
	if err != nil {
		return v, err
	}
	if v.line, err = readLine(field); err != nil {
		return v, err
	}
	text, err := parts[1].ToString()
	if err != nil {
		return v, err
	}
	var paused, room, standsBy int64
	if _, err := fmt.Sscan(text, &v.quantity, &paused, &v.quarantined, &v.quarantinedUntil, &v.clock, &room, &v.joined, &standsBy); err != nil {
		return v, fmt.Errorf("of its line: %q: %w", text, err)
	}
	v.quantity, v.paused, v.room, v.standsBy = quantityOf(v.quantity), paused == 1, room == 1, standsBy == 1
	if v.ended, err = parts[2].ToString(); err != nil {
		return v, err
	}
	if v.tickets, err = parts[3].AsIntSlice(); err != nil {
		return v, err
	}
	v.users, err = parts[4].AsStrSlice()
	return v, err
}

// seen returns the campaign of a verdict as claims see it.
func (v *verdict) seen() firstcome.Campaign {
	c := v.campaign()
	c.Quantity, c.OpensAt, c.Paused = v.line.quantity, instant(v.opensAt), v.line.paused
	c.Pace, c.Waitlist = v.line.paceNow(), v.line.standsBy
	return c
}

// places adds to decisions where their users are in line.
func (v *verdict) places(k *keys, want string, decisions []firstcome.Decision) error {
	tickets, l := v.line.tickets, v.line.Line
	waiting, last := l.Waiting-v.line.joined, l.LastTicket-v.line.joined
	campaign, now := v.seen(), instant(v.now)
	campaign.ID = k.id
	logged := v.line.logOf(k, v.epoch, now)
	for n := range decisions {
		d := &decisions[n]
		takes := want == wantIssue || d.Outcome == firstcome.Waiting
		if takes && len(tickets) == 0 {
			return fmt.Errorf("the claim script names too few tickets")
		}
		switch {
		case want == wantIssue:
			waiting, tickets = tickets[0], tickets[1:]
		case takes:
			ticket := tickets[0]
			tickets = tickets[1:]
			if ticket > last {
				waiting, last = waiting+1, ticket
			}
			then := l // the script says how the line is after all of them
			then.LastTicket, then.Waiting = last, waiting
			d.Place = campaign.Place(then, ticket, d.InForce, now)
			d.Place.Log = logged
		}
		d.InLine = waiting
	}
	return nil
}
