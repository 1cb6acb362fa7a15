//go:build linux

package e2e_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/firstcome/firstcome/test/services"
	"github.com/firstcome/firstcome/test/stage"
)

// binaryVariable names the binary to a test that runs itself again in a child process.
const binaryVariable = "E2E_BINARY"

// patience bounds every wait of these tests, for slow machines under the race detector.
const patience = 60 * time.Second

func TestMain(m *testing.M) { os.Exit(run(m)) }

func run(m *testing.M) (status int) {
	if firstcomeBinary() == "" {
		dir, err := os.MkdirTemp("", "firstcome-e2e")
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		defer os.RemoveAll(dir)
		if err := build(filepath.Join(dir, "firstcome")); err != nil {
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
func build(file string) error {
	cmd := exec.Command("go", "build", "-o", file, "../../cmd/firstcome")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if underRace {
		// SQLite is C that was translated: no code of ours, and slower with the detector.
		cmd = exec.Command("go", "build", "-race", "-gcflags=modernc.org/...=-race=false", "-o", file, "../../cmd/firstcome")
	}
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("build firstcome: %w\n%s", err, out)
	}
	return os.Setenv(binaryVariable, file)
}

func firstcomeBinary() string { return os.Getenv(binaryVariable) }

// rounds is stage.Rounds: a test repeats its fault a few times, or many times in a soak.
func rounds(few, many int) int { return stage.Rounds(few, many) }
