package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/firstcome/firstcome/test/services"
)

// TestMain lets the test binary stand in for firstcome: a process that is started
// under that name is the real command.
func TestMain(m *testing.M) {
	testscript.Main(leakless{m}, map[string]func(){"firstcome": main})
}

// leakless fails a run of tests that leaves goroutines behind.
type leakless struct{ tests *testing.M }

func (l leakless) Run() int {
	status := l.tests.Run()
	if err := services.Leaks(); err != nil && status == 0 {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return status
}

// scripts returns the parameters for the scripts of a directory.
func scripts(t *testing.T, directory string) testscript.Params {
	return testscript.Params{
		Dir: directory, WorkdirRoot: t.TempDir(), // which is removed, also if one script runs alone
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"exits": exits, "serve": serve, "ends": ends, "json": isJSON, "soon": soon, "logged": logged, "sql": alter, "set": set,
		},
		Setup: func(e *testscript.Env) error {
			e.Values[serverOf{}] = new(*process)
			return nil
		},
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
	}
}

// serverOf is the key of a script's server.
type serverOf struct{}

// exits STATUS COMMAND… runs a command and wants its exit status.
func exits(ts *testscript.TestScript, _ bool, args []string) {
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	status := 0
	if err := ts.Exec(args[1], args[2:]...); err != nil {
		var exit *exec.ExitError
		if !errors.As(err, &exit) {
			ts.Fatalf("%v", err)
		}
		status = exit.ExitCode()
	}
	if status != want {
		ts.Fatalf("the exit status is %d, want %d", status, want)
	}
}

// serve ARGUMENTS… starts a server on a free port; $SERVER is its URL.
func serve(ts *testscript.TestScript, _ bool, args []string) {
	p, err := launch(ts.Getenv("WORK"), scriptEnviron(ts), append([]string{"serve", "--listen", "127.0.0.1:0", "--ops", "off"}, args...)...)
	ts.Check(err)
	ts.Defer(p.kill)
	ts.Check(os.WriteFile(ts.MkAbs("server.log"), []byte(p.log), 0o600))
	ts.Setenv("SERVER", "http://"+p.address)
	ts.Setenv("FIRSTCOME_SERVER", "http://"+p.address)
	*ts.Value(serverOf{}).(**process) = p
}

// logged TEXT wants a text in the server's log from before it served.
func logged(ts *testscript.TestScript, _ bool, args []string) {
	if log := ts.ReadFile("server.log"); !strings.Contains(log, args[0]) {
		ts.Fatalf("the log does not say so: %s", log)
	}
}

// ends ends the server with SIGTERM and wants it to exit with 0.
func ends(ts *testscript.TestScript, _ bool, _ []string) {
	ts.Check((*ts.Value(serverOf{}).(**process)).stop())
}

// json wants that the last command printed JSON and nothing else.
func isJSON(ts *testscript.TestScript, _ bool, args []string) {
	if text := ts.ReadFile(args[0]); !json.Valid([]byte(text)) {
		ts.Fatalf("not JSON: %s", text)
	}
}

// soon STATUS COMMAND… runs a command repeatedly until it exits with the status.
func soon(ts *testscript.TestScript, _ bool, args []string) {
	until := time.Now().Add(patience)
	for {
		cmd := exec.Command(args[1], args[2:]...)
		cmd.Env = scriptEnviron(ts)
		err := cmd.Run()
		if strconv.Itoa(cmd.ProcessState.ExitCode()) == args[0] {
			return
		}
		if time.Now().After(until) {
			ts.Fatalf("after %v still: %v", patience, err)
		}
	}
}

// sql FILE STATEMENT changes a ledger's database without firstcome.
func alter(ts *testscript.TestScript, _ bool, args []string) {
	ts.Check(services.Execute(context.Background(), ts.MkAbs(args[0]), args[1]))
}

// set NAME FILE sets a variable to the last line of a file, such as stdout.
func set(ts *testscript.TestScript, _ bool, args []string) {
	lines := strings.Split(strings.TrimSpace(ts.ReadFile(args[1])), "\n")
	ts.Setenv(args[0], lines[len(lines)-1])
}

func scriptEnviron(ts *testscript.TestScript) []string {
	environ := []string{"PATH=" + ts.Getenv("PATH"), "HOME=" + ts.Getenv("HOME"), "TMPDIR=" + ts.Getenv("TMPDIR")}
	for _, name := range []string{"FIRSTCOME_KEY", "FIRSTCOME_SECRET", "FIRSTCOME_SERVER", "FIRSTCOME_LEDGER"} {
		if value := ts.Getenv(name); value != "" {
			environ = append(environ, name+"="+value)
		}
	}
	return environ
}
