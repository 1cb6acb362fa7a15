//go:build linux

package ledger_test

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"testing"

	"github.com/firstcome/firstcome/test/stage"
)

// TestABackupIsItsOwnersAloneAndFollowsNoLink looks at the copy as Backup leaves it: no later step corrects its mode.
func TestABackupIsItsOwnersAloneAndFollowsNoLink(t *testing.T) {
	t.Parallel()
	name := migrated(t, file(t))
	l := reader(t, name)
	cut, cancel := context.WithCancel(t.Context())
	cancel()
	if err := l.Backup(cut, name+".copy"); err == nil {
		t.Error("a backup that is cut off succeeds")
	}
	stage.Must(t, l.Backup(t.Context(), name+".copy")) // what was cut off left no file
	info, err := os.Stat(name + ".copy")
	stage.Must(t, err)
	if info.Mode() != 0o600 || info.Size() == 0 {
		t.Errorf("the copy has mode %v and %d bytes", info.Mode(), info.Size())
	}
	stage.Must(t, os.Symlink("target", name+".link"))
	if err := l.Backup(t.Context(), name+".link"); !errors.Is(err, fs.ErrExist) {
		t.Errorf("a backup into a link to nothing: %v", err)
	}
}
