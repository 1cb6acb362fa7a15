package ledger

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"time"

	"github.com/firstcome/firstcome"
)

// Facts calls each with at most limit facts of a campaign with positions above
// after, in their order, until it returns an error. If the ledger has lost the
// coupon of a fact, which is a breach, the fact has its number only.
func (l *Ledger) Facts(ctx context.Context, id firstcome.CampaignID, after int64, limit int, each func(firstcome.Fact) error) error {
	err := l.read.atOnce(ctx, func(s *snapshot) error { return facts(ctx, s, id, after, limit, each) })
	return wrap(err, "read the facts of %s", id)
}

// A run is count facts of one kind from position on about the numbers from number on.
type run struct {
	position, count, number int64
	kind                    firstcome.FactKind
}

// possible tells whether its positions and numbers are ones.
func (r run) possible() bool {
	return min(r.position, r.count, r.number) >= 1 && max(r.position, r.number) <= math.MaxInt64-r.count
}

// openRun returns the run behind the last position that a run in the ledger holds,
// up to the campaign's position. Its facts are the latest issues, up to the last
// number, so that issuing need not write it.
func openRun(last, position, lastNumber int64) run {
	count := position - last
	return run{last + 1, count, lastNumber - count + 1, firstcome.CouponIssued}
}

func facts(ctx context.Context, snapshot *snapshot, id firstcome.CampaignID, after int64, limit int, each func(firstcome.Fact) error) error {
	after = max(after, 0)
	for limit > 0 && after < math.MaxInt64 { // the largest position has none behind it
		r, err := runAt(ctx, snapshot, id, after+1)
		if errors.Is(err, sql.ErrNoRows) {
			return nil
		}
		if err != nil {
			return err
		}
		skip := after + 1 - r.position
		want := run{after + 1, min(r.count-skip, int64(limit)), r.number + skip, r.kind}
		rows, err := snapshot.QueryContext(ctx, `SELECT `+couponColumns+` FROM coupons
			WHERE campaign_id = ? AND number >= ? AND number < ? ORDER BY number`, id, want.number, want.number+want.count)
		if err = want.tell(ctx, id, rows, err, each); err != nil {
			return err
		}
		after, limit = after+want.count, limit-int(want.count)
	}
	return nil
}

// runAt returns the run that holds a position, or sql.ErrNoRows.
func runAt(ctx context.Context, snapshot *snapshot, id firstcome.CampaignID, position int64) (run, error) {
	var r run
	err := snapshot.QueryRowContext(ctx, `SELECT position, count, kind, number FROM facts
		WHERE campaign_id = ? AND position <= ? ORDER BY position DESC LIMIT 1`, id, position).Scan(&r.position, &r.count, &r.kind, &r.number)
	if err != nil && !errors.Is(err, sql.ErrNoRows) {
		return run{}, err
	}
	if err == nil && !r.possible() {
		return run{}, fmt.Errorf("the run of facts at position %d cannot be", r.position)
	}
	if err == nil && position < r.position+r.count {
		return r, nil
	}
	last := int64(0)
	if err == nil {
		last = r.position + r.count - 1
	}
	var top, lastNumber int64
	err = snapshot.QueryRowContext(ctx, `SELECT position, last_number FROM campaigns WHERE id = ?`, id).Scan(&top, &lastNumber)
	if err == nil && position > top {
		err = sql.ErrNoRows
	}
	return openRun(last, top, lastNumber), err
}

// tell calls each with every fact of the run, until ctx ends. rows are the coupons of its
// numbers; of one that is not among them the fact has the number only.
func (r run) tell(ctx context.Context, id firstcome.CampaignID, rows *sql.Rows, failed error, each func(firstcome.Fact) error) error {
	told := int64(0)
	until := func(number int64) error { // the numbers before it have no coupon
		for ; r.number+told < number; told++ {
			if err := ctx.Err(); err != nil { // which no row says
				return err
			}
			gone := firstcome.Coupon{Campaign: id, Number: r.number + told}
			if err := each(firstcome.Fact{Position: r.position + told, Kind: r.kind, Coupon: gone}); err != nil {
				return err
			}
		}
		return nil
	}
	err := scanCoupons(rows, failed, func(c firstcome.Coupon) error {
		if err := until(c.Number); err != nil {
			return err
		}
		told++
		return each(firstcome.Fact{Position: r.position + told - 1, Kind: r.kind, Coupon: c})
	})
	if err != nil {
		return err
	}
	return until(r.number + r.count)
}

func (t *tx) addFacts(id firstcome.CampaignID, r run) error {
	_, err := t.change(`INSERT INTO facts (campaign_id, position, count, kind, number) VALUES (?, ?, ?, ?, ?)`,
		string(id), r.position, r.count, string(r.kind), r.number)
	return err
}

// NewFacts returns a channel that is closed when the campaign has new facts.
// A reader who may have to wait asks for the channel first, then reads the facts.
// forget must be called when the wait is over.
func (l *Ledger) NewFacts(id firstcome.CampaignID) (news <-chan struct{}, forget func()) {
	c := make(chan struct{})
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.waiters[id] == nil {
		l.waiters[id] = map[chan struct{}]bool{}
	}
	l.waiters[id][c] = true
	return c, func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		delete(l.waiters[id], c)
		if len(l.waiters[id]) == 0 {
			delete(l.waiters, id)
		}
	}
}

// announce wakes those who wait for facts of the campaigns.
func (l *Ledger) announce(touched map[firstcome.CampaignID]bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.waiters) == 0 {
		return
	}
	for id := range touched {
		for c := range l.waiters[id] {
			close(c)
		}
		delete(l.waiters, id)
	}
}

const (
	// watchEvery is how late a waiter may hear of another node's facts.
	watchEvery = 100 * time.Millisecond
	// watchTimeout bounds one look at the positions.
	watchTimeout = 5 * time.Second
	// watched bounds the campaigns of one look.
	watched = 500
)

// watchFacts wakes those who wait for facts when other nodes made some, until ctx ends.
// It asks the database only while somebody waits.
func (l *Ledger) watchFacts(ctx context.Context) error {
	tick := time.NewTicker(watchEvery)
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
		l.announceMoved(ctx, ids, known)
	}
}

// awaited returns the campaigns whose facts somebody waits for.
func (l *Ledger) awaited() []firstcome.CampaignID {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Collect(maps.Keys(l.waiters))
}

// announceMoved announces the campaigns whose position is not the known one. One that was
// not known is announced too: a waiter may have read before its last facts. What cannot be
// read now is read at the next look.
func (l *Ledger) announceMoved(ctx context.Context, ids []firstcome.CampaignID, known map[firstcome.CampaignID]int64) {
	ctx, cancel := context.WithTimeout(ctx, watchTimeout)
	defer cancel()
	touched := map[firstcome.CampaignID]bool{}
	for part := range slices.Chunk(ids, watched) {
		args := make([]any, len(part))
		for n, id := range part {
			args[n] = id
		}
		rows, err := l.read.QueryContext(ctx, repeated(`SELECT id, position FROM campaigns WHERE id IN (%s)`, `?`, len(part)), args...)
		_ = eachRow(rows, err, func(take scan) error {
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
	l.announce(touched)
}
