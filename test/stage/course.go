package stage

import (
	"time"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/record"
)

// Rules are how a gate of the tests treats its campaigns.
type Rules struct {
	Quarantine    time.Duration // how long stock that comes back is quarantined
	Lease         time.Duration // the longest lease
	LeasesCoupons bool          // a node may repeat a recorded coupon, too
	MaxLine       int64         // how many people may be in line of a campaign; 0 means any number
	Records       bool          // what is issued is recorded at once, as where the ledger decides
}

// A Course is a campaign at a gate of the tests, decided by the rule, one call after the other. Gate and the gate of test/sim have their campaigns
// as Courses. The gate that has a Course guards it.
type Course struct {
	firstcome.Campaign
	TermsVersion, Epoch int64
	Payload             string // of the terms: see firstcome.Change
	Ceiling             int64  // 0 if none was set
	Last, Drained       int64  // the last number; up to which all have left the journal
	Holders             map[firstcome.UserID]firstcome.Coupon
	Refused             map[int64]bool // versions
	Seen                time.Time      // the latest instant that a later one may not be before
	Lined               bool           // it ever had a pace
	Began               int64          // the generation of the line with which the epoch began
	CampaignUID         string         // see firstcome.Change
	Quarantined
	Queue
	Happened *[]Happening // what was done, for a test's checks; nil if no test checks it

	rules Rules // of the last call
}

// NewCourse returns a campaign to which its first change is still to be applied.
func NewCourse(first firstcome.Change, happened *[]Happening) Course {
	c := Course{Epoch: first.Epoch, Holders: map[firstcome.UserID]firstcome.Coupon{}, Refused: map[int64]bool{}, Began: 1, Queue: newQueue(), Happened: happened}
	c.ID, c.Quantity = first.Campaign, first.Terms.Quantity // a new campaign gives nothing back
	return c
}

// A Happening is something that a gate did: it issued a number, voided one, took a change, or was rebuilt.
type Happening struct {
	Issued, Voided firstcome.Coupon   // number 0: none
	Applied        int64              // a version; 0: none
	Rebuilt        int64              // an epoch; 0: none
	Unread         []firstcome.Coupon // in the journal of a gate that was rebuilt
	Generation     int64              // and of its line, with who was in that
	Carried        []InLine
	Came, Went     firstcome.UserID // who joined the line, or left it
	Ticket         TicketName       // of those who joined
	Outlived       int64            // an epoch in which the gate is without having gone back; 0: none
	Sent           string           // why all who were in line were sent away
	Quantity       int64            // how many coupons there were then: a change may go on to raise it
}

// Did notes something that the gate did.
func (c *Course) Did(what Happening) {
	if c.Happened != nil {
		*c.Happened = append(*c.Happened, what)
	}
}

// at begins a call at a time of the gate's clock. It returns that, and the gate's time, which does not go back.
func (c *Course) at(r Rules, at time.Time) (clock, now time.Time) {
	clock = at.UTC().Truncate(time.Microsecond)
	c.rules = r
	c.Release(clock, r.Quarantine)
	if now = clock; now.Before(c.Seen) {
		now = c.Seen
	}
	return clock, now
}

// Claim decides claims; direct ones pass the line. It returns also what the journal gets.
func (c *Course) Claim(r Rules, at time.Time, users []firstcome.UserID, direct bool) (all []firstcome.Decision, b record.Batch) {
	clock, now := c.at(r, at)
	var ended []firstcome.PastLine
	for _, user := range users {
		d, over := c.decide(user, now, direct)
		ended = append(ended, over...)
		if d.Lease = c.lease(d, clock); direct && !d.Outcome.HasCoupon() {
			d.Lease = 0 // others may hear otherwise
		}
		if d.Outcome == firstcome.Issued {
			b.Coupons = append(b.Coupons, d.Coupon)
		}
		all = append(all, d)
	}
	return all, c.entry(b.Coupons, ended)
}

// entry returns what the journal gets of a call, nothing if that did nothing that the ledger has to know.
func (c *Course) entry(coupons []firstcome.Coupon, ended []firstcome.PastLine) (b record.Batch) {
	if len(coupons) > 0 || len(ended) > 0 {
		b = record.Batch{Campaign: c.ID, Epoch: c.Epoch, Coupons: coupons, Line: c.report(ended)}
	}
	return b
}

