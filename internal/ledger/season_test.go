package ledger_test

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/gate"
	"github.com/firstcome/firstcome/internal/recovery"
	"github.com/firstcome/firstcome/test/stage"
)

const (
	week   = 7 * 24 * time.Hour
	minute = time.Minute
)

// A season is a shop from the making of its campaign to long after its end. It is the nodes' gate, too.
type season struct {
	*shop
	ahead   atomic.Int64      // of stage.Epoch
	retirer *recovery.Retirer // node a's
	over    *gate.Router      // node b's
	tells   func(*gate.State) // changes what the gate tells of its state; nil: nothing does
	forgot  int               // calls of Retire
	fails   error             // of the next Retire, after it was done
}

// newSeason returns a season in which users 1 to 3 hold coupons of five.
func newSeason(t testing.TB, name string) *season {
	t.Helper()
	s := &season{shop: &shop{Gate: newGate(), t: t}}
	s.States = func(_ firstcome.CampaignID, state *gate.State) error {
		state.Now, state.Instants = s.now(), firstcome.Instants{}
		if s.tells != nil {
			s.tells(state)
		}
		return nil
	}
	s.over = &gate.Router{Gate: s}
	s.open(name, s.over, s.now)
	create(t, s.a.Ledger, "c", 5)
	s.over.Retired, s.over.Ledger = s.b.Gate, s.b.Recorder
	s.retirer = recovery.NewRetirer(s.a.Epochs, s, 0, nil)
	finish(t, s.a, 1)
	s.issue(3)
	s.record()
	s.pass(time.Second) // behind what was issued
	return s
}

func (s *season) now() time.Time { return stage.Epoch.Add(time.Duration(s.ahead.Load())) }

func (s *season) pass(d time.Duration) { s.ahead.Add(int64(d)) }

// Retire is recovery.Forgetter's.
func (s *season) Retire(ctx context.Context, id firstcome.CampaignID) error {
	s.forgot++
	err := s.fails
	s.fails = nil
	return errors.Join(err, s.Gate.Retire(ctx, id))
}

// close closes the campaign.
func (s *season) close() {
	s.t.Helper()
	stage.Must(s.t, stage.Err(s.a.Campaigns.ChangeState(context.Background(), "test", "c", 0, firstcome.ChangeClose)))
	finish(s.t, s.a, 0)
}

// until has the window end at an instant, at the gate too.
func (s *season) until(at time.Time) error {
	_, err := s.a.Campaigns.SetTerms(context.Background(), "test", "c", 0, func(terms *firstcome.Terms) { terms.ClosesAt = at })
	if err == nil {
		finish(s.t, s.a, 0)
	}
	return err
}

// seen returns what the gate tells of its state.
func (s *season) seen() gate.State {
	s.t.Helper()
	state, err := s.State(s.t.Context(), "c")
	stage.Must(s.t, err)
	return state
}

// look has the retirer look, and expects whether the campaign is retired then and
// whether the gate has forgotten it.
func (s *season) look(what string, retired, gone bool) {
	s.t.Helper()
	stage.Must(s.t, s.retirer.Look(s.t.Context()))
	s.expect(what, retired, gone)
}

func (s *season) expect(what string, retired, gone bool) {
	s.t.Helper()
	active, err := s.b.Recorder.Active(context.Background())
	stage.Must(s.t, err)
	stage.Same(s.t, what+": retired, inactive, gone from the gate", []bool{retired, retired, gone}, []bool{
		!status(s.t, s.b.Ledger).RetiredAt.IsZero(),
		!slices.ContainsFunc(active, func(r gate.Revision) bool { return r.Campaign == "c" }), s.Course("c").Gone,
	})
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

// answers expects what users who claim at node b are answered.
func (s *season) answers(what, want string, users ...firstcome.UserID) {
	s.t.Helper()
	stage.Same(s.t, what, want, claim(s.t, s.over, "c", users...))
}
