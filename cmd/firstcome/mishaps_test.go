//go:build !check

package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/gate"
	"github.com/firstcome/firstcome/internal/record"
)

// A mail has the reports of recorders to the gate. A report may arrive late, twice, in any order, or never.
type mail struct {
	mu      sync.Mutex // guards the fields below
	random  *rand.Rand
	letters []record.Result
	fair    bool // no report is lost from now on
}

// chance returns true once in often calls, at random.
func (m *mail) chance(often int) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return !m.fair && m.random.IntN(often) == 0
}

func (m *mail) post(s record.Result) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.letters = append(m.letters, s)
}

// one returns any report that was ever posted.
func (m *mail) one() (s record.Result, ok bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.letters) == 0 {
		return s, false
	}
	return m.letters[m.random.IntN(len(m.letters))], true
}

// A crashing is a source whose recorder sometimes dies after the ledger has taken a batch and before the gate knows. The report that it did not send
// arrives later or never.
type crashing struct {
	record.Source
	mail *mail
}

var errCrash = errors.New("the recorder died")

func (c crashing) Ack(ctx context.Context, receipt any, s record.Result) (int64, error) {
	c.mail.post(s)
	if c.mail.chance(8) {
		return 0, errCrash
	}
	return c.Source.Ack(ctx, receipt, s)
}

// A dull gate publishes half of the drained numbers, and sometimes repeats earlier ones.
type dull struct {
	gate.Gate
	mail *mail
}

func (d dull) WatchDrained(ctx context.Context, ready func(), each func(firstcome.CampaignID, int64)) error {
	var before int64
	return d.Gate.WatchDrained(ctx, ready, func(id firstcome.CampaignID, through int64) {
		if d.mail.chance(2) {
			before = through
			return
		}
		each(id, through)
		each(id, before)
	})
}

// A picky ledger refuses some numbers, and sometimes returns an error although it did its work.
type picky struct {
	record.Keeper
	mail *mail
}

func (p picky) Record(ctx context.Context, b record.Batch) (record.Result, error) {
	for _, c := range b.Coupons {
		if c.Number%5 == 2 {
			return record.Result{}, fmt.Errorf("%w: number %d", record.ErrRefused, c.Number)
		}
	}
	if p.mail.chance(20) {
		return record.Result{}, record.ErrRowLocked
	}
	s, err := p.Keeper.Record(ctx, b)
	if err == nil && p.mail.chance(10) {
		return s, errors.New("no answer came")
	}
	return s, err
}
