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

// A Feeder is a subject that serves the lines that feeds keep.
type Feeder interface {
	Liner
	gate.Fed
}

//go:embed testdata/fed/*.txt
var fedVectors embed.FS

// Fed runs everything that a gate for lines of feeds must do: the vectors in testdata/fed, and a random walk of claims, turns, leavers, changes
// and clock jumps during which the model and the gate agree at every step.
func Fed(t *testing.T, fresh func(t *testing.T) Subject) {
	s := fresh(t).(Feeder)
	quarantine := quarantineFor(s)
	runVectors(t, s, fedVectors, "testdata/fed", func(t *testing.T, s Subject, v vector) {
		if quarantine > 0 {
			s = &patientFed{Feeder: s.(Feeder), patient: patient{Subject: s, quarantine: quarantine}}
		}
		runQuarantineVector(t, s, v)
	})
	t.Run("the rule and the gate agree at every step", func(t *testing.T) { feedsAgree(t, s) })
}

// A patientFed is a patient subject with lines of feeds.
type patientFed struct {
	Feeder
	patient patient
}

func (p *patientFed) SetClock(at time.Time) { p.patient.SetClock(at) }

func (p *patientFed) SetTerms(ctx context.Context, id firstcome.CampaignID, edit func(*firstcome.Terms)) error {
	return p.patient.SetTerms(ctx, id, edit)
}

func (p *patientFed) Void(ctx context.Context, id firstcome.CampaignID, number int64) error {
	return p.patient.Void(ctx, id, number)
}

// runFedCommand runs one line of a vector that is about the line of a feed.
func runFedCommand(ctx context.Context, s Feeder, id firstcome.CampaignID, words []string) (string, error) {
	switch command, args := words[0], words[1:]; command {
	case "begin":
		generation, err1 := strconv.ParseInt(args[0], 10, 64)
		first, err2 := strconv.ParseInt(args[1], 10, 64)
		state, err := s.LineOf(ctx, id)
		feed := firstcome.Feed{Topic: string(id)}
		switch {
		case len(args) > 2: // by a node that knows another feed
			var partition int64
			partition, err = strconv.ParseInt(args[2], 10, 32)
			feed.Partition = int32(partition)
		case state.Campaign.Feed != nil:
			feed = *state.Campaign.Feed
		}
		if err := errors.Join(err, err1, err2); err != nil {
			return "", err
		}
		line, err := s.Begin(ctx, id, feed, generation, first)
		if err != nil {
			return refusal(err)
		}
		return spellFed(line), nil
	case "turn":
		at, err := ticketOf(args[0])
		if err != nil {
			return "", err
		}
		turned, err := s.ServeTurn(ctx, id, gate.Turn{Generation: at.Generation, From: at.Number, Users: userIDs(args[1:])})
		if err != nil {
			return refusal(err)
		}
		return spellTurned(turned), nil
	case "placeof":
		at, err := ticketOf(args[1])
		if err != nil {
			return "", err
		}
		p, c, err := s.PlaceOf(ctx, id, firstcome.UserID(args[0]), at)
		if err != nil {
			return refusal(err)
		}
		return spellPlace(p, c), nil
	case "leaveof":
		at, err := ticketOf(args[1])
		if err != nil {
			return "", err
		}
		return refusal(s.LeaveOf(ctx, id, firstcome.UserID(args[0]), at))
	case "fed":
		state, err := s.LineOf(ctx, id)
		words := []string{spellFed(state.Line)}
		for _, p := range state.Past {
			words = append(words, fmt.Sprintf("%s=%s@%s", p.Reason, spellFed(lineOf(p)), p.EndedAt.Sub(Epoch)))
		}
		return strings.Join(words, " "), err
	}
	return "", fmt.Errorf("a vector has no command %q", words[0])
}

// ticketOf returns a ticket as a vector spells it: GENERATION.NUMBER.
func ticketOf(text string) (at firstcome.Ticket, err error) {
	_, err = fmt.Sscanf(text, "%d.%d", &at.Generation, &at.Number)
	return at, err
}

