package flow

import (
	"context"
	"sync"
	"time"

	"github.com/firstcome/firstcome"
)

// An agenda hands campaigns to the workers of a Recorder: each to one at a time, in turn, and once
// more if something came while it was worked on. One that rests is handed out when it has rested. Those that failed have workers
// of their own, so that waiting for a lock, or for a breaker that is open, keeps nobody from the others. Make one with newAgenda.
type agenda struct {
	shelfOf func(firstcome.CampaignID) shelf
	signals [shelves]chan struct{} // each has room for one: the shelf's queue may have something

	mu     sync.Mutex // guards what follows
	queues [shelves][]firstcome.CampaignID
	state  map[firstcome.CampaignID]progress
}

// A shelf is a part of an agenda. Each has a queue and workers of its own.
type shelf int

const (
	free    shelf = iota // campaigns that did not fail since they were drained last
	failing              // those that did
	locked               // those whose rows in the ledger were locked then
	shelves
)

// A progress is what is done with a campaign on the agenda; none: it is not there.
type progress uint8

const (
	queued  progress = iota + 1
	working          // or resting
	again            // the same, and to be queued afterwards
)

// newAgenda returns an empty one. shelfOf says on which shelf a campaign is queued.
func newAgenda(shelfOf func(firstcome.CampaignID) shelf) *agenda {
	a := &agenda{shelfOf: shelfOf, state: map[firstcome.CampaignID]progress{}}
	for of := range a.signals {
		a.signals[of] = make(chan struct{}, 1)
	}
	return a
}

// add puts a campaign on the agenda, if it is not there.
func (a *agenda) add(id firstcome.CampaignID) {
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
func (a *agenda) enqueue(id firstcome.CampaignID) {
	of := a.shelfOf(id)
	a.state[id] = queued
	a.queues[of] = append(a.queues[of], id)
	tell(a.signals[of])
}

// next returns a campaign of a shelf to work on, or false when ctx ends.
func (a *agenda) next(ctx context.Context, of shelf) (firstcome.CampaignID, bool) {
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

func (a *agenda) take(of shelf) (firstcome.CampaignID, bool) {
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

// done ends the work on a campaign. more tells that it is to be queued again.
func (a *agenda) done(id firstcome.CampaignID, more bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if more || a.state[id] == again {
		a.enqueue(id)
	} else {
		delete(a.state, id)
	}
}

// rest ends the work on a campaign, and queues it again when it has rested.
func (a *agenda) rest(id firstcome.CampaignID, rest time.Duration) {
	time.AfterFunc(rest, func() {
		a.mu.Lock()
		defer a.mu.Unlock()
		a.enqueue(id)
	})
}
