package firstcome_test

import (
	"math"
	"testing"
	"time"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/test/seed"
)

// TestALinesOutcomesStandInTheirOrder compares the rule of a campaign with a line with its definition, for every combination of causes.
func TestALinesOutcomesStandInTheirOrder(t *testing.T) {
	for causes := range 1 << 7 {
		is := func(bit int) bool { return causes&(1<<bit) != 0 }
		holds, waits, early, closed, paused, soldOut, waitlist := is(0), is(1), is(2), is(3), is(4), is(5), is(6)
		c := campaign(func(c *firstcome.Campaign) {
			c.Closed, c.Paused, c.Pace, c.Waitlist = closed, paused, &firstcome.Pace{PerSecond: 5}, waitlist
		})
		now, inForce := opens, int64(0)
		if early {
			now = opens.Add(-1)
		}
		if soldOut {
			inForce = 1
		}
		want := firstcome.Waiting
		switch {
		case holds:
			want = firstcome.AlreadyIssued
		case closed:
			want = firstcome.Closed
		case early && !waits:
			want = firstcome.NotOpen
		case paused && !waits:
			want = firstcome.Paused
		case soldOut && !waitlist:
			want = firstcome.SoldOut
		}
		if got := firstcome.Decide(c, now, inForce, holds, waits); got != want {
			t.Errorf("causes %07b: got %v, want %v", causes, got, want)
		}
	}
}

// TestAPaceIsKeptOverEveryTime takes turns at random times, and checks the promise: in any time T at most pace·T turns and one bucket, and all of
// pace·T if calls are frequent and a turn takes whole microseconds.
func TestAPaceIsKeptOverEveryTime(t *testing.T) {
	for _, perSecond := range []int64{1, 2, 3, 7, 9, 10, 11, 500, 700, 2_000, 30_000, 300_007, firstcome.MaxPace} {
		p := firstcome.Pace{PerSecond: perSecond}
		r := seed.Rand(t, perSecond)
		type taken struct{ at, turns int64 }
		var all []taken
		var due time.Time
		at := int64(0)
		for range 600 {
			at += r.Int64N([]int64{3, 5_000, 150_000}[r.IntN(3)])
			turns, next := p.Take(due, opens.Add(time.Duration(at)*time.Microsecond), 1<<40)
			due = next
			all = append(all, taken{at, turns})
		}
		bucket := max(perSecond/10, 1)
		for from := range all {
			sum := int64(0)
			for _, now := range all[from:] {
				if sum += now.turns; sum*1_000_000 > perSecond*(now.at-all[from].at)+(bucket+1)*1_000_000 {
					t.Fatalf("%d a second: %d turns in %d µs", perSecond, sum, now.at-all[from].at)
				}
			}
		}
	}
	for perSecond, want := range map[int64]int64{1: 21, 500: 10_050, 700: 14_000, 2_000: 40_200, firstcome.MaxPace: 20_100_000} {
		sum, due := int64(0), time.Time{}
		for at := time.Duration(0); at <= 20*time.Second; at += 20 * time.Millisecond {
			turns, next := firstcome.Pace{PerSecond: perSecond}.Take(due, opens.Add(at), 1<<40)
			sum, due = sum+turns, next
		}
		if sum < want || sum > want+want/100 {
			t.Errorf("%d a second: %d turns in 20 s, want %d", perSecond, sum, want)
		}
	}
}

func TestABucketGoesByTheClockAsItIsRead(t *testing.T) {
	p := firstcome.Pace{PerSecond: 500}
	take := func(name string, due, now time.Time, limit, want int64, next time.Time) {
		if turns, got := p.Take(due, now, limit); turns != want || !got.Equal(next) {
			t.Errorf("%s: %d turns and due at %v, want %d and %v", name, turns, got, want, next)
		}
	}
	const bucket = 100 * time.Millisecond
	take("never served", time.Time{}, opens, 99, 50, opens)
	take("at once again", opens, opens, 99, 0, opens)
	take("a limit", time.Time{}, opens, 3, 3, opens.Add(-bucket+6*time.Millisecond))
	take("no limit is negative", time.Time{}, opens, -3, 0, opens.Add(-bucket))
	take("the next turn", opens, opens.Add(2*time.Millisecond), 99, 1, opens.Add(2*time.Millisecond))
	take("a microsecond before", opens, opens.Add(2*time.Millisecond-time.Microsecond), 99, 0, opens)
	take("the clock went forward", opens, opens.Add(time.Hour), 99, 50, opens.Add(time.Hour))
	take("the clock went back", opens.Add(time.Hour), opens, 99, 0, opens.Add(bucket))
	p.PerSecond = 0
	take("as fast as it goes", opens.Add(time.Hour), opens, 99, 99, opens)
	p.PerSecond = 3
	take("a bucket of one", time.Time{}, opens, 99, 1, opens)
	if wait := p.Wait(opens, opens); wait != 333_334*time.Microsecond {
		t.Errorf("the next of 3 a second comes in %v", wait)
	}
}

