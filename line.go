package firstcome

import (
	"cmp"
	"math"
	"time"
)

// A Pace is how fast the waiting line of a campaign is served. Who claims a paced campaign joins its line, also where
// nobody waits.
type Pace struct {
	PerSecond int64 // coupons a second, 1 to MaxPace; 0: as fast as the gate takes them
}

// MaxPace is the highest pace: one coupon a microsecond, which is as fine as instants are.
const MaxPace int64 = 1_000_000

// A LineLog is where a copy of the places in a campaign's line is kept: a partition of a topic of Kafka, from an offset on.
type LineLog struct {
	Topic     string // its id, which another topic of the same name does not have
	Partition int32
	First     int64 // the first offset that counts
}

// Same tells whether two logs are the same partition.
func (l LineLog) Same(as LineLog) bool { return l.Topic == as.Topic && l.Partition == as.Partition }

// Logged is what a gate says of a place whose line has a log. With it the place can be appended there.
type Logged struct {
	LineLog        // from where the epoch begins
	Marker  string // see Change
	Epoch   int64  // in which the gate decided
	Began   int64  // the generation of the line with which the epoch began
	// At is an instant by the gate's clock at which the ticket had not ended, or, of one that its user gave back, at which it had.
	At time.Time
}

// fullBucket is the time whose coupons a line serves at once at most, if it has not been served for so long. Where
// that is less than one coupon, it is the time of one.
const fullBucket = 100 * time.Millisecond

// Take takes turns from the pace's token bucket at the instant now, at most limit: how many tickets may be served, and
// what due is from then on. All counts in whole microseconds, rounded so that in any time T at most PerSecond·T turns
// are taken, and one bucket. A due that is further ahead than a bucket comes from a clock that was set back, and is
// pulled back.
func (p Pace) Take(due, now time.Time, limit int64) (turns int64, next time.Time) {
	limit = max(0, limit)
	if p.PerSecond == 0 {
		return limit, now
	}
	bucket := max(fullBucket, p.time(1))
	if oldest := now.Add(-bucket); due.Before(oldest) {
		due = oldest
	} else if latest := now.Add(bucket); due.After(latest) {
		due = latest
	}
	turns = min(limit, max(0, now.Sub(due).Microseconds()*p.PerSecond/second))
	return turns, due.Add(p.time(turns))
}

// Wait returns how long after now the next turn comes, of a bucket that is due at due.
func (p Pace) Wait(due, now time.Time) time.Duration {
	if p.PerSecond == 0 {
		return 0
	}
	return max(0, due.Add(p.time(1)).Sub(now))
}

// second has so many microseconds.
const second = int64(time.Second / time.Microsecond)

// time returns how long so many turns take, in whole microseconds, rounded up.
func (p Pace) time(turns int64) time.Duration {
	return time.Duration((turns*second+p.PerSecond-1)/p.PerSecond) * time.Microsecond
}

// A Line is the waiting line of a campaign at one instant. Its people have tickets, which are numbered in the order
// of their claims and served in that order.
type Line struct {
	// Generation counts from 1. One of which tickets were given ends when every coupon is in force or the campaign is
	// closed: whoever is in line then is sent away. The next begins with ticket 1.
	Generation    int64
	LastTicket    int64 // the one given last in this generation; 0: none
	ServedThrough int64 // every ticket of this generation up to it has ended
	Served        int64 // tickets of this generation whose users got a coupon, or had one
	Waiting       int64 // tickets of this generation that have not ended
	// Due is when the last turn was due that was taken from the pace's bucket: see Pace.Take. It goes by the clock as it
	// was read. The zero time: none was taken.
	Due time.Time
}

// A Ticket names a place in the line of a campaign. The zero value names none.
type Ticket struct{ Generation, Number int64 }

// Before tells whether a ticket was given before another of the same campaign.
func (t Ticket) Before(other Ticket) bool {
	return cmp.Or(cmp.Compare(t.Generation, other.Generation), cmp.Compare(t.Number, other.Number)) < 0
}

// Serving returns the ticket that is served next, or a later one if its user left.
func (l Line) Serving() int64 { return l.ServedThrough + 1 }

