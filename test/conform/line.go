package conform

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/gate"
	"github.com/firstcome/firstcome/test/seed"
)

// A Liner is a subject that keeps waiting lines.
type Liner interface {
	Subject
	gate.Line
	gate.Places
}

//go:embed testdata/line/*.txt testdata/line/quarantine/*.txt
var lineVectors embed.FS

// Line runs all tests of a gate with waiting lines: the vectors in testdata/line, those in testdata/line/quarantine if stock that comes back is
// quarantined, and a random walk of claims, direct issues, service, changes and clock jumps during which the model and the gate agree at every step.
func Line(t *testing.T, fresh func(t *testing.T) Subject) {
	s := fresh(t).(Liner)
	runVectors(t, s, lineVectors, "testdata/line", runVector)
	if quarantineFor(s) > 0 {
		runVectors(t, s, lineVectors, "testdata/line/quarantine", runQuarantineVector)
	}
	t.Run("who is next when who was before has left", func(t *testing.T) { nextJoins(t, s) })
	t.Run("who was in line, and how it ended", func(t *testing.T) { staysAreKnown(t, s) })
	t.Run("the rule and the gate agree at every step", func(t *testing.T) { linesAgree(t, s) })
}

// nextJoins has the first of three leave, who joined at three instants.
func nextJoins(t *testing.T, s Liner) {
	ctx, start := t.Context(), time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	s.SetClock(start)
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(s.Create(ctx, "next", firstcome.Terms{Name: "next", Quantity: 9, Answer: firstcome.Recorded, Benefit: []byte(`{}`), Pace: &firstcome.Pace{PerSecond: 1}}))
	for n, user := range []firstcome.UserID{"a", "b", "c"} {
		s.SetClock(start.Add(time.Duration(n) * time.Second))
		_, err := s.Claim(ctx, "next", []firstcome.UserID{user})
		must(err)
	}
	_, err := s.Leave(ctx, "next", "a")
	must(err)
	state, err := s.LineOf(ctx, "next")
	must(err)
	if want := start.Add(time.Second); !state.Joined.Equal(want) || state.Line.Waiting != 2 {
		t.Errorf("who is next of %d joined at %v, want %v", state.Line.Waiting, state.Joined, want)
	}
}

// staysAreKnown has users join at each second who are served, leave, get a coupon directly, wait, and are sent away. A gate may know less: not when a
// ticket was given or ended, nor how, nor a ticket whose user holds the coupon.
func staysAreKnown(t *testing.T, s Liner) {
	ctx, start := t.Context(), time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	second := func(n int) time.Time { return start.Add(time.Duration(n) * time.Second) }
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	knows := func(user string, number int64, joined, ended time.Time, how string, vague bool) {
		t.Helper()
		stays, err := s.Stays(ctx, "stays", firstcome.UserID(user))
		if err == nil && vague && len(stays) == 0 {
			return
		}
		if err != nil || len(stays) != 1 {
			t.Errorf("%s was in line %+v, %v", user, stays, err)
			return
		}
		got, over := stays[0], vague && stays[0].Ended == gate.StayOver
		if got.Ticket != (firstcome.Ticket{Generation: 1, Number: number}) || !over && (got.Ended != how || !got.EndedAt.Equal(ended)) || !got.JoinedAt.IsZero() && !got.JoinedAt.Equal(joined) {
			t.Errorf("%s was in line %+v, want ticket %d from %v to %v, %q", user, got, number, joined, ended, how)
		}
		if how == "" && got.JoinedAt.IsZero() {
			t.Errorf("it is not known when %s joined, who is in line", user)
		}
	}
	s.SetClock(start)
	must(s.Create(ctx, "stays", firstcome.Terms{Name: "stays", Quantity: 9, Answer: firstcome.Recorded, Benefit: []byte(`{}`), Pace: &firstcome.Pace{PerSecond: 1}}))
	for n, user := range []firstcome.UserID{"served", "direct", "left", "waits", "last"} {
		s.SetClock(second(n))
		_, err := s.Claim(ctx, "stays", []firstcome.UserID{user})
		must(err)
	}
	s.SetClock(second(10))
	_, err := s.Serve(ctx, "stays", 1)
	must(err)
	_, err = s.Issue(ctx, gate.Order{Actor: "test"}, "stays", []firstcome.UserID{"direct"})
	must(err)
	_, err = s.Leave(ctx, "stays", "left")
	must(err)
	ended := func() {
		t.Helper()
		knows("served", 1, second(0), second(10), "issued", true)
		knows("direct", 2, second(1), second(10), "already_issued", true)
		knows("left", 3, second(2), second(10), "left", true)
		if stays, err := s.Stays(ctx, "stays", "nobody"); err != nil || len(stays) > 0 {
			t.Errorf("nobody was in line %+v, %v", stays, err)
		}
	}
	ended()
	knows("waits", 4, second(3), time.Time{}, "", false)
	s.SetClock(second(20))
	must(s.SetTerms(ctx, "stays", func(t *firstcome.Terms) { t.ClosesAt = second(30) }))
	s.SetClock(second(40)) // the window has passed, and nobody has written how the line ended
	knows("waits", 4, second(3), second(30), "closed", false)
	_, err = s.Claim(ctx, "stays", []firstcome.UserID{"late"})
	must(err)
	knows("waits", 4, second(3), second(30), "closed", false)
	knows("last", 5, second(4), second(30), "closed", false)
	ended()
	must(s.Void(ctx, "stays", 1))
	ended()
}

