package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/gofrs/flock"

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

// directoryRights says whether the ledger's files can be made where they belong.
func directoryRights(path string) []finding {
	const what = "rights"
	dir := filepath.Dir(path)
	f, err := os.CreateTemp(dir, ".firstcome-doctor-")
	if err != nil {
		return []finding{{fail, what, err.Error(), "let the user who runs serve make files in " + dir}}
	}
	err = errors.Join(f.Close(), os.Remove(f.Name()))
	if err != nil {
		return []finding{{fail, what, err.Error(), "let the user who runs serve remove files in " + dir}}
	}
	for _, name := range []string{path, path + "-wal", path + "-shm"} {
		f, err := os.OpenFile(name, os.O_RDWR, 0)
		if errors.Is(err, os.ErrNotExist) {
			continue
		}
		if err != nil {
			return []finding{{fail, what, err.Error(), "let the user who runs serve write " + name}}
		}
		_ = f.Close() // nothing was written
	}
	return []finding{{ok, what, "files in " + dir + " can be made and written", ""}}
}

func freeSpace(path string) finding {
	const what = "disk"
	free, err := freeBytes(filepath.Dir(path))
	found := fmt.Sprintf("%d MiB are free", free>>20)
	switch {
	case err != nil:
		return finding{warn, what, "how much is free cannot be told: " + err.Error(), ""}
	case free < leastSpace:
		return finding{fail, what, found, "make room: when the disk is full, claims are answered 503"}
	case free < enoughSpace:
		return finding{warn, what, found, "a million coupons take some 200 MiB"}
	}
	return finding{ok, what, found, ""}
}

// fsyncTime says how long the disk takes to make 4 KiB durable: the median of 11.
func fsyncTime(path string) finding {
	const what, rounds = "fsync", 11
	f, err := os.CreateTemp(filepath.Dir(path), ".firstcome-doctor-")
	if err != nil {
		return finding{fail, what, err.Error(), "see rights"}
	}
	defer func() { _ = errors.Join(f.Close(), os.Remove(f.Name())) }()
	took := make([]time.Duration, rounds)
	for n := range took {
		started := time.Now()
		if _, err := f.WriteAt(make([]byte, 4096), 0); err != nil {
			return finding{fail, what, err.Error(), "see disk"}
		}
		if err := f.Sync(); err != nil {
			return finding{fail, what, err.Error(), "another file system: this one cannot make a coupon durable"}
		}
		took[n] = time.Since(started)
	}
	slices.Sort(took)
	found := fmt.Sprintf("%v to make a page durable (median of %d)", took[rounds/2].Round(10*time.Microsecond), rounds)
	if took[rounds/2] > slowSync {
		return finding{warn, what, found, "a faster disk: a claim waits for about two of them"}
	}
	return finding{ok, what, found, ""}
}

// ledgerFile says whether there is a ledger that this binary can use, and whether it is in WAL mode.
func ledgerFile(ctx context.Context, path string) []finding {
	const what = "ledger"
	if _, err := os.Stat(path); errors.Is(err, os.ErrNotExist) {
		return []finding{{ok, what, "there is none yet: the first start of serve makes " + path, ""}}
	}
	l, err := ledger.OpenShared(ctx, path)
	if err != nil {
		return []finding{{fail, what, err.Error(), "the message says what to do"}}
	}
	defer func() { _ = l.Close() }() // it was only read
	wrong, err := l.Verify(ctx)
	switch {
	case err != nil:
		return []finding{{fail, what, err.Error(), "restore a backup"}}
	case len(wrong) > 0:
		return []finding{{fail, what, fmt.Sprintf("%s is damaged: %s", path, wrong[0]), "stop the server and restore a backup"}}
	}
	return []finding{{ok, what, path + " has this firstcome's schema, and SQLite finds nothing wrong with it", ""}, walMode(path)}
}

// walMode reads the file's header: its 19th byte is 2 where commits go to a log first.
func walMode(path string) finding {
	const what = "WAL"
	f, err := os.Open(path)
	if err != nil {
		return finding{fail, what, err.Error(), "see rights"}
	}
	defer func() { _ = f.Close() }() // it was only read
	header := make([]byte, 20)
	if _, err := f.ReadAt(header, 0); err != nil {
		return finding{fail, what, err.Error(), "restore a backup"}
	}
	if header[18] != 2 {
		return finding{warn, what, "the ledger is not in WAL mode, as a fresh backup is", "nothing: serve switches it on"}
	}
	return finding{ok, what, "commits go to the write-ahead log: readers do not wait", ""}
}

// lockHolder says who has the ledger. It takes nothing from them.
func lockHolder(path string) finding {
	const what = "lock"
	name := path + ".lock"
	if _, err := os.Stat(name); errors.Is(err, os.ErrNotExist) {
		return finding{ok, what, "nobody has the ledger", ""}
	}
	lock := flock.New(name, flock.SetFlag(os.O_RDWR))
	free, err := lock.TryLock()
	switch {
	case err != nil:
		return finding{fail, what, err.Error(), "let the user who runs serve write " + name}
	case free:
		_ = lock.Unlock() // it was nobody's
		return finding{ok, what, "nobody has the ledger", ""}
	}
	who, _ := os.ReadFile(name) // it is for people; nobody is hindered without it
	return finding{ok, what, "a firstcome has the ledger: " + string(who), ""}
}

// clockSanity says whether the clock is set, and does not stand before the
// ledger's last decision: the gate's time would stand still until it has passed.
func clockSanity(ctx context.Context, path string) finding {
	const what = "clock"
	now := time.Now()
	if now.Unix() < earliest {
		return finding{fail, what, "the clock says " + now.UTC().Format(time.RFC3339), "set it: timedatectl set-ntp true"}
	}
	if last := lastDecision(ctx, path); last.After(now.Add(time.Second)) {
		return finding{warn, what, fmt.Sprintf("it is %v behind the ledger's last decision", last.Sub(now).Round(time.Second)), "set it: timedatectl set-ntp true"}
	}
	return finding{ok, what, now.UTC().Format(time.RFC3339), ""}
}

// lastDecision returns the gate's time of the campaign that is furthest, zero if
// there is none.
func lastDecision(ctx context.Context, path string) (last time.Time) {
	_ = readLedger(ctx, path, func(l *ledger.Ledger) error { // the ledger's own finding says why not
		all, err := l.Campaigns(ctx, "", 1000)
		for _, c := range all {
			if c.Now.After(last) {
				last = c.Now
			}
		}
		return err
	})
	return last
}

// openFiles says whether every connection can have a file descriptor.
func openFiles(connections int) finding {
	const what = "open files"
	limit, err := maxOpenFiles()
	if err != nil {
		return finding{warn, what, "the limit cannot be told: " + err.Error(), ""}
	}
	found := fmt.Sprintf("at most %d, for --max-connections %d", limit, connections)
	if limit < uint64(connections)+100 {
		return finding{warn, what, found, fmt.Sprintf("raise it: ulimit -n %d, or LimitNOFILE= in the unit; else fewer connections are served", connections+1000)}
	}
	return finding{ok, what, found, ""}
}
