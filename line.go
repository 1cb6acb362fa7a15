package firstcome

import (
	"cmp"
	"time"
)

// A Pace is how fast the waiting line of a campaign is served. A claim in a paced campaign joins its line, even if the line is empty.
type Pace struct {
	PerSecond int64 // coupons a second, 1 to MaxPace; 0 means as fast as the gate issues them
}

// MaxPace is the highest pace: one coupon a microsecond, the resolution of times.
const MaxPace int64 = 1_000_000

// A LineLog is where the log of a campaign's line is: a partition of a topic of Kafka, from an offset on.
type LineLog struct {
	Topic     string // the topic's id; a recreated topic of the same name has another one
	Partition int32
	First     int64 // the first offset that counts
}

// Same reports whether two logs are the same partition.
func (l LineLog) Same(as LineLog) bool { return l.Topic == as.Topic && l.Partition == as.Partition }

// Logged is what a gate adds to a place whose line has a log, so that the place can be appended to the log.
type Logged struct {
	LineLog            // from the offset at which the epoch begins
	CampaignUID string // see Change
	Epoch       int64  // the epoch in which the gate decided
	Began       int64  // the generation of the line when the epoch began
	// At is a time by the gate's clock at which the ticket had not ended, or had ended if its user gave it back.
	At time.Time
}

// fullBucket is the size of the token bucket, as time: a line that was not served for so long may serve the coupons of this time at once. The bucket
// has at least one coupon.
const fullBucket = 100 * time.Millisecond

// Take takes at most limit turns from the pace's token bucket at the time now. It returns how many tickets may be served, and the next value of due.
// Times are in whole microseconds, rounded so that in any time T no more than PerSecond·T turns and one bucket are taken. A due that is further ahead
// than a bucket comes from a clock that was set back, and is lowered.
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

// Wait returns how long after now the next turn comes, if the bucket's due is due.
func (p Pace) Wait(due, now time.Time) time.Duration {
	if p.PerSecond == 0 {
		return 0
	}
	return max(0, due.Add(p.time(1)).Sub(now))
}

// second is the number of microseconds in a second.
const second = int64(time.Second / time.Microsecond)

// time returns how long a number of turns takes, in whole microseconds, rounded up.
func (p Pace) time(turns int64) time.Duration {
	return time.Duration((turns*second+p.PerSecond-1)/p.PerSecond) * time.Microsecond
}

// A Line is a snapshot of a campaign's waiting line. Its users have tickets, which are numbered in the order of their claims and served in that
// order.
type Line struct {
	// Generation counts from 1. A generation with tickets ends when every coupon is in force or the campaign is closed, and users who are still in
	// line are sent away. The next generation begins with ticket 1.
	Generation    int64
	LastTicket    int64 // the last ticket issued in this generation; 0 if none
	ServedThrough int64 // every ticket of this generation up to it has ended
	Served        int64 // tickets of this generation whose users got a coupon, or had one
	Waiting       int64 // tickets of this generation that have not ended
	// Due is when the last turn taken from the pace's bucket was due: see Pace.Take. It is by the clock itself, not by the gate's time. It is zero if
	// no turn was taken.
	Due time.Time
}

// A PastLine is a generation of a line as it ended, without Due. Users who were still in line were sent away.
type PastLine struct {
	Line
	Reason  string    // sold_out, closed or lost
	EndedAt time.Time // if the window's end ended it, the closing time of the window, not the time at which that was found
}

// Ended returns the line as a generation that ended.
func (l Line) Ended(reason string, at time.Time) PastLine {
	l.Due = time.Time{}
	return PastLine{Line: l, Reason: reason, EndedAt: at}
}

// Next returns the line of the next generation. It keeps the pace's bucket.
func (l Line) Next() Line { return Line{Generation: l.Generation + 1, Due: l.Due} }

// A Ticket names a place in the line of a campaign. The zero value names none.
type Ticket struct{ Generation, Number int64 }

// Before reports whether a ticket was issued before another of the same campaign.
func (t Ticket) Before(other Ticket) bool { return t.Compare(other) < 0 }

// Compare compares the order in which two tickets of a campaign were issued.
func (t Ticket) Compare(other Ticket) int {
	return cmp.Or(cmp.Compare(t.Generation, other.Generation), cmp.Compare(t.Number, other.Number))
}

// Serving returns the next ticket. If its user has left, a later ticket is served next.
func (l Line) Serving() int64 { return l.ServedThrough + 1 }

// Later reports whether l is a later state of the line than another, as far as tickets were issued, left or served in between.
func (l Line) Later(than Line) bool {
	return cmp.Or(cmp.Compare(l.Generation, than.Generation), cmp.Compare(l.ServedThrough, than.ServedThrough),
		cmp.Compare(l.LastTicket, than.LastTicket), cmp.Compare(l.Served, than.Served), cmp.Compare(than.Waiting, l.Waiting)) > 0
}

// Left returns how many users of this generation left the line.
func (l Line) Left() int64 { return l.LastTicket - l.Served - l.Waiting }

// A Place is the place of a ticket's user in line.
type Place struct {
	Generation int64
	Ticket     int64
	// Ahead is the most tickets before this one: those whose users left count until their turn.
	Ahead int64
	// ETA is how long it takes until this ticket is served, if the pace is kept and the users who left are spread evenly over the line. It is
	// negative if unknown, such as on a waitlist for a ticket for which a coupon is not likely.
	ETA time.Duration
	// Likely means that there will be a coupon for this ticket if nothing changes: see View.LikelyThrough.
	Likely bool
	// Serving means that the line is served now. If it is not, Why is why, NotOpen or Paused, and Until is until when, if known.
	Serving bool
	Why     Outcome
	Until   time.Time
	// ClosesAt is when the users who are still in line are sent away; zero if there is no known time.
	ClosesAt time.Time
	// Log is not nil if the line has a log. The place must be in the log before its user is told.
	Log *Logged
}

// unknownETA is an unknown ETA.
const unknownETA = time.Duration(-1)

// ETA returns how long it takes until a ticket of a line is served at this pace, which must not be 0, if the users who left are spread evenly over the
// line.
func (p Pace) ETA(l Line, ticket int64) time.Duration {
	waiting, tickets := l.others()
	people := float64(max(0, ticket-l.Serving())) * waiting / tickets
	return time.Duration(people / float64(p.PerSecond) * float64(time.Second))
}

// others returns how many other users wait, and how many other tickets have not been served, both without the user who asks. Their ratio is the share
// of tickets whose users are still in line.
func (l Line) others() (waiting, tickets float64) {
	if l.Waiting < 1 || l.LastTicket <= l.Serving() {
		return 1, 1
	}
	return float64(l.Waiting - 1), float64(l.LastTicket - l.Serving())
}