// A patientLine is a patient subject with lines.
type patientLine struct {
	Liner
	patient patient
}

func (p *patientLine) SetClock(at time.Time) { p.patient.SetClock(at) }

func (p *patientLine) SetTerms(ctx context.Context, id firstcome.CampaignID, edit func(*firstcome.Terms)) error {
	return p.patient.SetTerms(ctx, id, edit)
}

func (p *patientLine) Void(ctx context.Context, id firstcome.CampaignID, number int64) error {
	return p.patient.Void(ctx, id, number)
}

// runLineCommand runs one line of a vector that is about a waiting line.
func runLineCommand(ctx context.Context, s Liner, id firstcome.CampaignID, words []string) (string, error) {
	switch command, args := words[0], words[1:]; command {
	case "serve":
		limit, err := strconv.Atoi(args[0])
		if err != nil {
			return "", err
		}
		served, err := s.Serve(ctx, id, limit)
		return spellServed(served), err
	case "direct":
		decisions, err := s.Issue(ctx, gate.Order{Actor: "test"}, id, userIDs(args))
		return spell(decisions), err
	case "leave":
		_, err := s.Leave(ctx, id, firstcome.UserID(args[0]))
		return refusal(err)
	case "place":
		p, c, err := s.Place(ctx, id, firstcome.UserID(args[0]))
		if err != nil {
			return refusal(err)
		}
		return spellPlace(p, c), nil
	case "line":
		state, err := s.LineOf(ctx, id)
		return spellLine(state), err
	case "lines":
		var with []string
		err := s.Lines(ctx, func(lined firstcome.CampaignID) {
			if lined == id {
				with = append(with, "c")
			}
		})
		return strings.Join(with, " "), err
	}
	return "", fmt.Errorf("a vector has no command %q", words[0])
}

// spellServed returns what was served: 1:a@1.1 waiting=2 again=20ms ended=sold_out.
func spellServed(s gate.Served) string {
	var words []string
	for _, c := range s.Coupons {
		words = append(words, fmt.Sprintf("%d:%s@%d.%d", c.Number, c.User, c.Generation, c.Ticket))
	}
	words = append(words, fmt.Sprintf("waiting=%d", s.Waiting))
	if s.Again > 0 {
		words = append(words, "again="+s.Again.String())
	}
	if s.Ended != "" {
		words = append(words, "ended="+s.Ended)
	}
	return strings.Join(words, " ")
}

