package firstcome

import (
	"math"
	"time"
)

const (
	// refusalLease is how long a node may repeat a refusal. So a node asks the gate at most five times a second about a campaign that is sold out.
	refusalLease = 200 * time.Millisecond
	// QuarantineFor is how long returned stock is quarantined. It is longer than refusalLease, because the clocks of two machines may run at different
	// speeds.
	QuarantineFor = 250 * time.Millisecond
)

// A Quarantine is the stock and the terms of a campaign that claims do not see yet. After stock comes back through one node, another node may repeat
// "sold out" until its lease ends. So until the quarantine ends, no claim gets that stock, and no lease is granted.
//
// It ends by the gate's clock. It does not end by the gate's time, because that stops after the clock goes back, until the clock catches up.
type Quarantine struct {
	Coupons int64     // returned coupons that no claim gets before Until
	Until   time.Time // when the quarantine ends
	// The window before it was widened. Zero if it was not widened.
	OpensAt, ClosesAt time.Time
	// SoldOut is true if claims got sold_out when the quarantine began. Nodes may still repeat that answer, so no user joins the line until the
	// quarantine ends. Otherwise another node could tell a user in line that the campaign is sold out.
	SoldOut bool
}

// Seen returns the campaign as claims see it while users wait in line, or none does, and was is in quarantine. The quarantined coupons are not
// subtracted. A window that was widened keeps its old bounds. There is no waitlist if claims got sold_out when the quarantine began. A campaign whose
// pace was removed keeps a line while users wait in it.
func (c Campaign) Seen(waiting int64, was Quarantine) Campaign {
	if was.OpensAt.After(c.OpensAt) {
		c.OpensAt = was.OpensAt
	}
	if !was.ClosesAt.IsZero() && (c.ClosesAt.IsZero() || was.ClosesAt.Before(c.ClosesAt)) {
		c.ClosesAt = was.ClosesAt
	}
	c.Waitlist = c.Waitlist && !was.SoldOut
	if c.Pace == nil && waiting > 0 {
		c.Pace = &Pace{}
	}
	return c
}

// A View is a campaign at one time, with all that the rules of its line and of leases depend on. Every gate fills it from its storage.
type View struct {
	Campaign           // as claims see it: see Campaign.Seen
	Line     Line      // the current generation
	InForce  int64     // coupons in force
	Now      time.Time // the gate's time
	// Quarantine has the stock in quarantine, and until when. It is in force if InQuarantine is true.
	Quarantine   Quarantine
	InQuarantine bool
}

// SendsAway returns Closed or SoldOut if the line's generation is over: all users in line get this outcome. It returns 0 if they continue to wait, or
// if the generation never had a ticket. A generation is over also if all of its tickets have ended, for example because its last user got the last
// coupon.
func (v View) SendsAway() Outcome {
	if v.Line.LastTicket == 0 {
		return 0
	}
	if o := Decide(v.Campaign, v.Now, v.InForce, false, true); o != Waiting {
		return o
	}
	return 0
}

// EndedLine returns the line's generation as it ended, and true, if it is over: see SendsAway. If the campaign is closed, it ended when that closed,
// which may be before the gate found it out.
func (v View) EndedLine() (PastLine, bool) {
	why, at := v.SendsAway(), v.Now
	switch why {
	case 0:
		return PastLine{}, false
	case Closed:
		at = v.Since(why)
	}
	return v.Line.Ended(why.String(), at), true
}

// halted returns why the line is not served now, NotOpen, Paused or Closed, or 0 if it is served while there is stock.
func (v View) halted() Outcome {
	const anyStock = -1
	if o := Decide(v.Campaign, v.Now, anyStock, false, false); o != Waiting && o != Issued {
		return o
	}
	return 0
}

// IsServed reports whether the line is served while there is stock: the campaign is open and not paused.
func (v View) IsServed() bool { return v.halted() == 0 }

// Free returns how many coupons may be issued now.
func (v View) Free() int64 { return max(0, v.Quantity-v.InForce-v.Quarantine.Coupons) }

// Again returns how long it takes, as far as is known, until a user in line can be served, when the gate's clock shows the given time. It returns 0 if
// that takes a user who joins, a returned coupon or a change.
func (v View) Again(clock time.Time) time.Duration {
	var wait time.Duration
	switch why := v.halted(); {
	case v.Line.Waiting == 0 || why == Paused:
		return 0
	case v.InQuarantine && (v.Free() == 0 || why != 0):
		wait = v.Quarantine.Until.Sub(clock)
	case why == NotOpen:
		wait = v.OpensAt.Sub(v.Now)
	case v.Free() == 0:
		return 0
	default:
		wait = v.Pace.Wait(v.Line.Due, clock)
	}
	return max(wait, time.Microsecond) // not 0, which means no known time
}

// Lease returns how long a node may repeat a decision with this outcome. It may not repeat a coupon, because another node may void it, nor a pause,
// because that may end at any time. No lease is granted during a quarantine. A refusal is repeated at most until the campaign opens or closes.
func (v View) Lease(o Outcome) time.Duration {
	if v.InQuarantine || o == NotOpen && v.Line.Waiting > 0 { // users in line get another answer
		return 0
	}
	return o.Lasts(v.Now, v.OpensAt, v.ClosesAt, refusalLease)
}

// Place returns the place of a ticket that has not ended.
func (v View) Place(ticket int64) Place {
	p := Place{
		Generation: v.Line.Generation, Ticket: ticket, Ahead: max(0, ticket-v.Line.Serving()), ETA: unknownETA, ClosesAt: v.ClosesAt,
		Likely: ticket <= v.LikelyThrough(), Serving: true,
	}
	if why := v.halted(); why == NotOpen || why == Paused {
		p.Serving, p.Why = false, why
	}
	if p.Why == NotOpen {
		p.Until = v.OpensAt
	}
	if pace := v.pace(); pace.PerSecond > 0 && (p.Likely || !v.Waitlist) {
		p.ETA = pace.ETA(v.Line, ticket)
		if p.Why == NotOpen {
			p.ETA += v.OpensAt.Sub(v.Now)
		}
	}
	return p
}

// LikelyThrough returns the line's last ticket for which there will be a coupon if nothing changes: enough stock is left, and the ticket's turn comes
// before the campaign closes. A waitlist makes no coupon likely. It returns math.MaxInt64 if all tickets are likely.
func (v View) LikelyThrough() int64 {
	people := float64(v.Quantity - v.InForce) // how many more users will be served
	if rate := float64(v.pace().PerSecond); rate > 0 && !v.ClosesAt.IsZero() {
		begins := v.Now
		if v.OpensAt.After(v.Now) {
			begins = v.OpensAt
		}
		people = min(people, rate*v.ClosesAt.Sub(begins).Seconds())
	}
	if people <= 0 {
		return v.Line.ServedThrough
	}
	waiting, tickets := v.Line.others()
	likely := math.Ceil(people * tickets / waiting)
	if likely > float64(MaxQuantity) {
		return math.MaxInt64
	}
	return v.Line.ServedThrough + int64(likely)
}

// pace returns how many users a second are served, or the zero Pace if that is unknown.
func (v View) pace() Pace {
	if v.Campaign.Pace == nil || v.Paused {
		return Pace{}
	}
	return *v.Campaign.Pace
}
