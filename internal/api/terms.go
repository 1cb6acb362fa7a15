package api

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"sync"

	"golang.org/x/sync/singleflight"

	"github.com/firstcome/firstcome"
)

// Terms are what answers about a campaign say for one version of it.
type terms struct {
	firstcome.Terms
	benefit  []byte                   // compact JSON
	refusals [firstcome.Issued][]byte // bodies, by outcome
}

// A TermsCache keeps terms of versions that a gate or a coupon names: these never change. It
// is not asked for other versions: the gate may yet refuse what the ledger only proposes.
// When it is full it forgets everything, and then reads what is still asked for once, however many ask.
type TermsCache struct {
	read  func(context.Context, firstcome.CampaignID, int64) (firstcome.Terms, error)
	reads singleflight.Group

	mu   sync.RWMutex // guards what follows
	kept map[termsKey]*terms
	size int
}

type termsKey struct {
	campaign firstcome.CampaignID
	version  int64
}

const (
	// maxTermsSize bounds what is kept: 10,000 campaigns of ordinary size, or 500
	// with benefits as large as they may be.
	maxTermsSize = 16 << 20
	// termsOverhead is about what terms take besides their benefit.
	termsOverhead = 1500
)

// NewTermsCache returns a TermsCache that reads terms with read.
func NewTermsCache(read func(context.Context, firstcome.CampaignID, int64) (firstcome.Terms, error)) *TermsCache {
	return &TermsCache{read: read, kept: map[termsKey]*terms{}}
}

// Terms returns the terms of a campaign as of a version.
func (c *TermsCache) Terms(ctx context.Context, id firstcome.CampaignID, version int64) (firstcome.Terms, error) {
	t, err := c.get(ctx, id, version)
	if err != nil {
		return firstcome.Terms{}, err
	}
	return t.Terms, nil
}

// get returns the terms with their texts for answers.
func (c *TermsCache) get(ctx context.Context, id firstcome.CampaignID, version int64) (*terms, error) {
	key := termsKey{id, version}
	c.mu.RLock()
	t, ok := c.kept[key]
	c.mu.RUnlock()
	if ok {
		return t, nil
	}
	// The caller that reads does so for all that ask, even if it goes away.
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

// keep keeps terms that were read.
func (c *TermsCache) keep(key termsKey, t *terms) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.size += termsOverhead + len(t.benefit); c.size > maxTermsSize {
		clear(c.kept)
		c.size = termsOverhead + len(t.benefit)
	}
	c.kept[key] = t
}

// render returns terms with their texts for answers.
func render(read firstcome.Terms) *terms {
	t := &terms{Terms: read, benefit: []byte("null")}
	var compact bytes.Buffer
	if len(read.Benefit) > 0 && json.Compact(&compact, read.Benefit) == nil {
		t.benefit = compact.Bytes()
	}
	for o := range t.refusals {
		if o := firstcome.Outcome(o); o.Reason() != "" {
			t.refusals[o] = refusal(o, read)
		}
	}
	return t
}
