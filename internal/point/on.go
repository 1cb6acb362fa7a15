//go:build faultpoints

package point

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
)

// Variable has a plan for this process alone, FAULT:POINT:N, such as kill:decided:3, where the fault is kill or stop. Or it names a directory of
// plans, which processes share: a file named kill:decided is the plan for the next pass of that point. The process that passes it takes the plan, by
// renaming the file to its own process id.
const Variable = "FAULTPOINT"

// signals has the signal of each fault.
var signals = map[string]syscall.Signal{"kill": syscall.SIGKILL, "stop": syscall.SIGSTOP}

// A fault is what happens at one point of this process.
type fault struct {
	at     Point
	nth    int64 // the pass of the point at which it happens
	signal syscall.Signal
	passed atomic.Int64
}

var own, shared = read(os.Getenv(Variable))

// read parses the variable: a plan, or a directory of plans. It panics at anything else, because a test that needs a fault must not run without it.
func read(text string) (own *fault, shared string) {
	if text == "" || filepath.IsAbs(text) {
		return nil, text
	}
	kind, rest, _ := strings.Cut(text, ":")
	at, nth, _ := strings.Cut(rest, ":")
	f := &fault{at: Point(at), signal: signals[kind]}
	if _, err := fmt.Sscan(nth, &f.nth); err != nil || f.signal == 0 || at == "" || f.nth < 1 {
		panic(fmt.Sprintf("%s=%s: use kill or stop, a point, and how many times it is passed (kill:decided:1), or an absolute path", Variable, text))
	}
	return f, ""
}

// Reach passes a point. If a fault is planned for this pass, the process logs that, and then sends itself the signal.
// The signal is for the caller's own thread, so the caller goes no step further before it.
func Reach(p Point) {
	if own != nil && p == own.at && own.passed.Add(1) == own.nth {
		strike(p, own.signal)
	}
	if shared == "" {
		return
	}
	for kind, signal := range signals {
		if os.Rename(filepath.Join(shared, kind+":"+string(p)), filepath.Join(shared, strconv.Itoa(os.Getpid()))) == nil {
			strike(p, signal)
		}
	}
}

func strike(p Point, signal syscall.Signal) {
	fmt.Fprintf(os.Stderr, "fault point %s: %v\n", p, signal)
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if err := syscall.Tgkill(syscall.Getpid(), syscall.Gettid(), signal); err != nil {
		panic(err)
	}
}
