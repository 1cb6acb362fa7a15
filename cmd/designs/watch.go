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
	rival *rival

	mu    sync.Mutex // guards what follows
	rows  []designs.Row
	seen  map[int64]time.Duration // when, by id
	last  time.Time               // when the last new one was seen
	above int64                   // the highest id
}

const (
	// settled is how long nothing new may come before all is stored: there may be more than there should be.
	settled = time.Second
	// every is how often the watch looks. It costs each design the same.
	every = 20 * time.Millisecond
	// late is how far below the highest id a row may appear afterwards: ids are given before transactions commit.
	late = 1000
)

// run looks until ending is closed. An error of the database is no news: a fault may keep it away.
func (w *watch) run(ctx context.Context, start time.Time, ending <-chan struct{}) {
	ticks := time.NewTicker(every)
	defer ticks.Stop()
	for {
		select {
		case <-ticks.C:
			w.mu.Lock()
			from := w.above - late
			w.mu.Unlock()
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
	if w.seen == nil {
		w.seen = map[int64]time.Duration{}
	}
	for _, row := range rows {
		if _, ok := w.seen[row.ID]; ok {
			continue
		}
		w.last = time.Now()
		w.seen[row.ID], w.above = w.last.Sub(start), max(w.above, row.ID)
		w.rows = append(w.rows, row)
	}
	return nil
}

// rest waits until all is stored, and returns what is missing if that does not come.
func (w *watch) rest(ctx context.Context, people *crowd, t trial) (unfinished string) {
	began := time.Now()
	users, _ := people.users()
	want := min(t.quantity, int64(len(users)))
	for ctx.Err() == nil {
		w.mu.Lock()
		stored, idle := int64(len(w.rows)), time.Since(w.last)
		w.mu.Unlock()
		if stored >= want && idle > settled {
			return ""
		}
		if idle > settled { // some may come late, far below the highest id
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
