package sqldb

import (
	"context"
	"database/sql"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// maxLinks bounds the length of a chain of symbolic links, with Linux's own limit.
const maxLinks = 40

// File returns the file that a path leads to through symbolic links, even if there is no such file yet. A
// ledger's lock, log and secret lie beside that file. So they are the same by whatever name the ledger is
// opened. A path that cannot be followed is returned as it is: opening it will say why.
func File(path string) string {
	followed := path
	for range maxLinks {
		if file, err := filepath.EvalSymlinks(followed); err == nil {
			return file
		}
		// The last link may lead to a file that SQLite has yet to create.
		dir, err := filepath.EvalSymlinks(filepath.Dir(followed))
		if err != nil {
			return path
		}
		followed = filepath.Join(dir, filepath.Base(followed))
		target, err := os.Readlink(followed)
		if err != nil {
			return followed
		}
		if !filepath.IsAbs(target) {
			target = filepath.Join(dir, target)
		}
		followed = target
	}
	return path
}

// checkNames returns an error that says what to do if the file has several names. SQLite keeps a log beside
// each name, and a process that opens the file by another name does not see the lock.
func checkNames(path string) error {
	info, err := os.Stat(path)
	if err != nil {
		return nil // there is no file yet, or opening it will say what is wrong
	}
	if n := hardLinks(info); n > 1 {
		return fmt.Errorf("the ledger %[1]s has %[2]d names (hard links), and SQLite keeps a log beside each: remove the others, which find DIRECTORY -samefile %[1]s finds; firstcome backup makes a copy", path, n)
	}
	return nil
}

// SQLite goes on with an open file that was moved or deleted: it reads and writes what the next start will not find.
// So each transaction, before it is answered, makes sure that the names of the ledger still lead to its open files. While
// they do not, no transaction begins. Reads go by what the last such look found. The log counts too, because it has the latest
// coupons, and so does the log's index, by which SQLite finds other processes.

// lookEvery is how often the names are looked at while no transaction runs.
const lookEvery = time.Second

// openFiles are the open files of a ledger that a node decides in. A nil *openFiles is never moved: other processes
// open a ledger for one command only, and servers have no file.
type openFiles struct {
	names  []string
	opened []fs.FileInfo // by name
	onMove func(error)   // see DB.OnMove

	mu    sync.Mutex // held during a look, so that a later look reports later
	moved atomic.Pointer[movedError]
}

// A movedError means that a name no longer leads to the file that is open.
type movedError struct {
	name string
	err  error // why the name cannot be followed; nil if it leads to another file
}

func (e *movedError) Error() string {
	const advice = "nothing is decided or read until it is back. Move it back; if it was deleted, only this process still has it: do not stop it before you have read docs/runbooks/FirstcomeLedgerDown.md"
	if e.err != nil {
		return fmt.Sprintf("the ledger's file was moved or deleted (%v): %s", e.err, advice)
	}
	return fmt.Sprintf("the ledger's file was moved or deleted (%s is another file than the open one): %s", e.name, advice)
}

// openFiles opens all connections with their logs, because one that is opened later would open whatever file has the
// name then, and delete the log if that file is empty. It returns the open files by their names: as the database was called, and where
// links lead.
func (d *DB) openFiles(ctx context.Context, called string) (*openFiles, error) {
	for _, pool := range []*sql.DB{d.Read.DB, d.checkpoints} {
		for range pool.Stats().MaxOpenConnections {
			conn, err := pool.Conn(ctx)
			if err == nil {
				defer conn.Close() // to the pool, which keeps it
				_, err = conn.ExecContext(ctx, `PRAGMA schema_version`)
			}
			if err != nil {
				return nil, fmt.Errorf("open %s: %w", d.path, err)
			}
		}
	}
	f := &openFiles{names: slices.Compact([]string{called, d.path, d.path + "-wal", d.path + "-shm"})}
	for _, name := range f.names {
		info, err := os.Stat(name)
		if err != nil {
			return nil, fmt.Errorf("look at the ledger's file: %w", err)
		}
		_ = os.SameFile(info, info) // on Windows the first comparison reads which file it is
		f.opened = append(f.opened, info)
	}
	return f, nil
}

// look compares the names with the open files. A file that is back under its name is accepted: it is the same file,
// and this process kept its locks. What it wrote before it noticed is in the file, and was not answered.
func (f *openFiles) look() error {
	if f == nil {
		return nil
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	var found *movedError
	for n, name := range f.names {
		if info, err := os.Stat(name); err != nil || !os.SameFile(info, f.opened[n]) {
			found = &movedError{name, err}
			break
		}
	}
	if before := f.moved.Swap(found); (before == nil) != (found == nil) && f.onMove != nil {
		f.onMove(f.last())
	}
	return f.last()
}

// last returns what the last look found.
func (f *openFiles) last() error {
	if f == nil {
		return nil
	}
	if moved := f.moved.Load(); moved != nil {
		return moved
	}
	return nil
}

// run looks until ctx ends.
func (f *openFiles) run(ctx context.Context) {
	every := time.NewTicker(lookEvery)
	defer every.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-every.C:
			_ = f.look() // it reports by itself
		}
	}
}

// checkLog refuses to make a new database beside the log of another one. SQLite would delete that log, and the latest
// coupons are in it.
func checkLog(path string) error {
	if size(path) == 0 && size(path+"-wal") > 0 {
		return fmt.Errorf("%[1]s is missing or empty, and its log %[1]s-wal is there: it has coupons that %[1]s lacks. Put the file back; only for a new ledger, move the log away", path)
	}
	return nil
}

// size returns a file's size, or 0 if it cannot be read.
func size(name string) int64 {
	info, err := os.Stat(name)
	if err != nil {
		return 0
	}
	return info.Size()
}
