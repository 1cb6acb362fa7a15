//go:build linux && !check

package e2e_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/firstcome/firstcome/internal/point"
	"github.com/firstcome/firstcome/test/services"
	"github.com/firstcome/firstcome/test/stage"
)

// Faults at points: a test plans a fault for a point, whichever process of a fleet passes it next dies or stops itself there, and the test
// waits for that. So each fault comes in the middle of the work that it is meant for, on any machine.

// faultyBinary builds the binary that has fault points, once, beside the ordinary one.
var faultyBinary = sync.OnceValues(func() (string, error) {
	file := filepath.Join(filepath.Dir(firstcomeBinary()), "firstcome-with-faultpoints")
	return file, build(file, "-tags", "faultpoints")
})

const faultVariable = "FAULTPOINT="

// withPoints is an argument of a fleet: its processes have fault points, and share plans.
func withPoints(t *testing.T) string { return faultVariable + t.TempDir() }

// takePoints takes withPoints out of the arguments.
func (f *fleet) takePoints() {
	n := slices.IndexFunc(f.args, func(arg string) bool { return strings.HasPrefix(arg, faultVariable) })
	if n < 0 {
		return
	}
	f.plans = f.args[n]
	isPlan := func(arg string) bool { return arg == f.plans }
	f.args = slices.DeleteFunc(slices.Clone(f.args), isPlan)
	f.own = slices.DeleteFunc(slices.Clone(f.own), isPlan)
}

// plan has the next process that passes a point kill or stop itself there.
func (f *fleet) plan(fault string, at point.Point) {
	f.t.Helper()
	stage.Must(f.t, os.WriteFile(f.planned(fault+":"+string(at)), nil, 0o600))
}

func (f *fleet) planned(name string) string {
	return filepath.Join(strings.TrimPrefix(f.plans, faultVariable), name)
}

// struck waits for the process that took the plan, and until it has killed or stopped itself.
func (f *fleet) struck(fault string) (hit *process) {
	f.t.Helper()
	waitFor(f.t, "a process that passes the planned point", func() bool {
		for _, p := range slices.Concat(f.nodes, f.recorders) {
			if os.Remove(f.planned(strconv.Itoa(p.cmd.Process.Pid))) == nil {
				hit = p
			}
		}
		return hit != nil
	})
	hit.awaitFault(fault)
	return hit
}

// awaitFault waits until a process has killed or stopped itself.
func (p *process) awaitFault(fault string) {
	p.t.Helper()
	waitFor(p.t, "a process that does "+fault+" itself", func() bool {
		if fault == "kill" {
			return isClosed(p.ended)
		}
		status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.cmd.Process.Pid))
		return err == nil && bytes.Contains(status, []byte("State:\tT"))
	})
}

// during does something while a process stands still at a point.
func (f *fleet) during(at point.Point, do func()) {
	f.t.Helper()
	f.plan("stop", at)
	p := f.struck("stop")
	do()
	p.thaw()
}

// replace kills a process, unless it is dead, and starts another in its place.
func (f *fleet) replace(p *process) {
	f.t.Helper()
	if n := slices.Index(f.nodes, p); n >= 0 {
		f.kill(f.nodes, n, f.role...)
		return
	}
	f.kill(f.recorders, slices.Index(f.recorders, p), "--role", "recorder")
}

// A blow is what a fleet suffers at a point: the process there dies, or it stands still while a server is killed and started again.
type blow struct {
	at     point.Point
	server *services.Server // nil: the process dies
}

// suffers has a fleet suffer blows, each while its crowd is issued coupons.
func (f *fleet) suffers(c *crowd, blows ...blow) {
	f.t.Helper()
	for _, b := range blows {
		c.awaitAnswers(f.t, 20)
		f.suffer(b)
	}
	c.awaitAnswers(f.t, 20)
}

func (f *fleet) suffer(b blow) {
	f.t.Helper()
	f.foresee(b)
	f.bear(b)
}

// foresee plans a blow.
func (f *fleet) foresee(b blow) {
	f.t.Helper()
	f.plan(b.fault(), b.at)
}

// bear waits for a blow that is planned.
func (f *fleet) bear(b blow) {
	f.t.Helper()
	p := f.struck(b.fault())
	if b.server == nil {
		f.replace(p)
		return
	}
	stage.Must(f.t, b.server.Restart(f.t.Context()))
	p.thaw()
}

func (b blow) fault() string {
	if b.server == nil {
		return "kill"
	}
	return "stop"
}
