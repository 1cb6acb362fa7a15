//go:build !race || soak

package console_test

import (
	"fmt"
	"regexp"
	"time"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/test/stage"
)

// A line is the line of a walk, as the test knows it.
type line struct {
	generation int64 // the last one that ended
	last       int64 // the last ticket given
	served     int64 // the last ticket served
	waiting    []waiter
	left       *waiter // a user who left
	became     string  // how that place ended: left, until its line ended
	away       *waiter // the user who was sent away last
	why        string  // why
}

// A waiter is a user in line.
type waiter struct {
	user   string
	place  firstcome.Place // as it was told first
	joined time.Time
	ended  time.Time // when they left or were sent away
}

// join notes a user's place.
func (l *line) join(user string, p firstcome.Place, now time.Time) {
	l.last++
	l.waiting = append(l.waiting, waiter{user: user, place: p, joined: now})
}

// end notes that everybody in line is sent away.
func (l *line) end(why string, now time.Time) {
	if l.last == 0 {
		return
	}
	if n := len(l.waiting); n > 0 {
		l.away, l.why = &l.waiting[n-1], why
		l.away.ended = now
	}
	if l.left != nil && l.became == "left" {
		l.became = why // nobody remembers the leavers of a line that has ended
	}
	l.generation, l.last, l.served, l.waiting = l.generation+1, 0, 0, nil
}

// likely reports whether a coupon will be left for a user with so many people ahead, if nothing changes.
func (w *walk) likely(ahead int) bool {
	return int64(ahead) < w.terms.Quantity-int64(len(w.held))
}

// gone returns users who were in line and got nothing.
func (l *line) gone() (users []string) {
	for _, w := range []*waiter{l.left, l.away} {
		if w != nil {
			users = append(users, w.user)
		}
	}
	return users
}

// lined are the terms of a campaign with a line. standing are those of a campaign with a waitlist.
var (
	lined    = firstcome.Terms{Quantity: 4, Answer: firstcome.Recorded, Pace: &firstcome.Pace{PerSecond: 1}}
	standing = firstcome.Terms{Quantity: 2, Answer: firstcome.Decided, Pace: &firstcome.Pace{PerSecond: 1}, Waitlist: true}
)

// linedSteps are the states of a campaign with a line.
var linedSteps = []walked{
	{"before it opens", func(*walk) {}, firstcome.NotOpen, everywhere},
	{"open, and nobody waits", func(w *walk) { w.passes(time.Hour) }, firstcome.Waiting, everywhere},
	{"people wait", func(w *walk) { w.joins("b"); w.joins("c") }, firstcome.Waiting, everywhere},
	{"one left", func(w *walk) { w.leaves("c") }, firstcome.Waiting, everywhere},
	{"one was served", func(w *walk) { w.serves(1) }, firstcome.Waiting, everywhere},
	{"one was served, and is not recorded yet", func(w *walk) { w.lags = true; w.serves(1) }, firstcome.Waiting, byHand},
	{"recorded", func(w *walk) { w.raise(w.terms.Quantity + 1); w.records() }, firstcome.Waiting, byHand},
	{"paused", func(w *walk) { w.turn(firstcome.ChangePause) }, firstcome.Paused, everywhere},
	{"issued directly in the pause", func(w *walk) { w.direct("guest") }, firstcome.Paused, everywhere},
	{"resumed", func(w *walk) { w.turn(firstcome.ChangeResume) }, firstcome.Waiting, everywhere},
	{"the gate away", func(w *walk) { w.blinds(errGateAway) }, 0, far},
	{"recovering", func(w *walk) { w.blinds(errRecovering) }, 0, far},
	{"the ledger older", func(w *walk) { w.blinds(errRolledBack) }, 0, far},
	{"the gate older", func(w *walk) { w.blinds(errStaleEpoch) }, 0, far},
	{"the ledger away", func(w *walk) { w.blinds(nil); w.darkens(true) }, 0, everywhere},
	{"all back", func(w *walk) { w.darkens(false) }, firstcome.Waiting, everywhere},
	{"sold out with people in line", func(w *walk) { w.servesAll() }, firstcome.SoldOut, everywhere},
	{"voided since, and nobody is in line", func(w *walk) { w.void("guest") }, firstcome.Waiting, everywhere},
	{"sold out again", func(w *walk) { w.servesAll() }, firstcome.SoldOut, everywhere},
	{"raised since", func(w *walk) { w.raise(w.terms.Quantity + 3) }, firstcome.Waiting, everywhere},
	{"the line taken away while people wait", func(w *walk) { w.joins("d"); w.sets(noLine) }, firstcome.Waiting, everywhere},
	{"a line again", func(w *walk) { w.sets(func(t *firstcome.Terms) { t.Pace = lined.Pace }) }, firstcome.Waiting, everywhere},
	{"closed with people in line", func(w *walk) { w.turn(firstcome.ChangeClose) }, firstcome.Closed, everywhere},
	{"retired", (*walk).retire, firstcome.Closed, real},
}