// Later tells whether l is a later state of the line than another, as far as tickets were given, left or served between
// them.
func (l Line) Later(than Line) bool {
	return cmp.Or(cmp.Compare(l.Generation, than.Generation), cmp.Compare(l.ServedThrough, than.ServedThrough),
		cmp.Compare(l.LastTicket, than.LastTicket), cmp.Compare(l.Served, than.Served), cmp.Compare(than.Waiting, l.Waiting)) > 0
}

// Left returns how many users of this generation left the line.
func (l Line) Left() int64 { return l.LastTicket - l.Served - l.Waiting }

// A Place is where the user of a ticket stands in line.
type Place struct {
	Generation int64
	Ticket     int64
	// Ahead is how many tickets are before this one at most: those whose users left are counted until their turn.
	Ahead int64
	// ETA is how long it takes until this ticket is served, if the pace is kept and those who left are spread evenly over
	// the line. It is negative if unknown, as in a line that stands by, of a ticket for which no coupon is likely.
	ETA time.Duration
	// Likely reports whether there will be a coupon if nothing changes: see LikelyThrough.
	Likely bool
	// Serving tells that the line is served now. Else Why says why not, NotOpen or Paused, and Until until when, if that
	// is known.
	Serving bool
	Why     Outcome
	Until   time.Time
	// ClosesAt is when whoever is in line still is sent away; zero: at no time that is known.
	ClosesAt time.Time
	// Log is not nil where the line has a log: whoever is told this place has to be in it.
	Log *Logged
}

// unknownETA is the ETA of a place of which nobody knows it.
const unknownETA = time.Duration(-1)

// Place returns where a ticket stands that has not ended, while inForce coupons are in force.
func (c Campaign) Place(l Line, ticket, inForce int64, now time.Time) Place {
	p := Place{Generation: l.Generation, Ticket: ticket, Ahead: max(0, ticket-l.Serving()), ClosesAt: c.ClosesAt}
	p.Likely = ticket <= c.LikelyThrough(l, inForce, now)
	waiting, tickets := l.others()
	people := float64(p.Ahead) * waiting / tickets
	switch why := Decide(c, now, 0, false, false); why {
	case NotOpen, Paused:
		p.Why = why
	default:
		p.Serving = true
	}
	p.ETA = unknownETA
	if p.Why == NotOpen {
		p.Until = c.OpensAt
	}
	if rate := c.rate(); rate > 0 && (p.Likely || !c.Waitlist) {
		p.ETA = time.Duration(people / rate * float64(time.Second))
		if p.Why == NotOpen {
			p.ETA += c.OpensAt.Sub(now)
		}
	}
	return p
}

// LikelyThrough returns the last ticket of a line for which there will be a coupon if nothing changes: as many are left, and
// its turn comes before the campaign closes. That a line stands by promises nobody a coupon. It is math.MaxInt64 if all tickets are likely.
func (c Campaign) LikelyThrough(l Line, inForce int64, now time.Time) int64 {
	people := float64(c.Quantity - inForce) // how many more will be served
	if rate := c.rate(); rate > 0 && !c.ClosesAt.IsZero() {
		begins := now
		if c.OpensAt.After(now) {
			begins = c.OpensAt
		}
		people = min(people, rate*c.ClosesAt.Sub(begins).Seconds())
	}
	if people <= 0 {
		return l.ServedThrough
	}
	waiting, tickets := l.others()
	likely := math.Ceil(people * tickets / waiting)
	if likely > float64(MaxQuantity) {
		return math.MaxInt64
	}
	return l.ServedThrough + int64(likely)
}

// rate returns how many people a second the line is served at, or 0 if nobody knows.
func (c Campaign) rate() float64 {
	if c.Pace == nil || c.Paused {
		return 0
	}
	return float64(c.Pace.PerSecond)
}

// others returns how many of the tickets that were not served yet have users who are still in line, without the user who
// asks.
func (l Line) others() (waiting, tickets float64) {
	if l.Waiting < 1 || l.LastTicket <= l.Serving() {
		return 1, 1
	}
	return float64(l.Waiting - 1), float64(l.LastTicket - l.Serving())
}
