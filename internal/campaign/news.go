package campaign

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/sqldb"
)

// A News wakes readers that wait for new facts.
type News struct {
	read *sqldb.Pool

	mu      sync.Mutex                                      // guards waiters
	waiters map[firstcome.CampaignID]map[chan struct{}]bool // the channels of waiting readers
}

// NewNews returns the news of the facts in a database.
func NewNews(d *sqldb.DB) *News {
	return &News{read: d.Read, waiters: map[firstcome.CampaignID]map[chan struct{}]bool{}}
}

// Wait implements ledger.Reads.NewFacts.
func (n *News) Wait(id firstcome.CampaignID) (told <-chan struct{}, forget func()) {
	c := make(chan struct{})
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.waiters[id] == nil {
		n.waiters[id] = map[chan struct{}]bool{}
	}
	n.waiters[id][c] = true
	return c, func() {
		n.mu.Lock()
		defer n.mu.Unlock()
		delete(n.waiters[id], c)
		if len(n.waiters[id]) == 0 {
			delete(n.waiters, id)
		}
	}
}

// announce wakes the readers that wait for facts of these campaigns.
func (n *News) announce(touched map[firstcome.CampaignID]bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if len(n.waiters) == 0 {
		return
	}
	for id := range touched {
		for c := range n.waiters[id] {
			close(c)
		}
		delete(n.waiters, id)
	}
}

const (
	// watchEvery is how often a node checks for another node's facts.
	watchEvery = 100 * time.Millisecond
	// watchTimeout bounds one read of the positions.
	watchTimeout = 5 * time.Second
	// watched bounds the campaigns of one query.
	watched = 500
)

// Watch wakes waiting readers when other nodes have added facts, until ctx ends. It queries the database only while a reader waits.
func (n *News) Watch(ctx context.Context) {
	tick := time.NewTicker(watchEvery)
	defer tick.Stop()
	known := map[firstcome.CampaignID]int64{}
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		ids := n.awaited()
		if len(ids) == 0 {
			clear(known)
			continue
		}
		n.announceMoved(ctx, ids, known)
	}
}

// awaited returns the campaigns for whose facts a reader waits.
func (n *News) awaited() []firstcome.CampaignID {
	n.mu.Lock()
	defer n.mu.Unlock()
	return slices.Collect(maps.Keys(n.waiters))
}

// announceMoved wakes the readers of campaigns whose position differs from the known position. It also wakes the readers of a campaign
// whose position was not known, because they may have read before the last facts were added. If a position cannot be read, the next
// tick reads it.
func (n *News) announceMoved(ctx context.Context, ids []firstcome.CampaignID, known map[firstcome.CampaignID]int64) {
	ctx, cancel := context.WithTimeout(ctx, watchTimeout)
	defer cancel()
	touched := map[firstcome.CampaignID]bool{}
	for part := range slices.Chunk(ids, watched) {
		args := make([]any, len(part))
		for n, id := range part {
			args[n] = id
		}
		rows, err := n.read.QueryContext(ctx, sqldb.Repeated(`SELECT id, position FROM campaigns WHERE id IN (%s)`, `?`, len(part)), args...)
		_ = sqldb.EachRow(rows, err, func(take sqldb.Scan) error {
			var id firstcome.CampaignID
			var position int64
			if err := take(&id, &position); err != nil {
				return err
			}
			if was, ok := known[id]; !ok || was != position {
				touched[id] = true
			}
			known[id] = position
			return nil
		})
	}
	n.announce(touched)
}
