//go:build !check

package redis_test

import (
	"context"
	"errors"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/gate"
	"github.com/firstcome/firstcome/test/services"
	"github.com/firstcome/firstcome/test/stage"
)

// TestP9TheLedgerHearsOfEveryGenerationWhateverAnOperatorChangesMeanwhile lets users join and leave, three nodes serve, and an operator change
// everything, until the campaign is closed.
func TestP9TheLedgerHearsOfEveryGenerationWhateverAnOperatorChangesMeanwhile(t *testing.T) {
	s := newShop(t, services.Redis.Database(t), 30)
	s.apply(firstcome.Change{Version: 2, Kind: firstcome.ChangeTerms, Terms: withPace(30, 0)})
	gates := []gate.Gate{s.gate, open(t, s.url), open(t, s.url)}
	stop := serving(t, gates, 3)
	var users sync.WaitGroup
	for n, user := range crowd(0, 150) {
		users.Go(func() {
			g := gates[n%3]
			for outcome := firstcome.Paused; outcome == firstcome.Paused; {
				d, err := g.Claim(context.Background(), "c", []firstcome.UserID{user})
				if err != nil {
					t.Error(err)
					return
				}
				outcome = d[0].Outcome
			}
			if n%5 > 0 {
				return
			}
			err := stage.Err(g.Leave(context.Background(), "c", user))
			if err != nil && !errors.Is(err, firstcome.ErrServed) && !errors.Is(err, firstcome.ErrNoTicket) {
				t.Error(err)
			}
		})
	}
	waitlist := withPace(60, 500)
	waitlist.Waitlist = true
	unpaced, version := firstcome.Terms{Quantity: 90}, int64(3)
	change := func(c firstcome.Change) {
		c.Version = version
		s.apply(c)
		version++
	}
	for _, terms := range []firstcome.Terms{withPace(60, 0), waitlist, unpaced, withPace(40, 0), waitlist, withPace(90, 1), unpaced} {
		change(firstcome.Change{Kind: firstcome.ChangePause})
		if issued := journaled(t, s.gate); len(issued) > 0 {
			change(firstcome.Change{Kind: firstcome.ChangeVoid, Number: issued[0].Number, User: issued[0].User})
		}
		change(firstcome.Change{Kind: firstcome.ChangeTerms, Terms: terms})
		change(firstcome.Change{Kind: firstcome.ChangeResume})
	}
	users.Wait()
	change(firstcome.Change{Kind: firstcome.ChangeTerms, Terms: withPace(900, 1)})
	s.issue(1000, 30)
	change(firstcome.Change{Kind: firstcome.ChangePause})
	change(firstcome.Change{Kind: firstcome.ChangeTerms, Terms: firstcome.Terms{Quantity: s.state().InForce}})
	change(firstcome.Change{Kind: firstcome.ChangeClose})
	stop()
	p, state := stage.NewLedger("c"), keepsPlaces(t, s.gate)
	if len(state.Past) == 0 {
		t.Error("no generation ended")
	}
	s.drain(s.journal(), p.Take)
	s.drained(s.state().LastNumber)
	told, err := p.LineOf(t.Context(), "c")
	stage.Must(t, err)
	if diff := cmp.Diff(state.Past, told.Past); diff != "" || told.Line.Waiting != 0 {
		t.Errorf("the ledger has another word than the gate of what ended, and the line is %+v (-gate +ledger):\n%s", told.Line, diff)
	}
}
