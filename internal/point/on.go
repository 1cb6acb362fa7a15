//go:build faultpoints

package point

import (
	"fmt"
	"os"
	"runtime"
	"strings"
	"sync/atomic"
	"syscall"
)

// Variable says what happens where: FAULT:POINT:N, such as kill:decided:3. The fault is kill or stop.
const Variable = "FAULTPOINT"

// A fault is what happens at one point.
type fault struct {
	at     Point
	nth    int64 // time that the point is passed
	signal syscall.Signal
	passed atomic.Int64
}

var planned = parse(os.Getenv(Variable))

// parse reads the variable; nil: there is no fault. A test that means a fault must not run without it, so whatever is no fault panics.
func parse(text string) *fault {
	if text == "" {
		return nil
	}
	kind, rest, _ := strings.Cut(text, ":")
	at, nth, _ := strings.Cut(rest, ":")
	f := &fault{at: Point(at), signal: map[string]syscall.Signal{"kill": syscall.SIGKILL, "stop": syscall.SIGSTOP}[kind]}
	if _, err := fmt.Sscan(nth, &f.nth); err != nil || f.signal == 0 || at == "" || f.nth < 1 {
		panic(fmt.Sprintf("%s=%s: it is kill or stop, a point, and how many times it is passed: kill:decided:1", Variable, text))
	}
	return f
}

// Reach passes a point. If the fault is planned for this time, the process says so in its log, and then sends itself the signal.
// The signal is for the caller's own thread, so the caller goes no step further before it.
func Reach(p Point) {
	if planned == nil || p != planned.at || planned.passed.Add(1) != planned.nth {
		return
	}
	fmt.Fprintf(os.Stderr, "fault point %s passed %d times: %v\n", p, planned.nth, planned.signal)
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if err := syscall.Tgkill(syscall.Getpid(), syscall.Gettid(), planned.signal); err != nil {
		panic(err)
	}
}
