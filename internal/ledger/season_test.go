package ledger_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/flow"
	"github.com/firstcome/firstcome/internal/ledger"
)

const (
	week   = 7 * 24 * time.Hour
	minute = time.Minute
)

// An old gate is a far gate that counts how often it was told to forget its campaign.
type oldGate struct {
	*farGate
	forgot   int   // calls of Retire
	behind   int64 // versions that State is behind
	late     time.Duration
	epoch    int64
	instants firstcome.Instants
	fails    error // of the next Retire, after it was done
}

func (g *oldGate) Retire(ctx context.Context, id firstcome.CampaignID) error {
	g.forgot++
	err := g.fails
	g.fails = nil
	return errors.Join(err, g.farGate.Retire(ctx, id))
}

// A season is a campaign c of two nodes from its making to long after its end.
type season struct {
	t       testing.TB
	ahead   atomic.Int64 // of the opening
	a, b    node
	gate    *oldGate
	retirer *flow.Retirer // node a's
	over    *flow.Over    // node b's
}

func (s *season) now() time.Time { return opening.Add(time.Duration(s.ahead.Load())) }

func (s *season) pass(d time.Duration) { s.ahead.Add(int64(d)) }

// newSeason returns a season in which users 1 to 3 hold coupons of five.
func newSeason(t testing.TB, name string) *season {
	t.Helper()
	s := &season{t: t}
	s.gate = &oldGate{farGate: newFarGate(t), epoch: 1}
	s.gate.States = func(_ firstcome.CampaignID, state *flow.GateState) error {
		state.Version -= s.gate.behind
		state.Epoch, state.Now, state.Instants = s.gate.epoch, s.now().Add(-s.gate.late), s.gate.instants
		return nil
	}
	at := func() *ledger.Ledger {
		l, err := ledger.Open(context.Background(), name, ledger.Options{Secret: secret(t), Gate: "redis:test", Clock: s.now})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(run(t, l))
		return l
	}
	l := at()
	create(t, l, "c", 5)
	s.over = &flow.Over{RemoteGate: s.gate, Book: l}
	s.a = node{l, flow.NewChanger(l, s.over, nil)}
	s.b = s.a
	if ledger.OnServer(name) {
		l = at()
		s.b = node{l, flow.NewChanger(l, s.over, nil)}
	}
	s.retirer = flow.NewRetirer(s.a, s.gate, 0, nil)
	finish(t, s.a, 1)
	s.gate.issue(3)
	s.gate.record(s.a.Ledger)
	s.pass(time.Second) // behind what was issued
	return s
}

// close closes the campaign.
func (s *season) close() {
	s.t.Helper()
	if _, err := s.a.Switch(context.Background(), "test", "c", ledger.Close); err != nil {
		s.t.Fatal(err)
	}
	finish(s.t, s.a, 0)
}

// until has the window end at an instant, at the gate too.
func (s *season) until(at time.Time) error {
	_, err := s.a.SetTerms(context.Background(), "test", "c", 0, func(terms *firstcome.Terms) {
		terms.ClosesAt = at
	})
	if err == nil {
		finish(s.t, s.a, 0)
	}
	return err
}

// look has the retirer look, and expects whether the campaign is retired then and
// whether the gate knows it still.
func (s *season) look(what string, retired, gone bool) {
	s.t.Helper()
	if err := s.retirer.Look(s.t.Context()); err != nil {
		s.t.Fatal(err)
	}
	s.expect(what, retired, gone)
}

func (s *season) expect(what string, retired, gone bool) {
	s.t.Helper()
	c, err := s.b.Campaign(context.Background(), "c")
	if err != nil {
		s.t.Fatal(err)
	}
	active, err := s.b.Active(context.Background())
	if err != nil {
		s.t.Fatal(err)
	}
	same(s.t, what+": retired, inactive, gone from the gate", []bool{retired, retired, gone},
		[]bool{!c.RetiredAt.IsZero(), !slices.ContainsFunc(active, func(r flow.Revision) bool { return r.Campaign == "c" }), s.gate.Course("c").Gone})
}

// forgotten lets the campaign be retired and its gate forget it.
func (s *season) forgotten() {
	s.t.Helper()
	s.close()
	s.pass(week)
	s.look("a week later", true, false)
	s.pass(minute)
	s.look("a minute later", true, true)
}

// answers claims for users through node b, and returns what is answered.
func (s *season) answers(users ...firstcome.UserID) (all []string) {
	s.t.Helper()
	decisions, err := s.over.Claim(context.Background(), "c", users)
	if err != nil {
		s.t.Fatal(err)
	}
	for _, d := range decisions {
		all = append(all, fmt.Sprintf("%v:%d", d.Outcome, d.Coupon.Number))
	}
	return all
}

func (s *season) void(number int64) {
	s.t.Helper()
	if _, err := s.b.Void(context.Background(), "test", "c", number, "a refund"); err != nil {
		s.t.Fatal(err)
	}
}