// spellPlace returns a place: 1.3+2 eta=4s unlikely not_open until=10s; or a coupon: 7@1.3.
func spellPlace(p firstcome.Place, c firstcome.Coupon) string {
	if c.Number > 0 {
		return fmt.Sprintf("%d@%d.%d", c.Number, c.Generation, c.Ticket)
	}
	words := []string{fmt.Sprintf("%d.%d+%d", p.Generation, p.Ticket, p.Ahead)}
	if p.ETA >= 0 {
		words = append(words, "eta="+p.ETA.String())
	}
	if !p.Likely {
		words = append(words, "unlikely")
	}
	if !p.Serving {
		words = append(words, p.Why.String())
	}
	if !p.Until.IsZero() {
		words = append(words, "until="+p.Until.Sub(Epoch).String())
	}
	return strings.Join(words, " ")
}

// spellLine returns a line and those that ended: 2:0/0/0 closed=1:1/3/1 is generation 2, in which ticket 0 was given last,
// every ticket up to 0 has ended and 0 are in line; and generation 1, which closed.
func spellLine(s gate.LineState) string {
	words := []string{fmt.Sprintf("%d:%d/%d/%d", s.Line.Generation, s.Line.LastTicket, s.Line.ServedThrough, s.Line.Waiting)}
	for _, p := range s.Past {
		words = append(words, fmt.Sprintf("%s=%d:%d/%d/%d@%s", p.Reason, p.Generation, p.LastTicket, p.ServedThrough, p.Waiting, p.EndedAt.Sub(Epoch)))
	}
	return strings.Join(words, " ")
}

// linesAgree walks at random over one campaign with a line after the other.
func linesAgree(t *testing.T, s Liner) {
	campaigns := 0
	seed.Check(t, func(r *rapid.T) {
		campaigns++
		id := firstcome.CampaignID(fmt.Sprintf("line-%d", campaigns))
		w := &lineWalk{begin(t.Context(), r, s, id), s}
		w.pace(r)
		steps := map[string]func(*rapid.T){
			"claim": w.claim, "clock": w.clock, "on": w.on, "quantity": w.quantity, "window": w.window, "turn": w.turn, "void": w.void,
			"direct": w.direct, "serve": w.serve, "leave": w.leave, "pace": w.pace, "": w.same,
		}
		if k, ok := s.(Killable); ok {
			steps["kill"] = func(r *rapid.T) { kill(r, k) }
		}
		r.Repeat(steps)
	})
}

// A lineWalk is a walk of a campaign with a line.
type lineWalk struct {
	*walk
	s Liner
}

var lineUsers = []firstcome.UserID{"a", "b", "c", "d", "e", "f", "g", "h", "A", "a "}

func (w *lineWalk) claim(r *rapid.T) { w.decide(r, w.s.Claim, false) }
func (w *lineWalk) direct(r *rapid.T) {
	w.decide(r, func(ctx context.Context, id firstcome.CampaignID, users []firstcome.UserID) ([]firstcome.Decision, error) {
		return w.s.Issue(ctx, gate.Order{Actor: "test"}, id, users)
	}, true)
}

func (w *lineWalk) decide(r *rapid.T, ask func(context.Context, firstcome.CampaignID, []firstcome.UserID) ([]firstcome.Decision, error), direct bool) {
	users := rapid.SliceOfN(rapid.SampledFrom(lineUsers), 1, 5).Draw(r, "users")
	got, err := ask(w.ctx, w.m.ID, users)
	if err != nil {
		r.Fatal(err)
	}
	for n, user := range users {
		want := w.m.claim(user, direct)
		d := got[n]
		lease := d.Lease
		d.Lease, d.Coupon.Code, d.Coupon.Recorded = 0, "", false
		want.Coupon.VoidedAt, d.Coupon.VoidedAt = time.Time{}, time.Time{}
		if diff := cmp.Diff(want, d); diff != "" {
			r.Fatalf("claim %d by %q (direct: %v): the gate says otherwise (-rule +gate):\n%s", n, user, direct, diff)
		}
		d.Lease = lease
		if err := w.m.checkLease(d); err != nil && !(direct && lease == 0) {
			r.Fatalf("claim %d by %q: %s under a lease of %v: %v", n, user, d.Outcome, d.Lease, err)
		}
	}
}

