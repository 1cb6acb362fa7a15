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
	// maxExisting limits how many existing campaigns a node caches. They take about 15 MB.
	maxExisting = 100_000
	// mostUnknown is how many unknown ids are looked up at once. They use a quarter of the connections that also read
	// claims and keys.
	mostUnknown = 2
	// unknownWait is how long a caller waits for the unclosed campaigns, and then for a lookup to begin. An idle ledger does
	// a thousand lookups in that time.
	unknownWait = time.Second
	// mostUnclosed is how many unclosed campaigns one read returns. It takes a few milliseconds of one connection.
	mostUnclosed = 10_000
	// unclosedEvery is the shortest time between two reads of the unclosed campaigns.
	unclosedEvery = time.Second
)

// existing caches which campaigns exist, because strangers may ask for made-up ids without limit. Missing campaigns are
// not cached, so a campaign that another node creates is found at once.
type existing struct {
	ledger Ledger
	met    *lru.Cache[firstcome.CampaignID, struct{}]
	reads  singleflight.Group        // by id; the empty key reads the unclosed campaigns
	room   chan struct{}             // one element per id being looked up
	read   atomic.Pointer[time.Time] // when the unclosed campaigns were last read, or nil if never
}

func newExisting(l Ledger) existing {
	met, err := lru.New[firstcome.CampaignID, struct{}](maxExisting)
	if err != nil {
		panic(err) // only for a size below 1
	}
	return existing{ledger: l, met: met, room: make(chan struct{}, mostUnknown)}
}

// errManyUnmet means that too many unknown ids are being looked up. Nothing was decided.
var errManyUnmet = fmt.Errorf("%w: too many campaign ids that this node does not know are being looked up", firstcome.ErrBusy)

// meetUnclosed reads the unclosed campaigns into the cache, at most once per unclosedEvery. All callers with an unknown id
// share one read. So callers of an unclosed campaign do not queue with a flood of made-up ids.
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
	case <-done: // after an error, the caller looks the id up
	case <-time.After(unknownWait):
	case <-ctx.Done():
	}
}

// meet returns firstcome.ErrNoCampaign if a campaign does not exist, and errManyUnmet if the node cannot find out now. For a
// caller with an API key it returns nil without a lookup.
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
		return nil, nil // after another error, the operation itself finds out
	})
	select {
	case r := <-done:
		return r.Err
	case <-ctx.Done():
		return ctx.Err()
	}
}
