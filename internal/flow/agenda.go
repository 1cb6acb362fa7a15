package flow

import (
	"context"
	"sync"
	"time"

	"github.com/firstcome/firstcome"
)

// An Agenda hands campaigns to the workers of a Source: each to one at a time, in turn, and once
// more if something came while it was worked on. One that rests is handed out when it has rested. Those
// whose rows are locked have a worker of their own, so that waiting for them keeps nobody from the others. Make one with NewAgenda.
type Agenda struct {
	locked  func(firstcome.CampaignID) bool
	signals [shelves]chan struct{} // each has room for one: the shelf's queue may have something

	mu     sync.Mutex // guards what follows
	queues [shelves][]firstcome.CampaignID
	state  map[firstcome.CampaignID]progress
}

// A Shelf is one of the two parts of an Agenda. Each has a queue and workers of its own.
type Shelf int

const (
	Locked Shelf = iota // campaigns whose rows in the ledger were locked when they were drained last
	Free                // all others
	shelves
)

// A progress is what is done with a campaign on the agenda; none: it is not there.
type progress uint8

const (
	queued  progress = iota + 1
	working          // or resting
	again            // the same, and to be queued afterwards
)

// NewAgenda returns an empty one. isLocked says on which shelf a campaign is queued.
func NewAgenda(isLocked func(firstcome.CampaignID) bool) *Agenda {
	a := &Agenda{locked: isLocked, state: map[firstcome.CampaignID]progress{}}
	for of := range a.signals {
		a.signals[of] = make(chan struct{}, 1)
	}
	return a
}

// Add puts a campaign on the agenda, if it is not there.
func (a *Agenda) Add(id firstcome.CampaignID) {
	a.mu.Lock()
	defer a.mu.Unlock()
	switch a.state[id] {
	case working:
		a.state[id] = again
	case queued, again:
	default:
		a.enqueue(id)
	}
}

// enqueue puts a campaign at the end of its shelf. mu is held.
func (a *Agenda) enqueue(id firstcome.CampaignID) {
	of := Free
	if a.locked(id) {
		of = Locked
	}
	a.state[id] = queued
	a.queues[of] = append(a.queues[of], id)
	tell(a.signals[of])
}

// Next returns a campaign of a shelf to work on, or false when ctx ends.
func (a *Agenda) Next(ctx context.Context, of Shelf) (firstcome.CampaignID, bool) {
	for ctx.Err() == nil {
		if id, ok := a.take(of); ok {
			return id, true
		}
		select {
		case <-a.signals[of]:
		case <-ctx.Done():
		}
	}
	return "", false
}

func (a *Agenda) take(of Shelf) (firstcome.CampaignID, bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.queues[of]) == 0 {
		return "", false
	}
	id := a.queues[of][0]
	a.queues[of] = a.queues[of][1:]
	a.state[id] = working
	if len(a.queues[of]) > 0 {
		tell(a.signals[of]) // for another worker
	}
	return id, true
}

// Done ends the work on a campaign. more tells that it is to be queued again.
func (a *Agenda) Done(id firstcome.CampaignID, more bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if more || a.state[id] == again {
		a.enqueue(id)
	} else {
		delete(a.state, id)
	}
}

// Rest ends the work on a campaign, and queues it again when it has rested.
func (a *Agenda) Rest(id firstcome.CampaignID, rest time.Duration) {
	time.AfterFunc(rest, func() {
		a.mu.Lock()
		defer a.mu.Unlock()
		a.enqueue(id)
	})
}
