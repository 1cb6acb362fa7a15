package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/gofrs/flock"

	"github.com/firstcome/firstcome/internal/doctor"
	"github.com/firstcome/firstcome/internal/ledger"
)

const (
	// leastSpace and enoughSpace: a million coupons take some 200 MB with their index
	// and facts.
	leastSpace  = 100 << 20
	enoughSpace = 1 << 30
	// slowSync is where a commit alone takes longer than the 10 ms that a claim
	// should, twice over, since a claim waits for up to two.
	slowSync = 20 * time.Millisecond
	// earliest is before this firstcome was made: a clock that stands before it is not set.
	earliest = 1_780_000_000 // seconds since 1970: May 2026
)

// machine looks at what a ledger that is a file needs of this machine.
func (e *exam) machine() {
	e.directoryRights()
	e.freeSpace()
	e.fsyncTime()
	e.ledgerFile()
	e.lockHolder()
}

// directoryRights says whether the ledger's files can be made where they belong.
func (e *exam) directoryRights() {
	const what = "rights"
	dir := filepath.Dir(e.path)
	f, err := os.CreateTemp(dir, ".firstcome-doctor-")
	if err != nil {
		e.Add(doctor.Fail, what, "let the user who runs serve make files in "+dir, "%v", err)
		return
	}
	err = errors.Join(f.Close(), os.Remove(f.Name()))
	if err != nil {
		e.Add(doctor.Fail, what, "let the user who runs serve remove files in "+dir, "%v", err)
		return
	}
	for _, name := range []string{e.path, e.path + "-wal", e.path + "-shm"} {
		f, err := os.OpenFile(name, os.O_RDWR, 0)
		if errors.Is(err, os.ErrNotExist) {
			continue
		}
		if err != nil {
			e.Add(doctor.Fail, what, "let the user who runs serve write "+name, "%v", err)
			return
		}
		_ = f.Close() // nothing was written
	}
	e.Add(doctor.OK, what, "", "files in %s can be made and written", dir)
}

func (e *exam) freeSpace() {
	const what, found = "disk", "%d MiB are free"
	free, err := freeBytes(filepath.Dir(e.path))
	switch {
	case err != nil:
		e.Add(doctor.Warn, what, "", "how much is free cannot be told: %v", err)
	case free < leastSpace:
		e.Add(doctor.Fail, what, "make room: when the disk is full, claims are answered 503", found, free>>20)
	default:
		e.Hold(free >= enoughSpace, doctor.Warn, what, "a million coupons take some 200 MiB", found, free>>20)
	}
}

// fsyncTime says how long the disk takes to make 4 KiB durable.
func (e *exam) fsyncTime() {
	const what = "fsync"
	f, err := os.CreateTemp(filepath.Dir(e.path), ".firstcome-doctor-")
	if err != nil {
		e.Add(doctor.Fail, what, "see rights", "%v", err)
		return
	}
	defer func() { _ = errors.Join(f.Close(), os.Remove(f.Name())) }()
	var fix string
	took, err := doctor.Median(func() error {
		fix = "see disk"
		if _, err := f.WriteAt(make([]byte, 4096), 0); err != nil {
			return err
		}
		fix = "another file system: this one cannot make a coupon durable"
		return f.Sync()
	})
	if err != nil {
		e.Add(doctor.Fail, what, fix, "%v", err)
		return
	}
	e.Hold(took <= slowSync, doctor.Warn, what, "a faster disk: a claim waits for about two of them",
		"%v to make a page durable (median of %d)", took, doctor.Rounds)
}

// ledgerFile says whether there is a ledger that this binary can use, and whether it is in WAL mode.
func (e *exam) ledgerFile() {
	const what = "ledger"
	if _, err := os.Stat(e.path); errors.Is(err, os.ErrNotExist) {
		e.Add(doctor.OK, what, "", "there is none yet: the first start of serve makes %s", e.path)
		return
	}
	l, err := ledger.OpenShared(e.ctx, e.path)
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
		e.Add(doctor.Fail, what, "stop the server and restore a backup", "%s is damaged: %s", e.path, wrong[0])
	default:
		e.Add(doctor.OK, what, "", "%s has this firstcome's schema, and SQLite finds nothing wrong with it", e.path)
		e.walMode()
	}
}

// walMode reads the file's header: its 19th byte is 2 where commits go to a log first.
func (e *exam) walMode() {
	const what = "WAL"
	f, err := os.Open(e.path)
	if err != nil {
		e.Add(doctor.Fail, what, "see rights", "%v", err)
		return
	}
	defer func() { _ = f.Close() }() // it was only read
	header := make([]byte, 20)
	if _, err := f.ReadAt(header, 0); err != nil {
		e.Add(doctor.Fail, what, "restore a backup", "%v", err)
		return
	}
	if header[18] != 2 {
		e.Add(doctor.Warn, what, "nothing: serve switches it on", "the ledger is not in WAL mode, as a fresh backup is")
		return
	}
	e.Add(doctor.OK, what, "", "commits go to the write-ahead log: readers do not wait")
}

// lockHolder says who has the ledger. It takes nothing from them.
func (e *exam) lockHolder() {
	const what, nobody = "lock", "nobody has the ledger"
	name := e.path + ".lock"
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
		_ = lock.Unlock() // it was nobody's
		e.Add(doctor.OK, what, "", nobody)
	default:
		who, _ := os.ReadFile(name) // it is for people; nobody is hindered without it
		e.Add(doctor.OK, what, "", "a firstcome has the ledger: %s", who)
	}
}

// clockSanity says whether the clock is set, and does not stand before the
// ledger's last decision: the gate's time would stand still until it has passed.
func (e *exam) clockSanity() {
	const what, fix = "clock", "set it: timedatectl set-ntp true"
	now := time.Now()
	if now.Unix() < earliest {
		e.Add(doctor.Fail, what, fix, "the clock says %s", now.UTC().Format(time.RFC3339))
		return
	}
	if last := lastDecision(e.ctx, e.path); last.After(now.Add(time.Second)) {
		e.Add(doctor.Warn, what, fix, "it is %v behind the ledger's last decision", last.Sub(now).Round(time.Second))
		return
	}
	e.Add(doctor.OK, what, "", "%s", now.UTC().Format(time.RFC3339))
}

// lastDecision returns when a campaign was last decided, zero if there is none.
func lastDecision(ctx context.Context, path string) (last time.Time) {
	_ = readLedger(ctx, path, func(l *ledger.Ledger) (err error) { // the ledger's own finding says why not
		last, err = l.LastDecision(ctx)
		return err
	})
	return last
}

// openFiles says whether every connection can have a file descriptor.
func (e *exam) openFiles(connections int) {
	const what = "open files"
	limit, err := maxOpenFiles()
	if err != nil {
		e.Add(doctor.Warn, what, "", "the limit cannot be told: %v", err)
		return
	}
	e.Hold(limit >= uint64(connections)+100, doctor.Warn, what,
		fmt.Sprintf("raise it: ulimit -n %d, or LimitNOFILE= in the unit; else fewer connections are served", connections+1000),
		"at most %d, for --max-connections %d", limit, connections)
}
