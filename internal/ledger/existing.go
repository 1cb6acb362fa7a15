package ledger

import (
	"context"
	"database/sql"
	"errors"
	"sync"

	"github.com/firstcome/firstcome"
)

// An existing is which campaigns there are, as far as this node has seen any. Nothing is remembered of
// what there is not, so that one that another node made is there at once. The zero value is empty.
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

// isMadeUp tells whether it is certain that there is no such campaign. On a server anybody can ask for one:
// that is told by a plain read, beside the connections that decide. What that cannot tell a transaction will.
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
