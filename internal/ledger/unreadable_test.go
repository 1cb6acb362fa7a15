package ledger_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/firstcome/firstcome/internal/ledger"
)

// TestF55AFileThatCannotBeReadIsStillALedger puts a directory where SQLite keeps its
// log: what then fails says nothing of what is in the file.
func TestF55AFileThatCannotBeReadIsStillALedger(t *testing.T) {
	path := filepath.Join(t.TempDir(), "l.db")
	_, stop := open(t, path, nil)
	stop()
	if err := os.RemoveAll(path + "-wal"); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(path+"-wal", 0o700); err != nil {
		t.Fatal(err)
	}
	_, err := ledger.OpenShared(t.Context(), path)
	if err == nil || strings.Contains(err.Error(), "not a ledger") || !strings.Contains(err.Error(), "needs the right to write") {
		t.Errorf("a ledger whose log cannot be read: %v", err)
	}
	none := filepath.Join(t.TempDir(), "text")
	if err := os.WriteFile(none, []byte(strings.Repeat("no database. ", 100)), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := ledger.OpenShared(t.Context(), none); err == nil || !strings.Contains(err.Error(), "not a ledger") {
		t.Errorf("a file of text: %v", err)
	}
}