// lineOf returns a generation that ended as a line.
func lineOf(p gate.PastLine) firstcome.Line {
	return firstcome.Line{Generation: p.Generation, LastTicket: p.LastTicket, ServedThrough: p.ServedThrough, Served: p.Served, Waiting: p.Waiting, First: p.First, Begun: p.Begun}
}

// spellFed returns the line of a feed: 2@100:5/3 is generation 2, which begins at the offset 100; the tickets up to 5 have ended, and the
// users of 3 hold or held a coupon. 2@- has not begun. What only the lines of gates have is shown if it is there.
func spellFed(l firstcome.Line) string {
	text := fmt.Sprintf("%d@-:%d/%d", l.Generation, l.ServedThrough, l.Served)
	if l.Begun {
		text = strings.Replace(text, "-", strconv.FormatInt(l.First, 10), 1)
	}
	if l.LastTicket != l.ServedThrough || l.Waiting != 0 {
		text += fmt.Sprintf("(%d/%d)", l.LastTicket, l.Waiting)
	}
	return text
}

// spellTurned returns what a turn did: 1:a@1.1 over=2 1@100:3/1 again=20ms ended=sold_out.
func spellTurned(t gate.Turned) string {
	words := slices.DeleteFunc(strings.Fields(spellServed(t.Served)), func(word string) bool { return word == "waiting=0" })
	behind := []string{spellFed(t.Line)}
	if t.Over > 0 {
		behind = []string{fmt.Sprintf("over=%d", t.Over), spellFed(t.Line)}
	}
	return strings.Join(slices.Insert(words, len(t.Coupons), behind...), " ")
}

// spellJoins returns the line that a claim joins: waiting:2@100.
func spellJoins(j *firstcome.Joins) string {
	text, _, _ := strings.Cut(spellFed(j.Line), ":")
	if j.Campaign.Feed == nil || j.Campaign.ID == "" {
		text += "?"
	}
	return ":" + text
}

// feedsAgree walks at random over one campaign of a feed after the other.
func feedsAgree(t *testing.T, s Feeder) {
	campaigns := 0
	seed.Check(t, func(r *rapid.T) {
		campaigns++
		id := firstcome.CampaignID(fmt.Sprintf("fed-%d", campaigns))
		w := beginFed(t.Context(), r, s, id)
		w.pace(r)
		steps := map[string]func(*rapid.T){
			"claim": w.claim, "clock": w.clock, "on": w.on, "quantity": w.quantity, "window": w.window, "turn": w.turn, "void": w.void,
			"direct": w.direct, "serve": w.serves, "pace": w.pace, "": w.same,
			"append": w.append, "begin": w.begins, "leave of": w.leavesOf, "feed": w.feed,
		}
		steps["serve again"], steps["append again"] = w.serves, w.append // more often than the others
		if k, ok := s.(Killable); ok {
			steps["kill"] = func(r *rapid.T) { kill(r, k) }
		}
		r.Repeat(steps)
	})
}

// A fedWalk is a walk of a campaign with a line of a feed, which is a slice of users.
type fedWalk struct {
	*lineWalk
	s     Feeder
	users []firstcome.UserID // of the feed, by offset
	feeds int32
}

func beginFed(ctx context.Context, r *rapid.T, s Feeder, id firstcome.CampaignID) *fedWalk {
	w := &fedWalk{s: s}
	w.lineWalk = &lineWalk{begin(ctx, r, s, id, func(t *firstcome.Terms) { t.Feed = w.next(id) }), s}
	return w
}

// next returns a feed of the walk's campaign that it had not before.
func (w *fedWalk) next(id firstcome.CampaignID) *firstcome.Feed {
	w.feeds++
	return &firstcome.Feed{Topic: string(id), Partition: w.feeds}
}

// append appends users to the feed, or nobody.
func (w *fedWalk) append(r *rapid.T) {
	w.users = append(w.users, rapid.SliceOfN(rapid.SampledFrom(append([]firstcome.UserID{""}, lineUsers...)), 1, 6).Draw(r, "appended")...)
}

