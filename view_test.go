package firstcome_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/firstcome/firstcome"
)

// view returns a view of a campaign with a pace of 10 a second, 5 of 10 coupons in force and 3 users in line, changed by edit.
func view(edit func(*firstcome.View)) firstcome.View {
	v := firstcome.View{
		Campaign: campaign(func(c *firstcome.Campaign) { c.Quantity, c.Pace = 10, &firstcome.Pace{PerSecond: 10} }),
		Line:     firstcome.Line{Generation: 2, LastTicket: 8, ServedThrough: 5, Served: 5, Waiting: 3, Due: opens.Add(time.Minute)},
		InForce:  5, Now: opens.Add(time.Minute),
	}
	if edit != nil {
		edit(&v)
	}
	return v
}

func TestClaimsSeeACampaignAsItWasBeforeItsQuarantine(t *testing.T) {
	type q = firstcome.Quarantine
	type c = firstcome.Campaign
	now := campaign(func(c *c) { c.Pace, c.Waitlist = &firstcome.Pace{PerSecond: 10}, true })
	for name, test := range map[string]struct {
		edit    func(*c)
		waiting int64
		was     q
		want    func(*c)
	}{
		"no quarantine":               {nil, 0, q{}, nil},
		"it opened later":             {nil, 0, q{OpensAt: opens.Add(1)}, func(c *c) { c.OpensAt = opens.Add(1) }},
		"it opened earlier":           {nil, 0, q{OpensAt: opens.Add(-1)}, nil},
		"it closed earlier":           {nil, 0, q{ClosesAt: closes.Add(-1)}, func(c *c) { c.ClosesAt = closes.Add(-1) }},
		"it closed later":             {nil, 0, q{ClosesAt: closes.Add(1)}, nil},
		"it closed, and never will":   {func(c *c) { c.ClosesAt = time.Time{} }, 0, q{ClosesAt: closes}, nil},
		"it was sold out":             {nil, 3, q{SoldOut: true}, func(c *c) { c.Waitlist = false }},
		"coupons are not subtracted":  {nil, 0, q{Coupons: 1, Until: closes}, nil},
		"the line outlives its pace":  {func(c *c) { c.Pace = nil }, 1, q{}, func(c *c) { c.Pace = &firstcome.Pace{} }},
		"no line outlives its people": {func(c *c) { c.Pace = nil }, 0, q{}, func(c *c) { c.Pace = nil }},
	} {
		before, want := now, now
		if test.edit != nil {
			test.edit(&before)
		}
		if test.want != nil {
			test.want(&want)
		}
		if diff := cmp.Diff(want, before.Seen(test.waiting, test.was)); diff != "" {
			t.Errorf("%s: (-want +got)\n%s", name, diff)
		}
	}
}

func TestALineEndsWhenTheCampaignIsClosedOrSoldOut(t *testing.T) {
	type v = firstcome.View
	now := view(nil).Now
	for name, test := range map[string]struct {
		edit   func(*v)
		reason string // empty if the line continues
		at     time.Time
	}{
		"open":                             {nil, "", time.Time{}},
		"before it opens":                  {func(v *v) { v.OpensAt = now.Add(1) }, "", time.Time{}},
		"paused":                           {func(v *v) { v.Paused = true }, "", time.Time{}},
		"the last coupon is left":          {func(v *v) { v.InForce = 9 }, "", time.Time{}},
		"none is left":                     {func(v *v) { v.InForce = 10 }, "sold_out", now},
		"none is left, and all are served": {func(v *v) { v.InForce, v.Line.Waiting = 10, 0 }, "sold_out", now},
		"none is left, but a waitlist":     {func(v *v) { v.InForce, v.Waitlist = 10, true }, "", time.Time{}},
		"the rest is in quarantine":        {func(v *v) { v.InForce, v.Quarantine.Coupons = 9, 1 }, "", time.Time{}},
		"none is left, and nobody came":    {func(v *v) { v.InForce, v.Line.LastTicket = 10, 0 }, "", time.Time{}},
		"just before it closes":            {func(v *v) { v.ClosesAt = now.Add(1) }, "", time.Time{}},
		"as it closes":                     {func(v *v) { v.ClosesAt = now }, "closed", now},
		"after it closed":                  {func(v *v) { v.ClosesAt = now.Add(-time.Second) }, "closed", now.Add(-time.Second)},
		"an operator closed it":            {func(v *v) { v.Closed, v.ClosedAt = true, now.Add(-time.Minute) }, "closed", now.Add(-time.Minute)},
	} {
		v := view(test.edit)
		ended, over := v.EndedLine()
		if over != (test.reason != "") || over != (v.SendsAway() != 0) || ended.Reason != test.reason || !ended.EndedAt.Equal(test.at) {
			t.Errorf("%s: %s at %v, want %q at %v", name, ended.Reason, ended.EndedAt, test.reason, test.at)
		}
		if over && (ended.Generation != 2 || ended.Waiting != v.Line.Waiting || !ended.Due.IsZero()) {
			t.Errorf("%s: %+v", name, ended)
		}
	}
}

