//go:build linux && !check

package services_test

import (
	"bufio"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/firstcome/firstcome/test/services"
	"github.com/firstcome/firstcome/test/stage"
)

// childVariable tells the test that it runs in the process that will be killed.
const childVariable = "SERVICES_CHILD"

func TestServersEndWithAProcessThatIsKilled(t *testing.T) {
	if os.Getenv(childVariable) != "" {
		serveUntilKilled(t)
	}
	temporary := directoryForAll(t)
	child := exec.Command(os.Args[0], "-test.run=^"+t.Name()+"$")
	child.Env = append(os.Environ(), childVariable+"=1", "TMPDIR="+temporary)
	out, err := child.StdoutPipe()
	must(t, err)
	must(t, child.Start())
	addresses := make([]string, 0, len(kinds))
	for lines := bufio.NewScanner(out); len(addresses) < len(kinds) && lines.Scan(); {
		addresses = append(addresses, lines.Text())
	}
	must(t, child.Process.Kill())
	_ = child.Wait() // it was killed
	if len(addresses) < len(kinds) {
		t.Fatalf("it has started %v", addresses)
	}
	for _, address := range addresses {
		stage.Await(t, "a server that does not listen at "+address, true, func() bool { return !listens(address) })
	}
	stage.Await(t, "the end of the directories", true, func() bool {
		left, err := os.ReadDir(temporary)
		return err == nil && len(left) == 0
	})
}

// serveUntilKilled starts a server of each kind and prints its address.
func serveUntilKilled(t *testing.T) {
	for _, kind := range kinds {
		server, err := kind.Start(t.Context())
		must(t, err)
		fmt.Println(server.Address())
	}
	select {}
}

func listens(address string) bool {
	c, err := net.Dial("tcp", address)
	if err != nil {
		return false
	}
	_ = c.Close()
	return true
}

func TestAServerThatWasKilledLeavesNoSharedMemory(t *testing.T) {
	temporary := directoryForAll(t)
	t.Setenv("TMPDIR", temporary)
	server := services.PostgreSQL.Server(t)
	locks, err := filepath.Glob(temporary + "/*/data/postmaster.pid")
	must(t, err)
	if len(locks) != 1 {
		t.Fatalf("its lock files are %v", locks)
	}
	lock, err := os.ReadFile(locks[0])
	must(t, err)
	segment := strings.Fields(strings.Split(string(lock), "\n")[6])
	must(t, server.Kill())
	if !hasSegment(t, segment) {
		t.Fatalf("a killed server has no segment %v", segment)
	}
	must(t, server.Close())
	if hasSegment(t, segment) {
		t.Errorf("its segment %v is left", segment)
	}
}

// hasSegment reports whether the system has a shared memory segment with this key and id.
func hasSegment(t *testing.T, segment []string) bool {
	t.Helper()
	text, err := os.ReadFile("/proc/sysvipc/shm")
	must(t, err)
	for line := range strings.Lines(string(text)) {
		if fields := strings.Fields(line); slices.Equal(fields[:2], segment) {
			return true
		}
	}
	return false
}

// A skipping is a test that notes why it was skipped.
type skipping struct {
	testing.TB
	why string
}

func (s *skipping) Skipf(format string, values ...any) {
	s.why = fmt.Sprintf(format, values...)
	runtime.Goexit()
}

func TestATestWithoutItsServerIsSkippedByName(t *testing.T) {
	t.Setenv("PATH", "")
	s, ended := &skipping{TB: t}, make(chan struct{})
	go func() {
		defer close(ended)
		services.Redis.Server(s)
	}()
	<-ended
	for _, want := range []string{"Redis: redis-server: not installed", "FIRSTCOME_TEST_REDIS_URL"} {
		if !strings.Contains(s.why, want) {
			t.Errorf("it is skipped with %q, without %q", s.why, want)
		}
	}
	if err := services.Redis.Installed(); !errors.Is(err, services.ErrMissing) || !strings.Contains(err.Error(), "install redis-server") {
		t.Errorf("to a program it is: %v", err)
	}
}

func TestAServerThatDoesNotStartSaysWhy(t *testing.T) {
	_, err := services.Redis.Start(t.Context(), "--no-such-setting", "1")
	if err == nil || errors.Is(err, services.ErrMissing) || !strings.Contains(err.Error(), "no-such-setting") {
		t.Errorf("the error is %v", err)
	}
}

// TestAServersPortIsItsOwnUntilItIsClosed looks for the name that tells other processes that the port is
// taken.
func TestAServersPortIsItsOwnUntilItIsClosed(t *testing.T) {
	server := services.Redis.Server(t)
	_, port, err := net.SplitHostPort(server.Address())
	must(t, err)
	isTaken := func() bool {
		l, err := net.Listen("unix", "@firstcome-test-port-"+port)
		if err == nil {
			must(t, l.Close())
		}
		return err != nil
	}
	must(t, server.Kill())
	if !isTaken() {
		t.Error("while the server is down others may take its port")
	}
	must(t, server.Close())
	if isTaken() {
		t.Error("the port is taken after the server was closed")
	}
}