func TestAPlaceSaysHowLongAndHowLikely(t *testing.T) {
	line := firstcome.Line{Generation: 2, LastTicket: 90, ServedThrough: 10, Waiting: 80}
	type c = firstcome.Campaign
	none := time.Duration(-1)
	for name, test := range map[string]struct {
		edit    func(*c)
		ticket  int64
		inForce int64
		ahead   int64
		eta     time.Duration
		likely  bool
	}{
		"the next":                   {func(*c) {}, 11, 5, 0, 0, true},
		"behind ten":                 {func(*c) {}, 21, 5, 10, time.Second, true},
		"for the last coupon":        {func(c *c) { c.Quantity = 16 }, 21, 5, 10, time.Second, true},
		"behind the last coupon":     {func(c *c) { c.Quantity = 15 }, 21, 5, 10, time.Second, false},
		"standing by":                {func(c *c) { c.Quantity, c.Waitlist = 15, true }, 21, 5, 10, none, false},
		"standing by for the last":   {func(c *c) { c.Quantity, c.Waitlist = 16, true }, 21, 5, 10, time.Second, true},
		"first, and nothing is left": {func(c *c) { c.Quantity, c.Waitlist = 5, true }, 11, 5, 0, none, false},
		"served before it closes":    {func(c *c) { c.ClosesAt = opens.Add(time.Second + 1) }, 21, 5, 10, time.Second, true},
		"not before it closes":       {func(c *c) { c.ClosesAt = opens.Add(time.Second) }, 21, 5, 10, time.Second, false},
		"as fast as it goes":         {func(c *c) { c.Pace = &firstcome.Pace{} }, 21, 5, 10, none, true},
		"without a pace any more":    {func(c *c) { c.Pace = nil }, 21, 5, 10, none, true},
		"paused":                     {func(c *c) { c.Paused = true }, 21, 5, 10, none, true},
		"opens in a minute":          {func(c *c) { c.OpensAt = opens.Add(time.Minute) }, 21, 5, 10, time.Minute + time.Second, true},
		"opens, but is paused":       {func(c *c) { c.OpensAt, c.Paused = opens.Add(time.Minute), true }, 21, 5, 10, none, true},
		"served already, as it were": {func(*c) {}, 3, 5, 0, 0, true},
	} {
		campaign := campaign(func(c *c) {
			c.Quantity, c.Pace = 100, &firstcome.Pace{PerSecond: 10}
			test.edit(c)
		})
		p := firstcome.View{Campaign: campaign, Line: line, InForce: test.inForce, Now: opens}.Place(test.ticket)
		if p.Ahead != test.ahead || p.ETA != test.eta || p.Likely != test.likely || p.Generation != 2 || p.Ticket != test.ticket {
			t.Errorf("%s: %+v", name, p)
		}
		stands := campaign.Paused || campaign.OpensAt.After(opens)
		if p.Serving == stands || stands != (p.Why != 0) || p.Until.IsZero() != (p.Why != firstcome.NotOpen) {
			t.Errorf("%s: %+v", name, p)
		}
	}
}

