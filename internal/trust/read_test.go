//go:build linux

package trust

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestF68APipeThatNobodyWritesToIsNotReadForEver gives up, although no time would be enough, and then goes on with the same read.
func TestF68APipeThatNobodyWritesToIsNotReadForEver(t *testing.T) {
	name := filepath.Join(t.TempDir(), "pipe")
	if err := syscall.Mkfifo(name, 0o600); err != nil {
		t.Fatal(err)
	}
	first := start(name)
	if text, err := first.wait(time.Millisecond); !errors.Is(err, errLate) || !strings.Contains(err.Error(), name) {
		t.Errorf("%q, %v", text, err)
	}
	again := Again(name)
	for range 2 {
		if text, err := again(); !errors.Is(err, errLate) {
			t.Errorf("%q, %v", text, err)
		}
	}
	for text, err := again(); ; text, err = again() {
		if err == nil && len(text) == 0 {
			break // it has found the end
		}
		if !errors.Is(err, errLate) {
			t.Fatalf("%q, %v", text, err)
		}
		writeNothing(name)
	}
	for {
		select {
		case <-first.ended:
			return
		default:
			writeNothing(name)
		}
	}
}

// writeNothing gives an end to those who read a pipe now, if anybody does.
func writeNothing(name string) {
	if w, err := os.OpenFile(name, os.O_WRONLY|syscall.O_NONBLOCK, 0); err == nil {
		_ = w.Close()
	}
}

func TestAnEndlessFileIsRefused(t *testing.T) {
	if text, err := ReadFile("/dev/zero"); err == nil || !strings.Contains(err.Error(), "is it the file that was meant?") {
		t.Errorf("%d bytes, %v", len(text), err)
	}
}
