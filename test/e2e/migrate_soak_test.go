//go:build linux && soak && !race

package e2e_test

import (
	"os/exec"
	"testing"
	"time"

	"github.com/firstcome/firstcome/test/stage"
)

// TestF56AMigrationThatIsKilledAtAnyInstantGoesOn kills firstcome migrate after each part of the time that it takes. make test has
// TestF56AMigrationThatIsCutAtAnyPointGoesOn of internal/ledger.
func TestF56AMigrationThatIsKilledAtAnyInstantGoesOn(t *testing.T) {
	kills := rounds(12, 200)
	started := time.Now()
	if status, output := execute(t, t.TempDir(), "migrate"); status != 0 {
		t.Fatal(output)
	}
	undisturbed := time.Since(started)
	for n := range kills {
		dir := t.TempDir()
		cmd := exec.Command(firstcomeBinary(), "migrate")
		cmd.Dir, cmd.Env = dir, environ()
		stage.Must(t, cmd.Start())
		delay := undisturbed * time.Duration(n+1) / time.Duration(kills)
		kill := time.AfterFunc(delay, func() { _ = cmd.Process.Kill() })
		_ = cmd.Wait() // killed, or done before
		kill.Stop()
		for _, command := range []string{"migrate", "audit"} {
			if status, output := execute(t, dir, command); status != 0 {
				t.Fatalf("after a kill at %v %s exits with %d and says: %s", delay, command, status, output)
			}
		}
	}
}