// standingSteps are the states of a campaign with a waitlist.
var standingSteps = []walked{
	{"before it opens", func(*walk) {}, firstcome.NotOpen, everywhere},
	{"open", func(w *walk) { w.passes(time.Hour); w.joins("a"); w.joins("b"); w.joins("c") }, firstcome.Waiting, everywhere},
	{"every coupon in force, and people stand by", func(w *walk) { w.serves(1); w.serves(1) }, firstcome.Waiting, everywhere},
	{"a coupon came back", func(w *walk) { w.void("a") }, firstcome.Waiting, everywhere},
	{"the next in line has it", func(w *walk) { w.serves(1) }, firstcome.Waiting, everywhere},
	{"raised since", func(w *walk) { w.raise(4) }, firstcome.Waiting, everywhere},
	{"paused", func(w *walk) { w.turn(firstcome.ChangePause) }, firstcome.Paused, everywhere},
	{"resumed, and nobody stands by any more", func(w *walk) {
		w.turn(firstcome.ChangeResume)
		w.sets(func(t *firstcome.Terms) { t.Waitlist = false })
	}, firstcome.Waiting, everywhere},
	{"sold out", func(w *walk) { w.serves(1); w.serves(1) }, firstcome.SoldOut, everywhere},
	{"closed", func(w *walk) { w.turn(firstcome.ChangeClose) }, firstcome.Closed, everywhere},
}

func noLine(t *firstcome.Terms) { t.Pace, t.Waitlist = nil, false }

// joins claims for a user who gets a place in line.
func (w *walk) joins(user string) { w.newcomer(user, firstcome.Waiting) }

// leaves takes a user out of the line.
func (w *walk) leaves(user string) {
	w.t.Helper()
	for n, one := range w.line.waiting {
		if one.user != user {
			continue
		}
		stage.Must(w.t, stage.Err(w.decides.Leave(w.t.Context(), "spring", firstcome.UserID(user))))
		w.line.became, one.ended = "left", w.now
		w.line.left, w.line.waiting = &one, append(w.line.waiting[:n:n], w.line.waiting[n+1:]...)
		return
	}
	w.t.Fatalf("%s is not in line", user)
}

// serves serves so many users after the time that their turns take, and fails unless they are the first in line.
func (w *walk) serves(people int) {
	w.t.Helper()
	for range people {
		w.passes(time.Second)
		first := w.line.waiting[0]
		served, err := w.decides.Serve(w.t.Context(), "spring", 1)
		stage.Must(w.t, err)
		if len(served.Coupons) != 1 || string(served.Coupons[0].User) != first.user {
			w.t.Fatalf("the first in line is %s, and served are %v", first.user, served.Coupons)
		}
		w.line.waiting, w.line.served = w.line.waiting[1:], first.place.Ticket
		w.gets(first.user, served.Coupons[0])
	}
}

// servesAll serves the line until nothing is left.
func (w *walk) servesAll() {
	w.t.Helper()
	w.serves(int(w.terms.Quantity) - len(w.held))
}

var (
	waitingOnLive = regexp.MustCompile(`<dd data-f="waiting">([^<]*)<`)
	waitingInList = regexp.MustCompile(`<td class="number" data-name="(?:대기|waiting)">([^<]*)<`)
	waitingAtForm = regexp.MustCompile(`(?:순번대로 먼저 발급됩니다|are served first, in order): ([^<]*?)(?:명)?<`)
	waitingInPlay = regexp.MustCompile(`(?:순번은 유지됩니다|keep their places): ([^<]*?)(?:명)?<`)
)

// inLine compares how many people are in line on a page with the test's own line.
func (w *walk) inLine(step walked, lang, path string, got shown) {
	w.t.Helper()
	for at, figure := range map[string]*regexp.Regexp{"/campaigns/spring": waitingOnLive, "": waitingInList, "/campaigns/spring/steer": waitingAtForm, "/campaigns/spring/steer ": waitingInPlay} {
		if at != path && at != path+" " {
			continue
		}
		want := fmt.Sprint(len(w.line.waiting))
		if w.blind || w.dark || w.terms.Pace == nil && w.line.generation == 0 && w.line.last == 0 { // a campaign that never had a line shows no figure
			want = "–"
		}
		found := figure.FindStringSubmatch(got.body)
		hidden := w.dark || step.gets == firstcome.Paused && figure == waitingInPlay // the form for resuming shows no figure
		if found == nil && (len(w.line.waiting) == 0 || hidden) || found != nil && found[1] == want {
			continue
		}
		w.t.Errorf("%s, %s, %q shows %q people in line, and %s are", step.name, lang, path, found, want)
	}
}