// TestWhoLeftIsNotWaitedFor matters because the gate knows how many users are still in line, and not at which tickets.
func TestWhoLeftIsNotWaitedFor(t *testing.T) {
	type c = firstcome.Campaign
	type l = firstcome.Line
	const every = math.MaxInt64
	for name, test := range map[string]struct {
		line   l
		edit   func(*c)
		ticket int64
		eta    time.Duration
		likely int64 // the last ticket
	}{
		"nobody left":                    {l{LastTicket: 1001, Waiting: 1001}, func(*c) {}, 1001, 100 * time.Second, 500},
		"300 of the others left":         {l{LastTicket: 1001, Waiting: 701}, func(*c) {}, 1001, 70 * time.Second, 715},
		"after some were served":         {l{LastTicket: 1011, ServedThrough: 10, Waiting: 701}, func(*c) {}, 1011, 70 * time.Second, 725},
		"in the middle":                  {l{LastTicket: 1001, Waiting: 701}, func(*c) {}, 501, 35 * time.Second, 715},
		"just enough":                    {l{LastTicket: 1001, Waiting: 701}, func(c *c) { c.Quantity = 701 }, 1001, 70 * time.Second, 1002},
		"one too few":                    {l{LastTicket: 1001, Waiting: 701}, func(c *c) { c.Quantity = 700 }, 1001, 70 * time.Second, 1000},
		"all others left":                {l{LastTicket: 1001, Waiting: 1}, func(*c) {}, 1001, 0, every},
		"all others left, none is left":  {l{LastTicket: 1001, Waiting: 1}, func(c *c) { c.Quantity = 0 }, 1001, 0, 0},
		"nobody is said to wait":         {l{LastTicket: 1001}, func(*c) {}, 1001, 100 * time.Second, 500},
		"for as long as it is open":      {l{LastTicket: 1001, Waiting: 701}, func(c *c) { c.ClosesAt = opens.Add(7 * time.Second) }, 1001, 70 * time.Second, 100},
		"open from later on":             {l{LastTicket: 1001, Waiting: 701}, func(c *c) { c.OpensAt, c.ClosesAt = opens.Add(time.Second), opens.Add(8*time.Second) }, 1001, 71 * time.Second, 100},
		"standing by":                    {l{LastTicket: 1001, Waiting: 701}, func(c *c) { c.Waitlist = true }, 101, 7 * time.Second, 715},
		"standing by until it is closed": {l{LastTicket: 1001, Waiting: 701}, func(c *c) { c.Waitlist, c.ClosesAt = true, opens.Add(7*time.Second) }, 101, -1, 100},
		"unlimited":                      {l{LastTicket: 1001, Waiting: 701}, func(c *c) { c.Quantity = firstcome.Unlimited }, 1001, 70 * time.Second, every},
	} {
		campaign := campaign(func(c *c) {
			c.Quantity, c.Pace, c.ClosesAt = 500, &firstcome.Pace{PerSecond: 10}, time.Time{}
			test.edit(c)
		})
		view := firstcome.View{Campaign: campaign, Line: test.line, Now: opens}
		p := view.Place(test.ticket)
		if through := view.LikelyThrough(); p.ETA != test.eta || through != test.likely || p.Likely != (test.ticket <= test.likely) {
			t.Errorf("%s: likely through %d: %+v", name, through, p)
		}
		if p.Ahead != test.ticket-test.line.Serving() {
			t.Errorf("%s: %d are ahead at most", name, p.Ahead)
		}
	}
}

func TestThePaceOfTermsIsChecked(t *testing.T) {
	for name, test := range map[string]struct {
		edit func(*firstcome.Terms)
		ok   bool
	}{
		"none":                  {func(*firstcome.Terms) {}, true},
		"as fast as it goes":    {func(t *firstcome.Terms) { t.Pace = &firstcome.Pace{} }, true},
		"the fastest":           {func(t *firstcome.Terms) { t.Pace = &firstcome.Pace{PerSecond: firstcome.MaxPace} }, true},
		"faster":                {func(t *firstcome.Terms) { t.Pace = &firstcome.Pace{PerSecond: firstcome.MaxPace + 1} }, false},
		"negative":              {func(t *firstcome.Terms) { t.Pace = &firstcome.Pace{PerSecond: -1} }, false},
		"waitlist":              {func(t *firstcome.Terms) { t.Pace, t.Waitlist = &firstcome.Pace{}, true }, true},
		"waitlist without pace": {func(t *firstcome.Terms) { t.Waitlist = true }, false},
	} {
		terms := firstcome.Terms{Name: "x", Quantity: 1, Answer: firstcome.Recorded, Benefit: []byte(`{}`)}
		test.edit(&terms)
		if err := terms.Check(); (err == nil) != test.ok {
			t.Errorf("%s: %v", name, err)
		}
	}
}
