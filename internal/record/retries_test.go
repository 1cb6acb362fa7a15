package record_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/record"
	"github.com/firstcome/firstcome/test/stage"
)

// tries are the times of tries.
type tries struct {
	mu sync.Mutex
	at []time.Time
}

func (t *tries) add() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.at = append(t.at, time.Now())
}

func (t *tries) all() []time.Time {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.Clone(t.at)
}

// A tired source fails while the test wants it to.
type tired struct {
	*stage.Journal
	err   func() error
	tries *tries
}

func (s *tired) Watch(ctx context.Context, ready func(firstcome.CampaignID)) error {
	if err := s.err(); err != nil {
		s.tries.add()
		return err
	}
	return s.Journal.Watch(ctx, ready)
}

// TestF53WhatFailsIsTriedAgainLessAndLessOftenWhileTheOthersGoOn lets a campaign fail for ten minutes, and then succeed.
func TestF53WhatFailsIsTriedAgainLessAndLessOftenWhileTheOthersGoOn(t *testing.T) {
	for _, c := range []struct {
		what          string
		source        error
		ledger        error
		of            firstcome.CampaignID // with the trouble; empty: all
		least, most   int                  // tries in ten minutes
		before, after int                  // coupons of another campaign, during the trouble and after it
	}{
		{what: "the ledger is down", ledger: errors.New("connection refused"), least: 120, most: 620, after: 10},
		{what: "the source is down", source: errors.New("connection refused"), least: 200, most: 620, after: 10},
		{what: "a row is locked", ledger: record.ErrRowLocked, of: "ill", least: 200, most: 620, before: 10, after: 10},
		{what: "another node must take a campaign", ledger: firstcome.ErrGateMismatch, of: "ill", least: 200, most: 620, before: 10, after: 10},
		{what: "the ledger fails at a campaign", ledger: errors.New("a damaged row"), of: "ill", least: 200, most: 620, before: 10, after: 10},
	} {
		t.Run(c.what, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				const trouble = 10 * time.Minute
				began := time.Now()
				lasts := func() bool { return time.Since(began) < trouble }
				var tried tries
				s, p := &tired{Journal: &stage.Journal{}, tries: &tried}, stage.NewLedger("c", "ill")
				s.err = func() error {
					if lasts() {
						return c.source
					}
					return nil
				}
				p.Before = func(b record.Batch) error {
					if c.ledger == nil || !lasts() || c.of != "" && b.Campaign != c.of {
						return nil
					}
					tried.add()
					return c.ledger
				}
				s.Add(record.Batch{Campaign: "ill", Coupons: stage.Coupons("ill", 1, 1)})
				for n := range int64(10) {
					s.Add(record.Batch{Campaign: "c", Coupons: stage.Coupons("c", n+1, n+1)})
				}
				r := record.NewRecorder(s, p, record.Options{})
				stage.Run(t, r.Run)
				time.Sleep(trouble - time.Millisecond)
				stage.Same(t, "recorded of the other campaign during the trouble", c.before, len(p.Coupons("c")))
				tries := tried.all()
				if len(tries) < c.least || len(tries) > c.most {
					t.Fatalf("tried %d times in ten minutes", len(tries))
				}
				if first := tries[1].Sub(tries[0]); first > 30*time.Millisecond {
					t.Errorf("the second try came after %v", first)
				}
				switch s := r.Stats(); {
				case c.ledger != nil && c.of == "" && (s.Breaker == "closed" || s.Coupons > 0),
					c.ledger == record.ErrRowLocked && (s.Breaker != "closed" || s.Retries == 0),
					c.ledger == firstcome.ErrGateMismatch && (s.Breaker != "closed" || s.Retries != 0):
					t.Errorf("the stats are %+v", s)
				}
				time.Sleep(4 * time.Second)
				stage.Same(t, "recorded afterwards", []int{c.after, 1}, []int{len(p.Coupons("c")), len(p.Coupons("ill"))})
			})
		})
	}
}

// TestCampaignsAtWhichTheLedgerFailsKeepNoOtherFromIt has enough failing campaigns to keep the breaker open.
func TestCampaignsAtWhichTheLedgerFailsKeepNoOtherFromIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, p, ill := &stage.Journal{}, stage.NewLedger("c"), 8
		p.Before = func(b record.Batch) error {
			if b.Campaign == "c" {
				return nil
			}
			return errors.New("a damaged row")
		}
		for n := range ill {
			id := firstcome.CampaignID(fmt.Sprint("ill-", n))
			p.Make(id)
			s.Add(record.Batch{Campaign: id, Coupons: stage.Coupons(id, 1, 1)})
		}
		stage.Run(t, record.NewRecorder(s, p, record.Options{}).Run)
		for n := range int64(100) {
			time.Sleep(time.Minute)
			s.Add(record.Batch{Campaign: "c", Coupons: stage.Coupons("c", n+1, n+1)})
			synctest.Wait()
			stage.Same(t, "recorded at once", int(n)+1, len(p.Coupons("c")))
		}
	})
}
