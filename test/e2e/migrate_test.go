//go:build linux && !check

package e2e_test

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/firstcome/firstcome/test/services"
	"github.com/firstcome/firstcome/test/stage"
)

// alter changes a ledger without firstcome.
func alter(t *testing.T, file string, statements ...string) {
	t.Helper()
	stage.Must(t, services.Execute(t.Context(), file, statements...))
}

// TestF56AMigrationThatIsKilledAtAWriteGoesOn kills firstcome migrate at its first write to the file, its second, fourth and so on, until it
// has done before it is killed.
func TestF56AMigrationThatIsKilledAtAWriteGoesOn(t *testing.T) {
	const writes = "pwrite64"
	for killed, n := true, 1; killed; n *= 2 {
		dir := t.TempDir()
		line := strace(t, filepath.Join(t.TempDir(), "trace"), "-e", "trace="+writes, "-e", fmt.Sprintf("inject=%s:signal=KILL:when=%d", writes, n))
		cmd := exec.Command(line[0], append(line[1:], firstcomeBinary(), "migrate")...)
		cmd.Dir, cmd.Env = dir, environ()
		killed = cmd.Run() != nil
		if n == 1 && !killed {
			t.Error("no write was seen")
		}
		for _, command := range []string{"migrate", "audit"} {
			if status, output := execute(t, dir, command); status != 0 {
				t.Fatalf("after a kill at write %d %s exits with %d and says: %s", n, command, status, output)
			}
		}
		t.Logf("write %d: killed %t", n, killed)
	}
}

func TestF56OneOfTwoMigratesAndTheOtherIsToldWho(t *testing.T) {
	p := serve(t, launch{})
	status, output := execute(t, p.dir, "migrate")
	if status != 1 || !strings.Contains(output, "another firstcome has the ledger") {
		t.Errorf("beside a server, migrate exits with %d and says: %s", status, output)
	}
	p.stop()
}

// expand returns what a newer release's migration may do to a ledger while the
// release before it serves.
func expand() []string {
	return []string{
		`INSERT INTO goose_db_version (version_id, is_applied) VALUES (99999, 1)`,
		`ALTER TABLE campaigns ADD COLUMN colour TEXT`,
		`ALTER TABLE coupons ADD COLUMN weight INTEGER NOT NULL DEFAULT 1`,
		`CREATE INDEX coupons_weight ON coupons (weight)`,
		`CREATE TABLE more (id INTEGER)`,
	}
}

func TestF56TheReleaseBeforeServesOnANewerSchemaThatIsCompatible(t *testing.T) {
	p := serve(t, launch{})
	p.create("spring", 10_000_000)
	p.stop()
	alter(t, p.ledger(), expand()...)
	p = serve(t, launch{dir: p.dir})
	p.create("autumn", 10_000_000)
	for _, id := range []string{"spring", "autumn"} {
		if answer, err := p.calls.Claim(t.Context(), id, "u"); err != nil || answer.Outcome != "issued" {
			t.Errorf("a claim of %s gets %+v, %v", id, answer, err)
		}
	}
	p.audit()
	p.stop()
	if status, output := execute(t, p.dir, "migrate"); status != 0 {
		t.Errorf("migrate exits with %d and says: %s", status, output)
	}
}

func TestF56ASchemaNewerThanTheBinaryIsRefusedWithAdvice(t *testing.T) {
	dir := t.TempDir()
	if status, output := execute(t, dir, "migrate"); status != 0 {
		t.Fatal(output)
	}
	file := filepath.Join(dir, "firstcome.db")
	alter(t, file, append(expand(), `UPDATE compatibility SET compatible_from = 99999`)...)
	for _, command := range [][]string{{"serve", "--ops", "off", "--listen", "127.0.0.1:0"}, {"migrate"}, {"key", "list"}, {"audit"}, {"backup", "b.db"}} {
		status, output := execute(t, dir, command...)
		if status != 1 || !strings.Contains(output, "run the newer firstcome") {
			t.Errorf("%v exits with %d and says: %s", command, status, output)
		}
	}
}
