package redis

import (
	"context"
	"sync"

	"github.com/firstcome/firstcome"
)

// An agenda hands campaigns to workers: each to one at a time, in turn, and once
// more if something came while it was worked on.
type agenda struct {
	signal chan struct{} // has room for one: the queue may have something

	mu    sync.Mutex // guards what follows
	queue []firstcome.CampaignID
	state map[firstcome.CampaignID]place
}

// A place is where a campaign is on the agenda; none: nowhere.
type place uint8

const (
	queued place = iota + 1
	working
	again // worked on, and to be queued afterwards
)

func newAgenda() *agenda {
	return &agenda{signal: make(chan struct{}, 1), state: map[firstcome.CampaignID]place{}}
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

// enqueue puts a campaign at the end. mu is held.
func (a *agenda) enqueue(id firstcome.CampaignID) {
	a.state[id] = queued
	a.queue = append(a.queue, id)
	a.tell()
}

func (a *agenda) tell() {
	select {
	case a.signal <- struct{}{}:
	default:
	}
}

// next returns a campaign to work on, or false when ctx ends.
func (a *agenda) next(ctx context.Context) (firstcome.CampaignID, bool) {
	for ctx.Err() == nil {
		if id, ok := a.take(); ok {
			return id, true
		}
		select {
		case <-a.signal:
		case <-ctx.Done():
		}
	}
	return "", false
}

func (a *agenda) take() (firstcome.CampaignID, bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.queue) == 0 {
		return "", false
	}
	id := a.queue[0]
	a.queue = a.queue[1:]
	a.state[id] = working
	if len(a.queue) > 0 {
		a.tell() // for another worker
	}
	return id, true
}

// done ends the work on a campaign.
func (a *agenda) done(id firstcome.CampaignID) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.state[id] == again {
		a.enqueue(id)
	} else {
		delete(a.state, id)
	}
}