// begins begins a generation, or one that has begun or is over.
func (w *fedWalk) begins(r *rapid.T) {
	generation := w.m.Generation - rapid.SampledFrom([]int64{0, 0, 0, 1}).Draw(r, "before")
	line, err := w.s.Begin(w.ctx, w.m.ID, *w.m.Feed, generation, int64(len(w.users)))
	w.m.begin(generation, int64(len(w.users)))
	if err != nil || line != w.m.Line {
		r.Fatalf("the line began as %+v, %v; by the rule %+v", line, err, w.m.Line)
	}
}

// serves gives the gate the next turn, or another one.
func (w *fedWalk) serves(r *rapid.T) {
	turn := gate.Turn{Generation: w.m.Generation, From: w.m.Serving()}
	switch rapid.IntRange(0, 7).Draw(r, "astray if below 2") {
	case 0:
		turn.From += rapid.SampledFrom([]int64{-1, 1, 2, -3}).Draw(r, "from")
	case 1:
		turn.Generation += rapid.SampledFrom([]int64{-1, 1}).Draw(r, "generation")
	}
	if from := max(0, w.m.Offset(turn.From)); from < int64(len(w.users)) {
		turn.Users = w.users[from:]
	}
	turn.Users = turn.Users[:min(len(turn.Users), rapid.IntRange(0, 9).Draw(r, "limit"))]
	got, err := w.s.ServeTurn(w.ctx, w.m.ID, turn)
	if err != nil {
		r.Fatal(err)
	}
	coupons, over, ended := w.m.turnOf(turn)
	for n := range got.Coupons {
		c := &got.Coupons[n]
		c.Code, c.TermsVersion, c.Recorded = "", 0, false
	}
	if diff := cmp.Diff(coupons, got.Coupons); diff != "" && len(coupons)+len(got.Coupons) > 0 || ended != got.Ended || over != got.Over || got.Line != w.m.Line || got.Feed == nil || *got.Feed != *w.m.Feed {
		r.Fatalf("of the turn %+v the gate served otherwise (-rule +gate), passed %d over, ended %q, and has the line %+v in %+v; by the rule %d, %q and %+v in %+v:\n%s",
			turn, got.Over, got.Ended, got.Line, got.Feed, over, ended, w.m.Line, *w.m.Feed, diff)
	}
}

// ticket returns some ticket, mostly of the generation and near the one that is next.
func (w *fedWalk) ticket(r *rapid.T) firstcome.Ticket {
	return firstcome.Ticket{
		Generation: max(1, w.m.Generation-rapid.SampledFrom([]int64{0, 0, 0, 0, 1, -1}).Draw(r, "generation before")),
		Number:     max(1, w.m.Serving()+rapid.Int64Range(-2, 9).Draw(r, "ticket")),
	}
}

func (w *fedWalk) leavesOf(r *rapid.T) {
	user, ticket := rapid.SampledFrom(lineUsers).Draw(r, "user"), w.ticket(r)
	w.agrees(r, "leave of", w.s.LeaveOf(w.ctx, w.m.ID, user, ticket), w.m.leavesOf(user, ticket))
}

// feed changes the feed, or does not.
func (w *fedWalk) feed(r *rapid.T) {
	if rapid.IntRange(0, 5).Draw(r, "change if 0") > 0 {
		return
	}
	feed := w.next(w.m.ID)
	err := w.s.SetTerms(w.ctx, w.m.ID, func(t *firstcome.Terms) { t.Feed = feed })
	w.agrees(r, "feed", err, w.m.setFeed(feed))
}

// same checks after each step what the gate and the model have.
func (w *fedWalk) same(r *rapid.T) {
	w.lineWalk.same(r)
	for range 2 {
		user, ticket := rapid.SampledFrom(lineUsers).Draw(r, "looks"), w.ticket(r)
		want, number := w.m.placeOf(user, ticket)
		got, c, err := w.s.PlaceOf(w.ctx, w.m.ID, user, ticket)
		switch {
		case errors.Is(err, firstcome.ErrNoTicket) && number == 0 && want.Ticket == 0:
		case err != nil || c.Number != number || got != want:
			r.Fatalf("the gate has the ticket %+v of %q at %+v with number %d, %v; the rule at %+v with %d", ticket, user, got, c.Number, err, want, number)
		}
	}
}
