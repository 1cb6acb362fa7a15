package api

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"sync"

	"golang.org/x/sync/singleflight"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/wire"
)

// terms has one version of a campaign's terms, and the parts of answers rendered from it.
type terms struct {
	firstcome.Terms
	prizes   []renderedPrize
	imported bool                     // codes were made by another system
	refusals [firstcome.Issued][]byte // bodies, by outcome
}

// A renderedPrize is what a coupon is good for, as compact JSON.
type renderedPrize struct{ prize, benefit []byte }

// prizeOf returns what a coupon of a rank is good for.
func (t *terms) prizeOf(rank int64) renderedPrize { return t.prizes[max(0, t.PrizeOf(rank))] }

// A TermsCache caches terms by version. Callers must ask only for versions that a gate or a coupon names. Those never change.
// A gate may still refuse a version that only the ledger has. When the cache is full, it drops everything. Concurrent callers
// for a version share one read.
type TermsCache struct {
	read  func(context.Context, firstcome.CampaignID, int64) (firstcome.Terms, error)
	reads singleflight.Group

	mu   sync.RWMutex // guards the fields below
	kept map[termsKey]*terms
	size int
}

type termsKey struct {
	campaign firstcome.CampaignID
	version  int64
}

const (
	// maxTermsSize limits the cache, in bytes: about 10,000 ordinary versions, or 500 with the largest benefits.
	maxTermsSize = 16 << 20
	// termsOverhead is about how many bytes a version takes in addition to its prizes.
	termsOverhead = 1500
)

// NewTermsCache returns a TermsCache that reads terms with read.
func NewTermsCache(read func(context.Context, firstcome.CampaignID, int64) (firstcome.Terms, error)) *TermsCache {
	return &TermsCache{read: read, kept: map[termsKey]*terms{}}
}

// Terms returns a version of a campaign's terms.
func (c *TermsCache) Terms(ctx context.Context, id firstcome.CampaignID, version int64) (firstcome.Terms, error) {
	t, err := c.get(ctx, id, version)
	if err != nil {
		return firstcome.Terms{}, err
	}
	return t.Terms, nil
}

// get returns a version of a campaign's terms, cached or read.
func (c *TermsCache) get(ctx context.Context, id firstcome.CampaignID, version int64) (*terms, error) {
	key := termsKey{id, version}
	c.mu.RLock()
	t, ok := c.kept[key]
	c.mu.RUnlock()
	if ok {
		return t, nil
	}
	// The read continues for other callers if this caller's context ends.
	done := c.reads.DoChan(fmt.Sprintf("%s %d", id, version), func() (any, error) {
		ctx, over := context.WithTimeout(context.WithoutCancel(ctx), readWait)
		defer over()
		read, err := c.read(ctx, id, version)
		if err != nil {
			return nil, err
		}
		t := render(read)
		c.keep(key, t)
		return t, nil
	})
	select {
	case r := <-done:
		t, _ := r.Val.(*terms)
		return t, r.Err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// keep adds terms to the cache.
func (c *TermsCache) keep(key termsKey, t *terms) {
	c.mu.Lock()
	defer c.mu.Unlock()
	size := termsOverhead
	for _, p := range t.prizes {
		size += len(p.prize) + len(p.benefit)
	}
	if c.size += size; c.size > maxTermsSize {
		clear(c.kept)
		c.size = size
	}
	c.kept[key] = t
}

// compact returns a benefit as compact JSON, or null if there is none.
func compact(benefit json.RawMessage) []byte {
	var b bytes.Buffer
	if len(benefit) == 0 || json.Compact(&b, benefit) != nil {
		return []byte("null")
	}
	return b.Bytes()
}

// render renders the parts of answers that depend only on the terms.
func render(read firstcome.Terms) *terms {
	t := &terms{Terms: read, imported: read.HasImported()}
	for n := range read.Prizes {
		from, _ := read.Ranks(n)
		prize, err := json.Marshal(wire.PrizeOf(&read, from))
		if err != nil {
			panic(err) // strings
		}
		t.prizes = append(t.prizes, renderedPrize{prize, compact(read.Prizes[n].Benefit)})
	}
	if len(read.Prizes) == 0 {
		t.prizes = []renderedPrize{{[]byte("null"), compact(read.Benefit)}}
	}
	for o := range t.refusals {
		if o := firstcome.Outcome(o); o.Reason() != "" {
			t.refusals[o] = refusal(o, read)
		}
	}
	return t
}
