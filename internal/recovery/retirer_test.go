package recovery_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/gate"
	"github.com/firstcome/firstcome/internal/recovery"
	"github.com/firstcome/firstcome/test/stage"
)

// A retireBook is a ledger with campaigns that are over.
type retireBook struct {
	mu     sync.Mutex
	over   []firstcome.CampaignID
	marked []firstcome.CampaignID
	looks  []time.Time
}

func (b *retireBook) Retiring(context.Context, time.Duration, time.Duration) (all []recovery.Retiring, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.looks = append(b.looks, time.Now())
	for _, id := range b.marked {
		all = append(all, recovery.Retiring{Campaign: id, Marked: true})
	}
	for _, id := range b.over {
		all = append(all, recovery.Retiring{Campaign: id})
	}
	return all, nil
}

func (b *retireBook) Retire(_ context.Context, id firstcome.CampaignID, _ gate.State, _ time.Duration) (bool, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.over = slices.DeleteFunc(b.over, func(other firstcome.CampaignID) bool { return other == id })
	b.marked = append(b.marked, id)
	return true, nil
}

func (b *retireBook) Forgotten(_ context.Context, id firstcome.CampaignID) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.marked = slices.DeleteFunc(b.marked, func(other firstcome.CampaignID) bool { return other == id })
	return nil
}

func TestARetirerLooksSoonAndThenAboutOnceAnHour(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := &retireBook{over: []firstcome.CampaignID{"a", "b"}}
		r := recovery.NewRetirer(b, stage.NewGate(1, "a", "b"), 0, nil)
		began := time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), 24*time.Hour)
		defer cancel()
		stage.Must(t, r.Run(ctx))
		if first := b.looks[0].Sub(began); first > time.Minute {
			t.Errorf("the first look was after %v", first)
		}
		for n, at := range b.looks[1:] {
			if pause := at.Sub(b.looks[n]); pause < 30*time.Minute || pause > 90*time.Minute {
				t.Errorf("look %d was %v after the one before", n+2, pause)
			}
		}
		if diff := cmp.Diff(recovery.RetirerStats{Retired: 2, Forgotten: 2}, r.Stats()); diff != "" {
			t.Error(diff)
		}
	})
}

func TestACampaignThatCannotBeRetiredDoesNotHoldUpTheOthers(t *testing.T) {
	lost := errors.New("lost")
	b, g := &retireBook{over: []firstcome.CampaignID{"a", "b", "c"}}, stage.NewGate(1, "a", "b", "c")
	g.States = func(id firstcome.CampaignID, _ *gate.State) error {
		return map[firstcome.CampaignID]error{"a": lost}[id]
	}
	var told []error
	r := recovery.NewRetirer(b, g, 0, func(err error) { told = append(told, err) })
	if err := r.Look(t.Context()); !errors.Is(err, lost) || len(told) != 1 || !errors.Is(told[0], lost) {
		t.Errorf("got %v, and told %v", err, told)
	}
	if diff := cmp.Diff([]firstcome.CampaignID{"b", "c"}, b.marked); diff != "" {
		t.Error(diff)
	}
	g.States = nil
	if err := r.Look(t.Context()); err != nil || len(told) != 1 || r.Stats().Failed != 1 {
		t.Errorf("got %v, told %v, and %+v", err, told, r.Stats())
	}
}
