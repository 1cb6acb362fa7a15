package ledger

import (
	"context"
	"slices"
	"time"

	"github.com/firstcome/firstcome"
)

const (
	// followEvery is how late somebody who waits for facts may hear of another node's.
	followEvery = 100 * time.Millisecond
	// followTimeout bounds one look at the positions.
	followTimeout = 5 * time.Second
	// followed bounds the campaigns of one look.
	followed = 500
)

// follow tells whoever waits for facts of those that other nodes made, until ctx ends.
// It asks the database only while somebody waits.
func (l *Ledger) follow(ctx context.Context) error {
	tick := time.NewTicker(followEvery)
	defer tick.Stop()
	known := map[firstcome.CampaignID]int64{}
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		ids := l.awaited()
		if len(ids) == 0 {
			clear(known)
			continue
		}
		l.look(ctx, ids, known)
	}
}

// awaited returns the campaigns whose facts somebody waits for.
func (l *Ledger) awaited() []firstcome.CampaignID {
	l.mu.Lock()
	defer l.mu.Unlock()
	ids := make([]firstcome.CampaignID, 0, len(l.waiters))
	for id := range l.waiters {
		ids = append(ids, id)
	}
	return ids
}

// look announces the campaigns whose position is not the known one. One that was
// not known is announced too: who waits may have read before its last facts. What cannot be
// read now is read at the next look.
func (l *Ledger) look(ctx context.Context, ids []firstcome.CampaignID, known map[firstcome.CampaignID]int64) {
	ctx, cancel := context.WithTimeout(ctx, followTimeout)
	defer cancel()
	touched := map[firstcome.CampaignID]bool{}
	for part := range slices.Chunk(ids, followed) {
		args := make([]any, len(part))
		for n, id := range part {
			args[n] = id
		}
		rows, err := l.read.QueryContext(ctx, repeated(`SELECT id, position FROM campaigns WHERE id IN (%s)`, `?`, len(part)), args...)
		if err != nil {
			return
		}
		for rows.Next() {
			var id firstcome.CampaignID
			var position int64
			if rows.Scan(&id, &position) != nil {
				break
			}
			if was, ok := known[id]; !ok || was != position {
				touched[id] = true
			}
			known[id] = position
		}
		_ = rows.Close()
	}
	l.announce(touched)
}
