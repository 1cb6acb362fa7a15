package sqldb

import (
	"context"
	"errors"
	"os"
	"path/filepath"

	"github.com/gofrs/flock"

	"github.com/firstcome/firstcome/internal/doctor"
)

// examineFile is Examine for a ledger that is a file.
func examineFile(ctx context.Context, path string) doctor.Findings {
	e := &exam{ctx: ctx}
	dir := filepath.Dir(path)
	e.Files(dir, path, path+"-wal", path+"-shm")
	e.Space(dir)
	e.Sync(dir)
	e.file(path)
	e.holder(path + ".lock")
	return e.Findings
}

// file adds whether there is a ledger that this binary can use, and whether it is in WAL mode.
func (e *exam) file(path string) {
	const what = "ledger"
	if _, err := os.Stat(path); errors.Is(err, os.ErrNotExist) {
		e.Add(doctor.OK, what, "", "there is none yet: the first start of serve makes %s", path)
		return
	}
	l, err := OpenShared(e.ctx, path)
	if err != nil {
		e.Add(doctor.Fail, what, "the message says what to do", "%v", err)
		return
	}
	defer func() { _ = l.Close() }() // it was only read
	wrong, err := l.Verify(e.ctx)
	switch {
	case err != nil:
		e.Add(doctor.Fail, what, "restore a backup", "%v", err)
	case len(wrong) > 0:
		e.Add(doctor.Fail, what, "stop the server and restore a backup", "%s is damaged: %s", path, wrong[0])
	default:
		e.Add(doctor.OK, what, "", "%s has this firstcome's schema, and SQLite finds nothing wrong with it", path)
		e.journalMode(l)
	}
}

// journalMode adds whether commits go to a write-ahead log.
func (e *exam) journalMode(l *DB) {
	const what = "WAL"
	var mode string
	err := l.Read.QueryRowContext(e.ctx, `PRAGMA journal_mode`).Scan(&mode)
	switch {
	case err != nil:
		e.Add(doctor.Fail, what, "restore a backup", "%v", err)
	case mode != "wal":
		e.Add(doctor.Warn, what, "nothing: serve switches it on", "the ledger is not in WAL mode, as a fresh backup is")
	default:
		e.Add(doctor.OK, what, "", "commits go to the write-ahead log: readers do not wait")
	}
}

// holder adds which process holds the ledger's lock. It does not disturb that process.
func (e *exam) holder(name string) {
	const what, nobody = "lock", "nobody has the ledger"
	if _, err := os.Stat(name); errors.Is(err, os.ErrNotExist) {
		e.Add(doctor.OK, what, "", nobody)
		return
	}
	lock := flock.New(name, flock.SetFlag(os.O_RDWR))
	free, err := lock.TryLock()
	switch {
	case err != nil:
		e.Add(doctor.Fail, what, "let the user who runs serve write "+name, "%v", err)
	case free:
		_ = lock.Unlock() // it was free
		e.Add(doctor.OK, what, "", nobody)
	default:
		who, _ := os.ReadFile(name) // it is only shown
		e.Add(doctor.OK, what, "", "a firstcome has the ledger: %s", who)
	}
}
