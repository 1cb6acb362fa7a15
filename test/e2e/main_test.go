//go:build linux && !check

package e2e_test

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"

	"github.com/firstcome/firstcome/test/services"
	"github.com/firstcome/firstcome/test/stage"
)

// binaryVariable names the binary to a test that runs itself again in a child process.
const binaryVariable = "E2E_BINARY"

func TestMain(m *testing.M) { os.Exit(run(m)) }

func run(m *testing.M) (status int) {
	if firstcomeBinary() == "" {
		dir, err := os.MkdirTemp("", "firstcome-e2e")
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		defer os.RemoveAll(dir)
		file := filepath.Join(dir, "firstcome")
		if err := errors.Join(build(file), os.Setenv(binaryVariable, file)); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
	}
	status = m.Run()
	if err := services.Leaks(); err != nil && status == 0 {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return status
}

// build makes the binary without cgo, as it is released; for tests that run under the race detector it has
// the detector, too, since theirs does not see into other processes.
func build(file string, options ...string) error {
	cgo := "CGO_ENABLED=0"
	if underRace {
		// SQLite is C that was translated: no code of ours, and slower with the detector.
		cgo, options = "CGO_ENABLED=1", append(options, "-race", "-gcflags=modernc.org/...=-race=false")
	}
	cmd := exec.Command("go", slices.Concat([]string{"build", "-o", file}, options, []string{"../../cmd/firstcome"})...)
	cmd.Env = append(os.Environ(), cgo)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("build firstcome: %w\n%s", err, out)
	}
	return nil
}

func firstcomeBinary() string { return os.Getenv(binaryVariable) }

// rounds is stage.Rounds: a test repeats its fault a few times, or many times in a soak.
func rounds(few, many int) int { return stage.Rounds(few, many) }