func TestALineSaysWhenItCanBeServedAgain(t *testing.T) {
	type v = firstcome.View
	now := view(nil).Now
	quarantine := func(coupons int64) func(*v) {
		return func(v *v) {
			v.InForce, v.Quarantine, v.InQuarantine = 9, firstcome.Quarantine{Coupons: coupons, Until: now.Add(200 * time.Millisecond)}, true
		}
	}
	for name, test := range map[string]struct {
		edit   func(*v)
		served bool
		again  time.Duration
	}{
		"at its pace":                        {nil, true, 100 * time.Millisecond},
		"at once":                            {func(v *v) { v.Line.Due = now.Add(-time.Second) }, true, time.Microsecond},
		"as fast as it goes":                 {func(v *v) { v.Pace = &firstcome.Pace{} }, true, time.Microsecond},
		"nobody waits":                       {func(v *v) { v.Line.Waiting = 0 }, true, 0},
		"paused":                             {func(v *v) { v.Paused = true }, false, 0},
		"opens later":                        {func(v *v) { v.OpensAt = now.Add(time.Minute) }, false, time.Minute},
		"opens later, and nothing is left":   {func(v *v) { v.OpensAt, v.InForce = now.Add(time.Minute), 10 }, false, time.Minute},
		"the last coupon is left":            {func(v *v) { v.InForce = 9 }, true, 100 * time.Millisecond},
		"nothing is left":                    {func(v *v) { v.InForce = 10 }, true, 0},
		"the rest is in quarantine":          {quarantine(1), true, 200 * time.Millisecond},
		"more than the rest is":              {quarantine(2), true, 200 * time.Millisecond},
		"something is not in quarantine":     {func(v *v) { quarantine(1)(v); v.InForce = 8 }, true, 100 * time.Millisecond},
		"its earlier opening is quarantined": {func(v *v) { quarantine(0)(v); v.OpensAt = now.Add(time.Minute) }, false, 200 * time.Millisecond},
		"paused in a quarantine":             {func(v *v) { quarantine(1)(v); v.Paused = true }, false, 0},
	} {
		v := view(test.edit)
		if again := v.Again(now); v.IsServed() != test.served || again != test.again {
			t.Errorf("%s: served now: %t, again in %v; want %t and %v", name, v.IsServed(), again, test.served, test.again)
		}
	}
	// The opening goes by the gate's time. Pace and quarantine go by the clock, which was set back by a second.
	if again := view(nil).Again(now.Add(-time.Second)); again != 1100*time.Millisecond {
		t.Errorf("with its clock a second back: again in %v", again)
	}
	if again := view(func(v *v) { v.OpensAt = now.Add(time.Minute) }).Again(now.Add(-time.Second)); again != time.Minute {
		t.Errorf("before it opens, with its clock a second back: again in %v", again)
	}
}

func TestARefusalIsRepeatedOnlyWhileItHolds(t *testing.T) {
	type v = firstcome.View
	const most = 200 * time.Millisecond
	early := func(v *v) { v.Now, v.Line.Waiting = opens.Add(-time.Minute), 0 }
	for name, test := range map[string]struct {
		edit    func(*v)
		outcome firstcome.Outcome
		lease   time.Duration
	}{
		"sold out":                        {nil, firstcome.SoldOut, most},
		"sold out, just before it closes": {func(v *v) { v.Now = closes.Add(-time.Millisecond) }, firstcome.SoldOut, time.Millisecond},
		"sold out in a quarantine":        {func(v *v) { v.InQuarantine = true }, firstcome.SoldOut, 0},
		"closed":                          {nil, firstcome.Closed, most},
		"closed in a quarantine":          {func(v *v) { v.InQuarantine = true }, firstcome.Closed, 0},
		"not open":                        {early, firstcome.NotOpen, most},
		"just before it opens":            {func(v *v) { early(v); v.Now = opens.Add(-time.Millisecond) }, firstcome.NotOpen, time.Millisecond},
		"not open, and users are in line": {func(v *v) { early(v); v.Line.Waiting = 1 }, firstcome.NotOpen, 0},
		"paused":                          {nil, firstcome.Paused, 0},
		"a ticket":                        {nil, firstcome.Waiting, 0},
		"a coupon":                        {nil, firstcome.Issued, 0},
		"the coupon of before":            {nil, firstcome.AlreadyIssued, 0},
	} {
		if lease := view(test.edit).Lease(test.outcome); lease != test.lease {
			t.Errorf("%s is repeated for %v, want %v", name, lease, test.lease)
		}
	}
}
