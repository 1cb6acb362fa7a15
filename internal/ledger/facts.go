package ledger

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"sync"
	"time"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/sqldb"
)

// Facts calls each for the facts of a campaign with positions above after, in order. It stops after limit facts, or when each returns
// an error. If the ledger lacks the coupon of a fact, which is a breach, the fact only has the coupon's number.
func (rd *Reads) Facts(ctx context.Context, id firstcome.CampaignID, after int64, limit int, each func(firstcome.Fact) error) error {
	err := rd.db.Read.AtOnce(ctx, func(s *sqldb.Snapshot) error { return facts(ctx, s, id, after, limit, each) })
	return sqldb.Wrap(err, "read the facts of %s", id)
}

// A run is a sequence of count facts of one kind. Their positions are consecutive and begin with position. The numbers of their coupons
// are consecutive and begin with number.
type run struct {
	position, count, number int64
	kind                    firstcome.FactKind
}

// possible reports whether the run's positions and numbers are in range.
func (r run) possible() bool {
	return min(r.position, r.count, r.number) >= 1 && max(r.position, r.number) <= math.MaxInt64-r.count
}

// openRun returns the run of the facts without a row: those after the last position of the runs in the ledger, up to the campaign's
// position. They are the latest issues, up to the last number. So issuing a coupon writes no run.
func openRun(last, position, lastNumber int64) run {
	count := position - last
	return run{last + 1, count, lastNumber - count + 1, firstcome.CouponIssued}
}

func facts(ctx context.Context, snapshot *sqldb.Snapshot, id firstcome.CampaignID, after int64, limit int, each func(firstcome.Fact) error) error {
	after = max(after, 0)
	for limit > 0 && after < math.MaxInt64 { // no position follows the largest one
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
func runAt(ctx context.Context, snapshot *sqldb.Snapshot, id firstcome.CampaignID, position int64) (run, error) {
	var r run
	err := snapshot.QueryRowContext(ctx, `SELECT position, count, kind, number FROM facts
		WHERE campaign_id = ? AND position <= ? ORDER BY position DESC LIMIT 1`, id, position).Scan(&r.position, &r.count, &r.kind, &r.number)
	if err != nil && !errors.Is(err, sql.ErrNoRows) {
		return run{}, err
	}
	if err == nil && !r.possible() {
		return run{}, fmt.Errorf("the run of facts at position %d is out of range", r.position)
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

// tell calls each for every fact of the run, until ctx ends. rows has the coupons of the run's numbers. If a coupon is missing there,
// its fact only has the number.
func (r run) tell(ctx context.Context, id firstcome.CampaignID, rows *sql.Rows, failed error, each func(firstcome.Fact) error) error {
	told := int64(0)
	until := func(number int64) error { // the numbers from here to the one before number have no coupon
		for ; r.number+told < number; told++ {
			if err := ctx.Err(); err != nil { // this loop reads no row, which would report it
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

// addIssued writes the facts that count coupons were issued. Their positions begin with position, and their numbers with number.
func addIssued(t *sqldb.Tx, id firstcome.CampaignID, position, count, number int64) error {
	hasFacts(t, id)
	return addFacts(t, id, run{position, count, number, firstcome.CouponIssued})
}

func addFacts(t *sqldb.Tx, id firstcome.CampaignID, r run) error {
	_, err := t.Change(`INSERT INTO facts (campaign_id, position, count, kind, number) VALUES (?, ?, ?, ?, ?)`,
		string(id), r.position, r.count, string(r.kind), r.number)
	return err
}

// A news wakes readers that wait for new facts.
type news struct {
	read *sqldb.Pool

	mu      sync.Mutex                                      // guards waiters
	waiters map[firstcome.CampaignID]map[chan struct{}]bool // the channels of waiting readers
}

// NewFacts returns a channel that is closed when the campaign has new facts. A reader that may have to wait
// takes the channel first, and then reads the facts. The reader must call forget when the wait is over.
func (rd *Reads) NewFacts(id firstcome.CampaignID) (news <-chan struct{}, forget func()) {
	return rd.news.wait(id)
}

// wait implements Reads.NewFacts.
func (n *news) wait(id firstcome.CampaignID) (told <-chan struct{}, forget func()) {
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
func (n *news) announce(touched map[firstcome.CampaignID]bool) {
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

// watch wakes waiting readers when other nodes have added facts, until ctx ends. It queries the database only while a reader waits.
func (n *news) watch(ctx context.Context) error {
	tick := time.NewTicker(watchEvery)
	defer tick.Stop()
	known := map[firstcome.CampaignID]int64{}
	for {
		select {
		case <-ctx.Done():
			return nil
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
func (n *news) awaited() []firstcome.CampaignID {
	n.mu.Lock()
	defer n.mu.Unlock()
	return slices.Collect(maps.Keys(n.waiters))
}

// announceMoved wakes the readers of campaigns whose position differs from the known position. It also wakes the readers of a campaign
// whose position was not known, because they may have read before the last facts were added. If a position cannot be read, the next
// tick reads it.
func (n *news) announceMoved(ctx context.Context, ids []firstcome.CampaignID, known map[firstcome.CampaignID]int64) {
	ctx, cancel := context.WithTimeout(ctx, watchTimeout)
	defer cancel()
	touched := map[firstcome.CampaignID]bool{}
	for part := range slices.Chunk(ids, watched) {
		args := make([]any, len(part))
		for n, id := range part {
			args[n] = id
		}
		rows, err := n.read.QueryContext(ctx, repeated(`SELECT id, position FROM campaigns WHERE id IN (%s)`, `?`, len(part)), args...)
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
