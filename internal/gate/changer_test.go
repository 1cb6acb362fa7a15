package gate_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/gate"
	"github.com/firstcome/firstcome/test/stage"
)

// A changeBook has a ledger's changes in memory.
type changeBook struct {
	mu      sync.Mutex
	pending []firstcome.Change
	refused map[int64]bool
	noted   []int64
	reads   int
	fails   int   // calls of Applied that fail first
	hidden  error // beside what is pending there are changes that cannot be read
}

func (b *changeBook) Pending(_ context.Context, id firstcome.CampaignID) ([]firstcome.Change, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.reads++
	var all []firstcome.Change
	for _, c := range b.pending {
		if id == "" || c.Campaign == id {
			all = append(all, c)
		}
	}
	return all, b.hidden
}

func (b *changeBook) Applied(_ context.Context, c firstcome.Change, refused bool) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.fails--; b.fails >= 0 {
		return errors.New("the ledger is away")
	}
	for n, p := range b.pending {
		if p.Campaign == c.Campaign && p.Version == c.Version {
			b.pending = append(b.pending[:n:n], b.pending[n+1:]...)
			b.noted = append(b.noted, c.Version)
			b.refused[c.Version] = refused
			break
		}
	}
	return nil
}

func (b *changeBook) Refusal(_ context.Context, _ firstcome.CampaignID, version int64) (refusal, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.refused[version] {
		refusal = firstcome.ErrBelowInForce
	}
	return refusal, nil
}

// An applier is a gate that applies each change, unless it is away.
type applier struct {
	mu    sync.Mutex
	gets  []int64
	apply func(firstcome.Change) (bool, error)
}

func (a *applier) Apply(_ context.Context, c firstcome.Change) (bool, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.gets = append(a.gets, c.Version)
	if a.apply == nil {
		return false, nil
	}
	return a.apply(c)
}

func pendingBook(id firstcome.CampaignID, versions ...int64) *changeBook {
	b := &changeBook{refused: map[int64]bool{}}
	for _, v := range versions {
		b.pending = append(b.pending, firstcome.Change{Campaign: id, Version: v})
	}
	return b
}

func TestAnOperatorsChangeIsTriedUntilTheirTimeIsOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, start := pendingBook("c", 2), time.Now()
		g := &applier{apply: func(firstcome.Change) (bool, error) {
			if time.Since(start) < 3*time.Second {
				return false, errors.New("connection refused")
			}
			return false, nil
		}}
		c := gate.NewChanger(b, g, nil)
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
		defer cancel()
		if err := c.Finish(ctx, "c", 2); err == nil || len(b.noted) != 0 {
			t.Errorf("the change is said to be done: %v, %v", b.noted, err)
		}
		ctx, cancel = context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		if err := c.Finish(ctx, "c", 2); err != nil {
			t.Error(err)
		}
		stage.Same(t, "noted", []int64{2}, b.noted)
	})
}

func TestAGateThatLostTheCampaignIsNotAskedAgainAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, lost := range []error{gate.ErrGone, gate.ErrGap} {
			g := &applier{apply: func(firstcome.Change) (bool, error) { return false, lost }}
			err := gate.NewChanger(pendingBook("c", 2), g, nil).Finish(t.Context(), "c", 2)
			if !errors.Is(err, lost) || len(g.gets) != 1 {
				t.Errorf("asked %d times, %v", len(g.gets), err)
			}
		}
	})
}

func TestF20WhoSweepsFinishesWhatADeadNodeLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := pendingBook("c", 2, 3)
		b.pending = append(b.pending, firstcome.Change{Campaign: "lost", Version: 9}, firstcome.Change{Campaign: "d", Version: 5})
		b.fails = 1
		g := &applier{apply: func(c firstcome.Change) (bool, error) {
			if c.Campaign == "lost" {
				return false, gate.ErrGone
			}
			return c.Version == 3, nil
		}}
		told := 0
		c := gate.NewChanger(b, g, func(err error) {
			if told++; told > 1 && !errors.Is(err, gate.ErrGone) {
				t.Errorf("a sweep left something undone: %v", err)
			}
		})
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		stage.Must(t, c.Run(ctx))
		stage.Same(t, "left", []firstcome.Change{{Campaign: "lost", Version: 9}}, b.pending)
		for n, v := range b.noted {
			if v == 3 && (n == 0 || b.noted[n-1] != 2 && b.noted[0] != 2) {
				t.Errorf("noted out of order: %v", b.noted)
			}
		}
		stage.Same(t, "refused", true, b.refused[3])
		s := c.Stats()
		if s.Applied != 2 || s.Refused != 1 {
			t.Errorf("stats: %+v", s)
		}
		if told < 5 {
			t.Errorf("%d sweeps were told to have failed", told)
		}
		if b.reads < 6 || b.reads > 21 {
			t.Errorf("%d sweeps in ten seconds", b.reads)
		}
	})
}

func TestASweepDoesWhatCanBeReadAndTellsWhatCannot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := pendingBook("c", 2)
		b.hidden = errors.New("change 1 of d cannot be read")
		var told error
		c := gate.NewChanger(b, &applier{apply: func(firstcome.Change) (bool, error) { return false, nil }}, func(err error) { told = err })
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		stage.Must(t, c.Run(ctx))
		stage.Same(t, "noted", []int64{2}, b.noted)
		if !errors.Is(told, b.hidden) {
			t.Errorf("what was left undone is told as %v", told)
		}
	})
}

func TestAChangeIsMadeOnceTheOneBeforeItIsThere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := pendingBook("c", 2)
		g := &applier{apply: func(c firstcome.Change) (bool, error) { return c.Version == 3, nil }}
		c, tries := gate.NewChanger(b, g, nil), 0
		err := c.Do(t.Context(), "c", func() (int64, error) {
			if tries++; len(b.pending) > 0 {
				return 0, firstcome.ErrPending
			}
			b.pending = []firstcome.Change{{Campaign: "c", Version: 3}}
			return 3, nil
		})
		if !errors.Is(err, firstcome.ErrBelowInForce) || tries != 2 {
			t.Errorf("after %d tries: %v", tries, err)
		}
		stage.Same(t, "noted", []int64{2, 3}, b.noted)
		err = c.Do(t.Context(), "c", func() (int64, error) { return 0, firstcome.ErrClosed })
		if !errors.Is(err, firstcome.ErrClosed) {
			t.Errorf("a change that is not allowed: %v", err)
		}
	})
}

func TestAnOperatorIsToldWhetherAChangeIsInTheLedger(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for name, away := range map[string]error{"lost": gate.ErrGone, "hanging": context.DeadlineExceeded} {
			b := pendingBook("c")
			c := gate.NewChanger(b, &applier{apply: func(firstcome.Change) (bool, error) { return false, away }}, nil)
			number := func() (int64, error) {
				if len(b.pending) > 0 {
					return 0, firstcome.ErrPending
				}
				b.pending = []firstcome.Change{{Campaign: "c", Version: 2}}
				return 2, nil
			}
			for _, earlier := range []bool{false, true} {
				if err := c.Do(t.Context(), "c", number); !errors.Is(err, gate.ErrUnfinished) || errors.Is(err, firstcome.ErrPending) != earlier {
					t.Errorf("%s, a change on its way %v: %v", name, earlier, err)
				}
			}
		}
	})
}
