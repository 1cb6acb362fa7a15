package record

import (
	"context"
	"sync"
	"time"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/wait"
)

// An agenda hands out campaigns to the workers of a Recorder, in turn. Only one worker has a campaign at a time, and it comes again if it was added
// while it was worked on. A campaign that rests comes again after its rest. Campaigns that failed have workers of their own: these may wait for a
// lock or for an open breaker, and the others do not wait with them. Make one with newAgenda.
type agenda struct {
	shelfOf func(firstcome.CampaignID) shelf
	signals [shelves]chan struct{} // by shelf, with a buffer of one: the queue may not be empty

	mu     sync.Mutex // guards what follows
	queues [shelves][]firstcome.CampaignID
	state  map[firstcome.CampaignID]progress
}

// A shelf is a part of an agenda, with its own queue and workers.
type shelf int

const (
	free    shelf = iota // campaigns that have not failed since they were last drained
	failing              // campaigns that have failed
	locked               // campaigns that failed because their row in the ledger was locked
	shelves
)

// A progress is a campaign's state on the agenda. The zero value means that it is not on it.
type progress uint8

const (
	queued  progress = iota + 1
	working          // a worker has it, or it rests
	again            // like working, and it must be queued afterwards
)

// newAgenda returns an empty agenda. shelfOf returns the shelf on which a campaign is queued.
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
	wait.Wake(a.signals[of])
}

// next returns the next campaign of a shelf, or false when ctx ends.
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
		wait.Wake(a.signals[of]) // for another worker
	}
	return id, true
}

// done ends the work on a campaign. If more is true, the campaign is queued again.
func (a *agenda) done(id firstcome.CampaignID, more bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if more || a.state[id] == again {
		a.enqueue(id)
	} else {
		delete(a.state, id)
	}
}

// rest ends the work on a campaign, and queues it again after a rest.
func (a *agenda) rest(id firstcome.CampaignID, rest time.Duration) {
	time.AfterFunc(rest, func() {
		a.mu.Lock()
		defer a.mu.Unlock()
		a.enqueue(id)
	})
}
