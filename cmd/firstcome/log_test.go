//go:build linux

package main

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"github.com/firstcome/firstcome/test/stage"
)

// A valve passes on lines, each of which somebody must take.
type valve chan string

func (v valve) Write(line []byte) (int, error) {
	v <- string(line)
	return len(line), nil
}

// TestF68ABlockedLogDropsLinesAndSaysHowMany logs more than fits while nobody reads the log.
func TestF68ABlockedLogDropsLinesAndSaysHowMany(t *testing.T) {
	reader := make(valve)
	log, lines := newLog(reader, "info", "json")
	log.Info("line 0")
	if line := <-reader; !strings.Contains(line, "line 0") {
		t.Fatalf("the first line is %s", line)
	}
	log.Info("line 1")
	for len(lines.lines) > 0 { // until the buffer writes it, and so waits for the reader
		runtime.Gosched()
	}
	for n := range maxLines + 3 {
		log.Info(fmt.Sprint("line ", n+2))
	}
	if dropped := lines.dropped.Load(); dropped != 3 {
		t.Errorf("%d lines are dropped, want 3", dropped)
	}
	closed := make(chan struct{})
	go func() {
		defer close(closed)
		lines.Close()
	}()
	for n, want := range append([]string{"line 1\"", `"lines":3`}, numbered(2, maxLines)...) {
		if line := <-reader; !strings.Contains(line, want) {
			t.Fatalf("line %d of the log is %s, want %s", n, line, want)
		}
	}
	<-closed
}

func numbered(from, count int) (lines []string) {
	for n := range count {
		lines = append(lines, fmt.Sprintf("line %d\"", from+n))
	}
	return lines
}

// serveInto starts a server whose log goes into a pipe, and reads the log until the server serves.
func serveInto(t *testing.T, command ...string) (server *exec.Cmd, r, w *os.File) {
	t.Helper()
	r, w, err := os.Pipe()
	stage.Must(t, err)
	command = append(command, "firstcome", "serve", "--listen", "127.0.0.1:0", "--ops", "off")
	server = exec.Command(command[0], command[1:]...)
	server.Dir, server.Stderr, server.Env = t.TempDir(), w, []string{"PATH=" + os.Getenv("PATH")}
	dieWithTests(server)
	stage.Must(t, server.Start())
	t.Cleanup(func() { _, _, _ = server.Process.Kill(), r.Close(), w.Close() }) // they may be gone
	for log := bufio.NewScanner(r); ; {
		if !log.Scan() {
			t.Fatal("the log ends before the server serves")
		}
		if strings.Contains(log.Text(), "development mode") { // the last line of a start
			return server, r, w
		}
	}
}

// TestF68ALogThatNobodyReadsKeepsNoServerFromStopping sends SIGTERM, which the server logs, and wants it to end in order.
func TestF68ALogThatNobodyReadsKeepsNoServerFromStopping(t *testing.T) {
	for what, spoil := range map[string]func(r, w *os.File) error{
		"nobody reads it":    func(_, w *os.File) error { return fill(w) },
		"its reader is gone": func(r, w *os.File) error { return errors.Join(r.Close(), w.Close()) },
	} {
		t.Run(what, func(t *testing.T) {
			server, r, w := serveInto(t)
			stage.Must(t, spoil(r, w))
			stage.Must(t, server.Process.Signal(syscall.SIGTERM))
			if err := server.Wait(); err != nil {
				t.Errorf("the server ends with %v", err)
			}
		})
	}
}

// fill writes into a pipe until it is full.
func fill(w *os.File) error {
	raw, err := w.SyscallConn()
	if err != nil {
		return err
	}
	var full error
	err = raw.Write(func(fd uintptr) bool {
		for full = syscall.SetNonblock(int(fd), true); full == nil; {
			_, full = syscall.Write(int(fd), []byte{'x'})
		}
		return true
	})
	if !errors.Is(full, syscall.EAGAIN) {
		return errors.Join(err, full)
	}
	return errors.Join(err, raw.Control(func(fd uintptr) { full = syscall.SetNonblock(int(fd), false) }), full)
}

// endsByHangUp starts a command that ends by SIGHUP, even if the tests run under nohup, which ignores SIGHUP.
var endsByHangUp = []string{"env", "--default-signal=HUP"}

// TestAClosedTerminalStopsAServerInOrder sends SIGHUP as often as a terminal and its shell do.
func TestAClosedTerminalStopsAServerInOrder(t *testing.T) {
	server, _, _ := serveInto(t, endsByHangUp...)
	for range 2 {
		stage.Must(t, server.Process.Signal(syscall.SIGHUP))
	}
	if err := server.Wait(); err != nil {
		t.Errorf("the server ends with %v", err)
	}
}

// TestAClosedTerminalAndThenSIGTERMStopAServerInOrder sends SIGTERM during a stop that SIGHUP began, as systemd sends both at a log-out.
func TestAClosedTerminalAndThenSIGTERMStopAServerInOrder(t *testing.T) {
	server, r, _ := serveInto(t, append(endsByHangUp, "FIRSTCOME_DRAIN_DELAY=1s")...)
	stage.Must(t, server.Process.Signal(syscall.SIGHUP))
	for log := bufio.NewScanner(r); log.Scan() && !strings.Contains(log.Text(), "stopping"); {
	}
	stage.Must(t, server.Process.Signal(syscall.SIGTERM))
	if err := server.Wait(); err != nil {
		t.Errorf("the server ends with %v", err)
	}
}

// TestNohupKeepsAServerWhoseTerminalIsClosed looks whether the server still ignores SIGHUP, which is signal 1.
func TestNohupKeepsAServerWhoseTerminalIsClosed(t *testing.T) {
	server, _, _ := serveInto(t, "nohup")
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", server.Process.Pid))
	stage.Must(t, err)
	if ignored := regexp.MustCompile(`SigIgn:\s*[0-9a-f]*([0-9a-f])`).FindSubmatch(status); ignored == nil || strings.IndexByte("13579bdf", ignored[1][0]) < 0 {
		t.Errorf("it does not ignore SIGHUP: %s", status)
	}
	stage.Must(t, server.Process.Signal(syscall.SIGTERM))
	if err := server.Wait(); err != nil {
		t.Errorf("the server ends with %v", err)
	}
}
