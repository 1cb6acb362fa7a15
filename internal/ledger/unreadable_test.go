package ledger_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/firstcome/firstcome/internal/ledger"
	"github.com/firstcome/firstcome/test/stage"
)

// TestF55AFileThatCannotBeReadIsStillALedger puts a directory where SQLite keeps its
// log: what then fails says nothing of what is in the file.
func TestF55AFileThatCannotBeReadIsStillALedger(t *testing.T) {
	path := filepath.Join(t.TempDir(), "l.db")
	migrated(t, path)
	stage.Must(t, os.RemoveAll(path+"-wal"))
	stage.Must(t, os.Mkdir(path+"-wal", 0o700))
	_, err := ledger.OpenShared(t.Context(), path)
	if err == nil || strings.Contains(err.Error(), "not a ledger") || !strings.Contains(err.Error(), "needs the right to write") {
		t.Errorf("a ledger whose log cannot be read: %v", err)
	}
	none := filepath.Join(t.TempDir(), "text")
	stage.Must(t, os.WriteFile(none, []byte(strings.Repeat("no database. ", 100)), 0o600))
	if _, err := ledger.OpenShared(t.Context(), none); err == nil || !strings.Contains(err.Error(), "not a ledger") {
		t.Errorf("a file of text: %v", err)
	}
}