func (w *lineWalk) serve(r *rapid.T) {
	limit := rapid.IntRange(1, 4).Draw(r, "limit")
	got, err := w.s.Serve(w.ctx, w.m.ID, limit)
	if err != nil {
		r.Fatal(err)
	}
	coupons, ended := w.m.serve(int64(limit))
	for n := range got.Coupons {
		c := &got.Coupons[n]
		c.Code, c.Recorded = "", false
	}
	if diff := cmp.Diff(coupons, got.Coupons); diff != "" && len(coupons)+len(got.Coupons) > 0 || ended != got.Ended || got.Waiting != w.m.Waiting {
		r.Fatalf("the gate served otherwise (-rule +gate), ended %q, waiting %d, of the rule %q, %d:\n%s", got.Ended, got.Waiting, ended, w.m.Waiting, diff)
	}
}

func (w *lineWalk) leave(r *rapid.T) {
	user := rapid.SampledFrom(lineUsers).Draw(r, "user")
	_, err := w.s.Leave(w.ctx, w.m.ID, user)
	w.agrees(r, "leave", err, w.m.leaves(user))
}

// on lets some time pass, as much as a few turns take.
func (w *lineWalk) on(r *rapid.T) {
	w.m.clock = w.m.clock.Add(rapid.SampledFrom([]time.Duration{time.Millisecond, 50 * time.Millisecond, 333 * time.Millisecond, time.Second}).Draw(r, "on"))
	w.s.SetClock(w.m.clock)
}

// pace changes the pace, or takes it away.
func (w *lineWalk) pace(r *rapid.T) {
	var pace *firstcome.Pace
	if per := rapid.SampledFrom([]int64{-1, 0, 0, 1, 3, 20, 700, firstcome.MaxPace}).Draw(r, "pace"); per >= 0 {
		pace = &firstcome.Pace{PerSecond: per}
	}
	waitlist := pace != nil && rapid.IntRange(0, 2).Draw(r, "waitlist if 0") == 0
	w.setTerms(r, "pace", func(t *firstcome.Terms) { t.Pace, t.Waitlist = pace, waitlist })
}

// same checks after each step what the gate and the model have.
func (w *lineWalk) same(r *rapid.T) {
	w.walk.same(r)
	state, err := w.s.LineOf(w.ctx, w.m.ID)
	line, joined, past := w.m.lines()
	if err != nil || state.Line != line || !state.Joined.Equal(joined) || state.InForce != int64(len(w.m.holds)) || !slices.EqualFunc(state.Past, past, func(a, b firstcome.PastLine) bool { return cmp.Equal(a, b) }) {
		r.Fatalf("the gate has the line %+v, whose next joined at %v, and before it %+v, %v; the rule %+v, %v and %+v", state.Line, state.Joined, state.Past, err, line, joined, past)
	}
	for range 2 {
		user := rapid.SampledFrom(lineUsers).Draw(r, "looks")
		want, number := w.m.place(user)
		got, c, err := w.s.Place(w.ctx, w.m.ID, user)
		switch {
		case errors.Is(err, firstcome.ErrNoTicket) && number == 0 && want.Ticket == 0:
		case err != nil || c.Number != number || got != want:
			r.Fatalf("the gate has %q at %+v with number %d, %v; the rule at %+v with %d", user, got, c.Number, err, want, number)
		case number > 0 && (c.Generation != w.m.coupons[number-1].Generation || c.Ticket != w.m.coupons[number-1].Ticket):
			r.Fatalf("number %d is of the ticket %d.%d, by the rule of %d.%d", number, c.Generation, c.Ticket, w.m.coupons[number-1].Generation, w.m.coupons[number-1].Ticket)
		}
	}
}
