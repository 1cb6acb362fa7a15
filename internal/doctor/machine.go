package doctor

import (
	"errors"
	"fmt"
	"os"
	"time"
)

const (
	// leastSpace and enoughSpace: a million coupons take some 200 MB with their index
	// and facts.
	leastSpace  = 100 << 20
	enoughSpace = 1 << 30
	// slowSync is twice the 10 ms that a claim should take: a claim waits for up to two commits.
	slowSync = 20 * time.Millisecond
	// earliest is before this firstcome was built: a clock with an earlier time is not set.
	earliest = 1_780_000_000 // seconds since 1970: May 2026
)

// Files adds whether this user can create files in a directory, and write the named files that exist.
func (f *Findings) Files(dir string, names ...string) {
	const what, fix = "rights", "let the user who runs serve "
	made, err := os.CreateTemp(dir, ".firstcome-doctor-")
	if err != nil {
		f.Add(Fail, what, fix+"make files in "+dir, "%v", err)
		return
	}
	if err := errors.Join(made.Close(), os.Remove(made.Name())); err != nil {
		f.Add(Fail, what, fix+"remove files in "+dir, "%v", err)
		return
	}
	for _, name := range names {
		file, err := os.OpenFile(name, os.O_RDWR, 0)
		if errors.Is(err, os.ErrNotExist) {
			continue
		}
		if err != nil {
			f.Add(Fail, what, fix+"write "+name, "%v", err)
			return
		}
		_ = file.Close() // nothing was written
	}
	f.Add(OK, what, "", "files in %s can be made and written", dir)
}

// Space adds how much of a directory's disk is free.
func (f *Findings) Space(dir string) {
	const what, found = "disk", "%d MiB are free"
	free, err := freeBytes(dir)
	switch {
	case err != nil:
		f.Add(Warn, what, "", "the free space cannot be read: %v", err)
	case free < leastSpace:
		f.Add(Fail, what, "make room: when the disk is full, claims are answered 503", found, free>>20)
	default:
		f.Hold(free >= enoughSpace, Warn, what, "make room: a million coupons take about 200 MiB", found, free>>20)
	}
}

// Sync adds how long the disk of a directory takes to make 4 KiB durable.
func (f *Findings) Sync(dir string) {
	const what = "fsync"
	file, err := os.CreateTemp(dir, ".firstcome-doctor-")
	if err != nil {
		f.Add(Fail, what, "see the finding about rights", "%v", err)
		return
	}
	defer func() { _ = errors.Join(file.Close(), os.Remove(file.Name())) }()
	var fix string
	took, err := Median(func() error {
		fix = "see the finding about the disk"
		if _, err := file.WriteAt(make([]byte, 4096), 0); err != nil {
			return err
		}
		fix = "use another file system: this one cannot make a coupon durable"
		return file.Sync()
	})
	if err != nil {
		f.Add(Fail, what, fix, "%v", err)
		return
	}
	f.Hold(took <= slowSync, Warn, what, "use a faster disk: a claim waits for about two syncs", "it takes %v to make a page durable (median of %d)", took, Rounds)
}

// Secret adds whether other users can read the code secret's file.
func (f *Findings) Secret(file string) {
	const what = "secret"
	info, err := os.Stat(file)
	switch {
	case errors.Is(err, os.ErrNotExist):
		f.Add(OK, what, "", "there is none yet: the first start of serve makes %s", file)
	case err != nil:
		f.Add(Fail, what, "let the user who runs serve read the file", "%v", err)
	case info.Mode().Perm()&0o077 != 0:
		f.Add(Warn, what, "chmod 600 "+file, "other users can read %s (mode %04o), and whoever reads it can make coupon codes", file, info.Mode().Perm())
	default:
		f.Add(OK, what, "", "%s, mode %04o", file, info.Mode().Perm())
	}
}

// MachineClock adds whether this machine's clock is set, and whether it is behind the ledger's last decision:
// the gate's time would stand still until the clock has passed that decision. The zero time means that there
// was no decision.
func (f *Findings) MachineClock(lastDecision time.Time) {
	const what, fix = "clock", "set the clock: timedatectl set-ntp true"
	now := time.Now()
	switch {
	case now.Unix() < earliest:
		f.Add(Fail, what, fix, "the clock says it is %s", now.UTC().Format(time.RFC3339))
	case lastDecision.After(now.Add(time.Second)):
		f.Add(Warn, what, fix, "it is %v behind the ledger's last decision", lastDecision.Sub(now).Round(time.Second))
	default:
		f.Add(OK, what, "", "%s", now.UTC().Format(time.RFC3339))
	}
}

// OpenFiles adds whether this process may open enough files for so many connections.
func (f *Findings) OpenFiles(connections int) {
	const what = "open files"
	limit, err := maxOpenFiles()
	if err != nil {
		f.Add(Warn, what, "", "the limit cannot be read: %v", err)
		return
	}
	f.Hold(limit >= uint64(connections)+100, Warn, what,
		fmt.Sprintf("raise the limit, with ulimit -n %d or LimitNOFILE= in the unit: otherwise the server takes fewer connections", connections+1000),
		"this process may open %d files, and --max-connections is %d", limit, connections)
}
