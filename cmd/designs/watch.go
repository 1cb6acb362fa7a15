package main

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/firstcome/firstcome/designs"
	"github.com/firstcome/firstcome/designs/verdict"
)

// A watch polls the database for new rows.
type watch struct {
	rival   *rival
	nearly  int           // number of rows at which reached is closed
	reached chan struct{} // closed when all but few coupons are stored

	mu    sync.Mutex // guards the fields below
	rows  []designs.Row
	seen  map[int64]time.Duration // when each row was first seen, by id
	last  time.Time               // when the last new row was seen
	above int64                   // the highest id
}

const (
	// settled is how long no new row may come before all is stored. Even when all expected rows are there, a wrong design may store more.
	settled = time.Second
	// every is the time between two polls.
	every = 20 * time.Millisecond
	// late is how far below the highest id a row may appear later: ids are assigned before transactions commit, thousands of ids in one. Each
	// lateEvery-th poll begins so far below.
	late, lateEvery = 10_000, 10
)

// few is how many coupons are left when a fault with last comes.
const few = 10

func newWatch(on *rival, quantity int64) *watch {
	return &watch{rival: on, nearly: int(quantity - few), reached: make(chan struct{}), seen: map[int64]time.Duration{}}
}

// run polls until ending is closed. It ignores errors of the database, because a fault may make the database unreachable.
func (w *watch) run(ctx context.Context, start time.Time, ending <-chan struct{}) {
	ticks := time.NewTicker(every)
	defer ticks.Stop()
	for looks := 1; ; looks++ {
		select {
		case <-ticks.C:
			w.mu.Lock()
			from := w.above
			w.mu.Unlock()
			if looks%lateEvery == 0 {
				from -= late
			}
			_ = w.look(ctx, start, from)
		case <-ending:
			return
		}
	}
}

// look reads the rows above an id.
func (w *watch) look(ctx context.Context, start time.Time, above int64) error {
	rows, err := w.rival.rows(ctx, above)
	if err != nil {
		return fmt.Errorf("read the rows: %w", err)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, row := range rows {
		if _, ok := w.seen[row.ID]; ok {
			continue
		}
		w.last = time.Now()
		w.seen[row.ID], w.above = w.last.Sub(start), max(w.above, row.ID)
		if w.rows = append(w.rows, row); len(w.rows) == w.nearly {
			close(w.reached)
		}
	}
	return nil
}

// rest waits until all coupons are stored. If the wait ends before, it returns why the run is unfinished.
func (w *watch) rest(ctx context.Context, people *crowd, t trial) (unfinished string) {
	began := time.Now()
	users, _ := people.users()
	refused := 0
	for _, u := range users {
		if u.Told == verdict.Refused {
			refused++
		}
	}
	want := min(t.quantity, int64(len(users)-refused))
	whole := began
	for ctx.Err() == nil {
		w.mu.Lock()
		stored, idle := int64(len(w.rows)), time.Since(w.last)
		w.mu.Unlock()
		if stored >= want && idle > settled {
			return ""
		}
		if idle > settled && time.Since(whole) > settled { // rows may come late, far below the highest id
			whole = time.Now()
			_ = w.look(ctx, people.start, 0)
		}
		if past := time.Since(began); past > t.rest || past > quiet && idle > quiet {
			return fmt.Sprintf("%d of %d stored", stored, want)
		}
		wait(ctx, 10*every)
	}
	return "interrupted"
}

// inOrder returns the rows in the order of their ids.
func (w *watch) inOrder() (rows []verdict.Row) {
	slices.SortFunc(w.rows, func(a, b designs.Row) int { return cmp.Compare(a.ID, b.ID) })
	for _, row := range w.rows {
		rows = append(rows, verdict.Row{User: row.User, Stored: w.seen[row.ID]})
	}
	return rows
}
