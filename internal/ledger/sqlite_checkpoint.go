package ledger

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"sync"

	"modernc.org/sqlite"
)

// checkpointAt is after how many pages in the write-ahead log its content goes to
// the database. Of the many versions that a page has in a long log only the last
// is copied, so a longer log makes less work, above all for many campaigns.
const checkpointAt = 4096

// logBytes is the size of the log's file: a header, then pages with a header each,
// with room for those that are written while a checkpoint runs. 18 MiB.
const logBytes = 32 + (checkpointAt+checkpointAt/8)*(24+4096)

// A checkpointer copies the write-ahead log to the database beside the writer, so
// that no claim waits for it. The log is used from its start again when all of it was
// copied; as the writer goes on meanwhile, it copies what is left itself, which is little.
type checkpointer struct {
	db    *sql.DB
	begin chan struct{} // has room for one
	ended chan struct{} // has room for one
}

// startCheckpoints starts the writer's checkpointer, which stop ends.
func (w *writer) startCheckpoints() (stop func()) {
	w.checkpoints = checkpointer{w.ledger.checkpoints, make(chan struct{}, 1), make(chan struct{}, 1)}
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { w.checkpoints.run(ctx) })
	return func() {
		cancel()
		running.Wait()
	}
}

// run copies when told to, until ctx ends.
func (c *checkpointer) run(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-c.begin:
			// What fails here, for want of space, say, is tried again with the next
			// pages; the writer meets the same disk.
			_, _ = c.db.ExecContext(ctx, `PRAGMA wal_checkpoint(PASSIVE)`)
			c.ended <- struct{}{}
		}
	}
}

// A log is what the writer knows of the write-ahead log.
type log struct {
	pages   int  // written since the last checkpoint began
	copying bool // by the checkpointer
}

// written counts the pages that a transaction wrote, and sees to it that they are
// copied. After one that failed the log is copied too: if the disk is full, the
// blocks that the log has can be used again.
func (w *writer) written(failed bool) {
	w.log.pages += w.pagesWritten()
	if failed {
		w.log.pages = checkpointAt
	}
	switch {
	case w.log.copying:
		select {
		case <-w.checkpoints.ended:
			w.finishCheckpoint()
		default:
		}
	case w.log.pages >= checkpointAt:
		w.checkpoints.begin <- struct{}{}
		w.log.copying = true
	}
}

// finishCheckpoint copies what came while the checkpointer ran.
func (w *writer) finishCheckpoint() {
	w.log = log{}
	if w.conn != nil {
		_, _ = w.conn.exec(`PRAGMA wal_checkpoint(PASSIVE)`)
	}
}

// pagesWritten returns how many pages the connection wrote since it was last asked.
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

// extendLog makes the log's file as long as it will be, because writing into blocks
// that a file has is twice as fast here as growing it. The transaction keeps other
// processes from writing to it meanwhile.
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

// extend fills a file with zeros up to a length, or leaves it as it is if the disk
// has no room for that: then it grows as it is needed.
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
