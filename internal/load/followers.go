package load

import (
	"math"
	"slices"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/client"
	"github.com/firstcome/firstcome/internal/audit"
)

// A Line has a run's figures about a campaign's waiting line.
type Line struct {
	PerSecond *int64 `json:"per_second"` // the pace, coupons a second; null means as fast as the gate issues them
	Followed  int64  `json:"followed"`   // users who followed their place
	// Ends counts users by how their place ended: issued, sold_out, closed, left, lost, vanished (a breach), or waiting if they were in line at the
	// end.
	Ends map[audit.End]int64 `json:"ends"`
	// InLine is the time from sending a claim until its user knew their coupon, and Until the time until the server issued it. SentAway is the time
	// until a user knew that there is none.
	InLine   Latency `json:"in_line"`
	Until    Latency `json:"until_served"`
	SentAway Latency `json:"sent_away"`
	Looks    Looks   `json:"looks"`
	ETA      *ETA    `json:"eta"`       // null if no user was told an ETA and served
	Kept     *Kept   `json:"pace_kept"` // null if there is no pace, or it cannot be judged; see Why
	Why      string  `json:"pace_kept_why"`
	Tickets  Tickets `json:"tickets"`
	Places   []Told  `json:"places"` // of those who were served, in the order of their tickets, at most 2,000, evenly chosen
}

// Looks are the followers' requests.
type Looks struct {
	Line    int64            `json:"line"`    // requests for the campaign's line
	Latency Latency          `json:"latency"` // of a look, including its wait for a free connection
	Late    Latency          `json:"late"`    // how late looks began
	Trouble map[string]int64 `json:"trouble"` // looks without an answer, which were repeated, by cause
}

// An ETA is how much later than told on joining users were served, in seconds. Negative means sooner. ETAs are rounded up to whole seconds.
type ETA struct {
	Count int64   `json:"count"`
	P5    float64 `json:"p5_seconds"`
	P50   float64 `json:"p50_seconds"`
	P95   float64 `json:"p95_seconds"`
	Worst float64 `json:"worst_seconds"` // the value that is furthest from 0
}

// Tickets is how many users had joined the line, and how many had been served, at times of the run in seconds.
type Tickets struct {
	At     []float64 `json:"at"`
	Given  []int64   `json:"given"`
	Served []int64   `json:"served"`
}

// Told is a place as told on joining, and how long it took until its user was served.
type Told struct {
	Ahead int64   `json:"ahead"`
	ETA   *int64  `json:"eta_seconds"`
	Took  float64 `json:"took_seconds"`
}

// longestWait is the longest time in line that a histogram distinguishes from longer ones.
const longestWait = 48 * time.Hour

// durations collects durations.
type durations struct{ *hdrhistogram.Histogram }

func newDurations() *durations {
	return &durations{hdrhistogram.New(1, longestWait.Microseconds(), 3)}
}

func (d *durations) add(one time.Duration) {
	// Within its bounds RecordValue does not fail.
	_ = d.RecordValue(min(max(one, 0), longestWait).Microseconds())
}

// follow adds the figures of the followers, who are in the order of their tickets. ahead is by how much the server's clock is ahead of ours.
func (r *Result) follow(c Options, crowd *crowd, all []*follower, before client.Campaign, ahead time.Duration) {
	l := &Line{Followed: int64(len(all)), Ends: map[audit.End]int64{}}
	looks := &crowd.stats
	l.Looks = Looks{Line: crowd.looks.asked.Load(), Latency: latency(looks.took.Histogram), Late: latency(looks.late.Histogram), Trouble: looks.trouble}
	if before.Pace != nil {
		l.PerSecond = before.Pace.PerSecond
	}
	inLine, until, away := newDurations(), newDurations(), newDurations()
	turns := make([]served, 0, len(all))
	for _, f := range all {
		l.Ends[f.end]++
		switch f.end {
		case audit.Served:
			turn := served{f, time.UnixMicro(f.answer.IssuedAt).Add(-ahead)}
			turns = append(turns, turn)
			inLine.add(f.ended.Sub(f.sent))
			until.add(turn.at.Sub(f.sent))
			r.issued = append(r.issued, f.answer)
		case audit.InLine, audit.Left, audit.Vanished:
		default:
			away.add(f.ended.Sub(f.sent))
		}
		r.remember(c, f)
	}
	r.Numbers = numbers(r.issued)
	soldOut := firstcome.SoldOut.String()
	if n := len(turns); n > 0 && l.Ends[audit.End(soldOut)]+r.Outcomes[soldOut] > 0 {
		last := turns[n-1].at.Sub(r.Started).Seconds()
		r.SoldOut = &last
	}
	l.InLine, l.Until, l.SentAway = latency(inLine.Histogram), latency(until.Histogram), latency(away.Histogram)
	l.ETA, l.Places = eta(turns), places(turns)
	l.Tickets = tickets(all, turns, r.Started)
	l.Kept, l.Why = keptPace(c, l.PerSecond, turns)
	r.Line = l
}

