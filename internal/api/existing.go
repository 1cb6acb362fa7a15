package api

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"golang.org/x/sync/singleflight"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/auth"
)

const (
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

// existing checks that a campaign exists before the node does anything for a caller without an API key, because strangers may ask for made-up
// ids without limit.
type existing struct {
	ledger Ledger
	reads  singleflight.Group        // by id; the empty key reads the unclosed campaigns
	room   chan struct{}             // one element per id being looked up
	read   atomic.Pointer[time.Time] // when the unclosed campaigns were last read, or nil if never
}

// errManyUnmet means that too many unknown ids are being looked up. Nothing was decided.
var errManyUnmet = fmt.Errorf("%w: too many campaign ids that this node does not know are being looked up", firstcome.ErrBusy)

// meetUnclosed reads the unclosed campaigns, so that the ledger knows that they exist, at most once per unclosedEvery. All callers with an unknown id
// share one read. So callers of an unclosed campaign do not queue with a flood of made-up ids.
func (e *existing) meetUnclosed(ctx context.Context) {
	if last := e.read.Load(); last != nil && time.Since(*last) < unclosedEvery {
		return
	}
	done := e.reads.DoChan("", func() (any, error) {
		ctx, over := context.WithTimeout(context.WithoutCancel(ctx), readWait)
		defer over()
		_, _, err := e.ledger.Unclosed(ctx, mostUnclosed)
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
	if c.Role != "" || e.ledger.Knows(id) {
		return nil
	}
	if e.meetUnclosed(ctx); e.ledger.Knows(id) {
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
		if err := e.ledger.Exists(ctx, id); errors.Is(err, firstcome.ErrNoCampaign) {
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
