package main

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

func TestACouponIsAnsweredAfterOneSyncOfItsWrites(t *testing.T) {
	const claims = 10
	dir := t.TempDir()
	// -D has strace beside the server instead of above it, so that signals reach the server.
	p, err := launchCommand(dir, pathOnly(), "strace", "-D", "-f", "-e", "trace=pwrite64,fsync,fdatasync,write", "-s", "16", "-o", "trace",
		"firstcome", "serve", "--listen", "127.0.0.1:0", "--ops", "off")
	if err != nil {
		t.Fatalf("%v\n(make install installs strace)", err)
	}
	t.Cleanup(p.kill)
	calls := open(t, p, "spring", claims)
	for n := range claims {
		if _, err := calls.Claim(t.Context(), "spring", "user-"+strconv.Itoa(n)); err != nil {
			t.Fatal(err)
		}
	}
	calls.CloseIdle()
	if err := p.signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(dir, "trace"))
	if err != nil {
		t.Fatal(err)
	}
	holdAgainst(t, string(text), claims)
}

// holdAgainst wants of a trace that before each 201 all writes were synced, and
// between two of them by one sync.
func holdAgainst(t *testing.T, trace string, claims int) {
	t.Helper()
	answers, writes, dirty, syncs := 0, 0, 0, 0
	for line := range strings.Lines(trace) {
		switch {
		case strings.Contains(line, "pwrite64("):
			writes++
			dirty++
		case strings.Contains(line, "sync") && strings.HasSuffix(strings.TrimSpace(line), "= 0"):
			dirty = 0
			syncs++
		case strings.Contains(line, `"HTTP/1.1 201`):
			// The first one answers for the campaign.
			if answers++; answers > 1 && (writes == 0 || dirty > 0 || syncs != 1) {
				t.Errorf("answer %d came after %d writes, %d of them not synced, and %d syncs", answers-1, writes, dirty, syncs)
			}
			writes, dirty, syncs = 0, 0, 0
		}
	}
	if answers != claims+1 {
		t.Errorf("the trace has %d answers, want %d", answers, claims+1)
	}
}