// A served is a follower who was issued a coupon, and when, by our clock.
type served struct {
	*follower
	at time.Time
}

// remember adds a follower's result to the history, in the audit's form.
func (r *Result) remember(c Options, f *follower) {
	user := firstcome.UserID(userID(c.Prefix, int(f.user)))
	r.places = append(r.places, audit.Followed{
		User: user, Generation: f.place.Generation, Ticket: f.place.Ticket, End: f.end, Number: f.answer.Number,
	})
	claim := audit.Claim{
		User: user, Sent: f.sent.Sub(r.Started), Received: f.ended.Sub(r.Started),
		Outcome: firstcome.Issued, Number: f.answer.Number, Code: f.answer.Code, Recorded: f.answer.Recorded,
		Ranked: audit.Ranked{Rank: f.answer.Rank, Prize: f.answer.Prize},
	}
	switch f.end {
	case audit.Served:
	case audit.End(firstcome.SoldOut.String()):
		claim.Outcome, claim.Sent = firstcome.SoldOut, f.asked.Sub(r.Started)
	default:
		return
	}
	r.history = append(r.history, claim)
}

// eta compares users' ETAs on joining with when they were served. It returns nil if there were no ETAs.
func eta(turns []served) *ETA {
	var off []float64
	for _, t := range turns {
		if t.told.eta != nil {
			off = append(off, t.at.Sub(t.received).Seconds()-float64(*t.told.eta))
		}
	}
	if len(off) == 0 {
		return nil
	}
	slices.Sort(off)
	at := func(share float64) float64 { return toMilli(off[int(share*float64(len(off)-1)+0.5)]) }
	e := &ETA{Count: int64(len(off)), P5: at(0.05), P50: at(0.50), P95: at(0.95), Worst: at(1)}
	if math.Abs(at(0)) > math.Abs(e.Worst) {
		e.Worst = at(0)
	}
	return e
}

// toMilli rounds seconds to milliseconds.
func toMilli(seconds float64) float64 { return math.Round(seconds*1000) / 1000 }

func places(turns []served) []Told {
	all := make([]Told, len(turns))
	for n, t := range turns {
		all[n] = Told{Ahead: t.told.ahead, ETA: t.told.eta, Took: toMilli(max(0, t.at.Sub(t.received)).Seconds())}
	}
	return evenly(all, maxNumbers)
}

// evenly returns an even selection of at most most items, including the first and the last.
func evenly[T any](all []T, most int) []T {
	if len(all) <= most {
		return all
	}
	chosen := make([]T, most)
	for n := range chosen {
		chosen[n] = all[n*(len(all)-1)/(most-1)]
	}
	return chosen
}

// tickets counts joins and services over time, until the last of them.
func tickets(all []*follower, turns []served, start time.Time) Tickets {
	given, issued := make([]time.Duration, len(all)), make([]time.Duration, len(turns))
	for n, f := range all {
		given[n] = f.received.Sub(start)
	}
	for n, t := range turns {
		issued[n] = t.at.Sub(start)
	}
	slices.Sort(given)
	slices.Sort(issued)
	end := time.Duration(0)
	for _, times := range [][]time.Duration{given, issued} {
		if len(times) > 0 {
			end = max(end, times[len(times)-1])
		}
	}
	width := interval(end)
	var t Tickets
	for n := range int(end/width) + 2 {
		at := time.Duration(n) * width
		t.At = append(t.At, at.Seconds())
		t.Given, t.Served = append(t.Given, upTo(given, at)), append(t.Served, upTo(issued, at))
	}
	return t
}

// upTo returns how many of sorted times are not later than at.
func upTo(times []time.Duration, at time.Duration) int64 {
	n, _ := slices.BinarySearch(times, at+1)
	return int64(n)
}
