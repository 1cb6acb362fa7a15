package ledger

import (
	"context"
	"database/sql"
	"errors"
	"sync"

	"github.com/firstcome/firstcome"
)

// An existing remembers which campaigns this node has seen. It does not remember missing ones, so a
// campaign that another node makes is there at once. The zero value is empty.
type existing struct {
	mu   sync.RWMutex // guards what follows
	seen map[firstcome.CampaignID]struct{}
}

// maxExisting bounds what is remembered: some 10 MB. What is forgotten is seen again.
const maxExisting = 100_000

func (e *existing) has(id firstcome.CampaignID) bool {
	e.mu.RLock()
	defer e.mu.RUnlock()
	_, ok := e.seen[id]
	return ok
}

func (e *existing) add(id firstcome.CampaignID) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.seen == nil || len(e.seen) >= maxExisting {
		e.seen = map[firstcome.CampaignID]struct{}{}
	}
	e.seen[id] = struct{}{}
}

func (e *existing) remove(id firstcome.CampaignID) {
	e.mu.Lock()
	defer e.mu.Unlock()
	delete(e.seen, id)
}

// isMadeUp tells whether there is certainly no such campaign. Anybody can ask for one, so on a server a plain
// read finds out, apart from the connections that decide. What it cannot tell, a transaction will.
func (l *Ledger) isMadeUp(ctx context.Context, id firstcome.CampaignID) bool {
	if !l.dialect.shared || l.existing.has(id) {
		return false
	}
	var found int
	err := l.conclude.QueryRowContext(ctx, `SELECT 1 FROM campaigns WHERE id = ?`, id).Scan(&found)
	if err == nil {
		l.existing.add(id)
	}
	return errors.Is(err, sql.ErrNoRows)
}
