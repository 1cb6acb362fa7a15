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

// A watch sees rows come into the database.
type watch struct {
	rival   *rival
	nearly  int           // reached is closed when there are so many rows
	reached chan struct{} // all but few coupons are stored

	mu    sync.Mutex // guards what follows
	rows  []designs.Row
	seen  map[int64]time.Duration // when, by id
	last  time.Time               // when the last new one was seen
	above int64                   // the highest id
}

const (
	// settled is how long nothing new may come before all is stored: there may be more than there should be.
	settled = time.Second
	// every is how often the watch looks.
	every = 20 * time.Millisecond
	// late is how far below the highest id a row may appear afterwards: ids are given before transactions commit, thousands in one. Each
	// lateEvery-th look begins there.
	late, lateEvery = 10_000, 10
)

// few coupons are left when a fault comes late.
const few = 10

func newWatch(on *rival, quantity int64) *watch {
	return &watch{rival: on, nearly: int(quantity - few), reached: make(chan struct{}), seen: map[int64]time.Duration{}}
}

// run looks until ending is closed. An error of the database is no news: a fault may keep it away.
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

// look takes the rows above an id.
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

// rest waits until all is stored, and returns what is missing if that does not come.
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
		if idle > settled && time.Since(whole) > settled { // some may come late, far below the highest id
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
