package sqldb

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"sync"

	"modernc.org/sqlite"
)

// checkpointAt is how many pages the write-ahead log takes before its content is copied to the database. A
// long log has many versions of a page, and only the last one is copied. So a longer log makes less work,
// above all with many campaigns.
const checkpointAt = 4096

// logBytes is the size of the log's file: a header, and pages with a header each, with room for the pages
// that are written while a checkpoint runs. 18 MiB.
const logBytes = 32 + (checkpointAt+checkpointAt/8)*(24+4096)

// A checkpointer copies the write-ahead log to the database while the writer goes on, so that no claim waits
// for the copy. SQLite writes from the log's start again only when all of the log was copied. So the writer
// itself copies the little that it wrote while the checkpointer ran.
type checkpointer struct {
	db    *sql.DB
	begin chan struct{} // has room for one
	ended chan struct{} // has room for one
}

// startCheckpoints starts the writer's checkpointer, and the looks at its files. stop ends both.
func (w *writer) startCheckpoints() (stop func()) {
	w.checkpoints = checkpointer{w.db.checkpoints, make(chan struct{}, 1), make(chan struct{}, 1)}
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { w.checkpoints.run(ctx) })
	if w.db.files != nil {
		running.Go(func() { w.db.files.run(ctx) })
	}
	return func() {
		cancel()
		running.Wait()
	}
}

// run copies the log each time begin says so, until ctx ends.
func (c *checkpointer) run(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-c.begin:
			// A copy that fails, for want of space say, is tried again after the next pages. The writer
			// reports a bad disk by itself.
			_, _ = c.db.ExecContext(ctx, `PRAGMA wal_checkpoint(PASSIVE)`)
			c.ended <- struct{}{}
		}
	}
}

// A log is what the writer knows of the write-ahead log.
type log struct {
	pages   int  // written since the last checkpoint began
	copying bool // the checkpointer runs
}

// written counts the pages that a transaction wrote, and starts a checkpoint when it is due. It also starts
// one after a transaction that failed: if the disk is full, the blocks of the log can be used again.
func (w *writer) written(failed bool) {
	w.log.pages += w.pagesWritten()
	if failed {
		w.log.pages = checkpointAt
	}
	switch {
	case w.log.copying:
		select {
		case <-w.checkpoints.ended:
			w.log = log{}
			if w.conn != nil { // copies the pages that were written while the checkpointer ran
				_, _ = w.conn.Exec(`PRAGMA wal_checkpoint(PASSIVE)`)
			}
		default:
		}
	case w.log.pages >= checkpointAt:
		w.checkpoints.begin <- struct{}{}
		w.log.copying = true
	}
}

// pagesWritten returns how many pages the connection wrote since the last call.
func (w *writer) pagesWritten() (pages int) {
	if w.conn == nil {
		return 0
	}
	_ = w.conn.conn.Raw(func(c any) (err error) {
		pages, _, err = c.(sqlite.DBStatus).Status(sqlite.DBStatusCacheWrite, true)
		return err
	})
	return pages
}

// extendLog extends the log's file to its full length, because writing into blocks that a file has is twice as fast
// here as growing the file. The transaction keeps other processes from writing to the log at the same time.
func extendLog(ctx context.Context, path string, write *sql.DB) error {
	conn, err := write.Conn(ctx)
	if err != nil {
		return err
	}
	defer conn.Close()
	if _, err := conn.ExecContext(ctx, `BEGIN IMMEDIATE`); err != nil {
		return err
	}
	err = extend(path+"-wal", logBytes)
	_, end := conn.ExecContext(ctx, `ROLLBACK`)
	return errors.Join(err, end)
}

// extend fills a file with zeros up to a length. If the disk has no room for that, extend leaves the file as
// it is; then the file grows as needed.
func extend(name string, length int64) error {
	f, err := os.OpenFile(name, os.O_WRONLY, 0)
	if err != nil {
		return fmt.Errorf("extend the log: %w", err)
	}
	defer f.Close()
	has, err := f.Stat()
	if err != nil {
		return fmt.Errorf("extend the log: %w", err)
	}
	zeros := make([]byte, 1<<20)
	for at := has.Size(); at < length; at += int64(len(zeros)) {
		if _, err := f.WriteAt(zeros[:min(int64(len(zeros)), length-at)], at); err != nil {
			return f.Truncate(has.Size())
		}
	}
	return f.Sync()
}
