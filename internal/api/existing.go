package api

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"
	"golang.org/x/sync/singleflight"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/auth"
)

const (
	// maxExisting bounds how many existing campaigns a node remembers: some 15 MB.
	maxExisting = 100_000
	// mostUnknown is how many ids that the node has not met are looked up at once: a quarter of the connections that claims and keys
	// are read by.
	mostUnknown = 2
	// unknownWait is how long a caller waits for one of these: on an idle ledger a thousand ids are looked up in that time.
	unknownWait = time.Second
	// mostUnclosed is how many of the campaigns that are not closed are read at once: a few milliseconds of one connection.
	mostUnclosed = 10_000
	// unclosedEvery is how often they are read at most, while ids are asked for that the node has not met.
	unclosedEvery = time.Second
)

// existing are the campaigns that there are, as far as the node has met them. Anybody can ask for an id that does not exist, as
// often as they like. A missing campaign is not remembered, so one that another node makes is found at once.
type existing struct {
	ledger Ledger
	met    *lru.Cache[firstcome.CampaignID, struct{}]
	reads  singleflight.Group        // by id; empty: of the campaigns that are not closed
	room   chan struct{}             // holds one for each id that is being looked up
	read   atomic.Pointer[time.Time] // when those that are not closed were read last; nil: never
}

func newExisting(l Ledger) existing {
	met, err := lru.New[firstcome.CampaignID, struct{}](maxExisting)
	if err != nil {
		panic(err) // of a size below 1 only
	}
	return existing{ledger: l, met: met, room: make(chan struct{}, mostUnknown)}
}

// errManyUnmet turns a caller away before anything is decided.
var errManyUnmet = fmt.Errorf("%w: too many campaigns that this node has not met are asked for at this moment", firstcome.ErrBusy)

// meetUnclosed meets the campaigns that are not closed, unless it just did: all callers who ask for an id that the node has not met share
// one read, and so those who ask for one of these do not wait with a flood of made-up ids.
func (e *existing) meetUnclosed(ctx context.Context) {
	if last := e.read.Load(); last != nil && time.Since(*last) < unclosedEvery {
		return
	}
	done := e.reads.DoChan("", func() (any, error) {
		ctx, over := context.WithTimeout(context.WithoutCancel(ctx), readWait)
		defer over()
		all, _, err := e.ledger.Unclosed(ctx, mostUnclosed)
		for _, c := range all {
			e.met.Add(c.ID, struct{}{})
		}
		now := time.Now()
		e.read.Store(&now)
		return nil, err
	})
	select {
	case <-done: // if the ledger did not say, the id itself is looked up
	case <-time.After(unknownWait):
	case <-ctx.Done():
	}
}

// meet returns nil if a caller may ask for a campaign. firstcome.ErrNoCampaign means that there is none. An API key's holder is trusted.
func (e *existing) meet(ctx context.Context, c auth.Caller, id firstcome.CampaignID) error {
	if c.Role != "" || e.met.Contains(id) {
		return nil
	}
	if e.meetUnclosed(ctx); e.met.Contains(id) {
		return nil
	}
	done := e.reads.DoChan(string(id), func() (any, error) {
		select {
		case e.room <- struct{}{}:
			defer func() { <-e.room }()
		case <-time.After(unknownWait):
			return nil, errManyUnmet
		}
		ctx, over := context.WithTimeout(context.WithoutCancel(ctx), readWait)
		defer over()
		_, err := e.ledger.Campaign(ctx, id)
		switch {
		case err == nil:
			e.met.Add(id, struct{}{})
		case errors.Is(err, firstcome.ErrNoCampaign):
			return nil, err
		}
		return nil, nil // if the ledger did not say, the call itself finds out
	})
	select {
	case r := <-done:
		return r.Err
	case <-ctx.Done():
		return ctx.Err()
	}
}