// decide decides a claim by the rule. It returns the generations of the line that ended with it, too.
func (c *Course) decide(user firstcome.UserID, now time.Time, direct bool) (d firstcome.Decision, ended []firstcome.PastLine) {
	before := c.Line
	ended = c.sendAway(now, false)
	seen, taken := c.AsSeen(), c.InForce()
	opened := seen.Opened(now)
	if direct {
		seen = seen.Direct()
	}
	if seen.Pace == nil || c.WasSoldOut {
		taken += c.Stock
	}
	held, holds := c.Holders[user]
	d = firstcome.Decision{
		Outcome: firstcome.Decide(seen, now, taken, holds, c.TicketOf(user) > 0 && !direct), At: now, Version: c.Version, TermsVersion: c.TermsVersion,
	}
	if d.Outcome == firstcome.Issued && c.Ceiling > 0 && c.Last >= c.Ceiling {
		return firstcome.Decision{}, ended // the ledger knows by the ceiling what may have been given
	}
	moved := d.Outcome == firstcome.Issued || !opened.Equal(c.OpenedAt) || phase(c.AsSeen(), now) != phase(c.AsSeen(), c.Seen)
	c.OpenedAt = opened
	switch d.Outcome {
	case firstcome.Issued:
		held = c.Issue(user, now, 0, 0, direct)
		if ticket := c.TicketOf(user); ticket > 0 {
			c.stayed(InLine{user, ticket, c.joinedAt(user)}, "already_issued", now)
		}
		c.Stop(user, true)
	case firstcome.Waiting:
		joins := c.TicketOf(user) == 0
		if joins && c.rules.MaxLine > 0 && c.Line.Waiting >= c.rules.MaxLine {
			return firstcome.Decision{}, ended
		}
		ticket := c.join(user, now)
		d.Place = firstcome.View{Campaign: seen, Line: c.Line, InForce: c.InForce(), Now: now}.Place(ticket)
		d.Place.Log = c.logged(now)
		if joins {
			c.Did(Happening{Came: user, Ticket: TicketName{c.Line.Generation, d.Place.Ticket}})
		}
	}
	c.SoldOutAt = c.SoldOut(c.InForce(), now)
	ended = append(ended, c.sendAway(now, false)...)
	if moved || c.Line != before {
		c.Seen = now
	}
	seen.Instants = c.Instants
	d.InForce, d.InLine, d.Since, d.OpenedAt = c.InForce(), c.Line.Waiting, seen.Since(d.Outcome), c.OpenedAt
	if d.Outcome.HasCoupon() {
		d.Coupon = c.Told(held)
	}
	return d, ended
}

// Issue gives a user the next number, for a ticket if there is one.
func (c *Course) Issue(user firstcome.UserID, now time.Time, generation, ticket int64, direct bool) firstcome.Coupon {
	c.Last++
	issued := firstcome.Coupon{
		Campaign: c.ID, Number: c.Last, User: user, Code: Secret().Code(c.ID, c.Last), IssuedAt: now, TermsVersion: c.TermsVersion,
		Generation: generation, Ticket: ticket, Direct: direct,
	}
	c.Holders[user] = issued
	if c.rules.Records {
		c.Drained = c.Last
	}
	c.Did(Happening{Issued: issued})
	return issued
}

// InForce returns how many coupons are in force.
func (c *Course) InForce() int64 { return int64(len(c.Holders)) }

// Told returns a coupon with whether it is recorded, as far as the gate knows.
func (c *Course) Told(held firstcome.Coupon) firstcome.Coupon {
	held.Recorded = held.Number <= c.Drained && !held.Buried
	return held
}

// phase returns what the window alone answers at an instant.
func phase(c firstcome.Campaign, at time.Time) firstcome.Outcome {
	return firstcome.Decide(firstcome.Campaign{Terms: firstcome.Terms{OpensAt: c.OpensAt, ClosesAt: c.ClosesAt, Quantity: 1}}, at, 0, false, false)
}

// lease returns how long a node may repeat a decision: none while stock is quarantined, and not past the instant at which the window answers
// otherwise. Another node may end a pause, or void a coupon.
func (c *Course) lease(d firstcome.Decision, clock time.Time) time.Duration {
	var ends time.Time
	switch {
	case d.Outcome.HasCoupon() && !(c.rules.LeasesCoupons && d.Coupon.Recorded), d.Outcome == firstcome.Waiting, d.Outcome == firstcome.Paused, d.Outcome == firstcome.NotOpen && len(c.People) > 0, clock.Before(c.Until):
		return 0
	case d.Outcome == firstcome.NotOpen:
		ends = c.OpensAt
	case d.Outcome == firstcome.SoldOut:
		ends = c.ClosesAt
	}
	if ends.IsZero() {
		return c.rules.Lease
	}
	return min(c.rules.Lease, ends.Sub(d.At))
}
