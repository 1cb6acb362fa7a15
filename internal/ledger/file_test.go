package ledger_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/firstcome/firstcome/internal/ledger"
	"github.com/firstcome/firstcome/internal/sqldb"
	"github.com/firstcome/firstcome/test/stage"
)

// TestF55TheLockIsOfTheFileByWhateverNameItIsOpened opens one ledger by two names, one after the other, before
// there is a file and behind it.
func TestF55TheLockIsOfTheFileByWhateverNameItIsOpened(t *testing.T) {
	t.Parallel()
	for what, second := range map[string]string{
		"a link beside it":    "data/link.db",
		"a link elsewhere":    "link.db",
		"a link to a link":    "chain.db",
		"an absolute link":    "absolute.db",
		"a linked directory":  "linked/firstcome.db",
		"a link in such":      "linked/link.db",
		"the same, otherwise": "data/../data/./firstcome.db",
	} {
		t.Run(what, func(t *testing.T) {
			for _, exists := range []bool{false, true} {
				dir := t.TempDir()
				at := func(name string) string { return filepath.Join(dir, filepath.FromSlash(name)) }
				file, other := at("data/firstcome.db"), dir+"/"+second
				stage.Must(t, os.Mkdir(at("data"), 0o700))
				for name, target := range map[string]string{
					"data/link.db": "firstcome.db", "link.db": "data/firstcome.db", "chain.db": "link.db", "absolute.db": file, "linked": "data",
				} {
					stage.Must(t, os.Symlink(target, at(name)))
				}
				if exists {
					migrated(t, file)
				}
				for _, names := range [][2]string{{other, file}, {file, other}} {
					l, stop := serve(t, names[0], ledger.Options{})
					if !exists {
						create(t, l, "c", 1)
						exists = true
					}
					wantAdvice(t, openError(t, names[1]), "another firstcome has the ledger", "process ", "a test")
					stop()
				}
				beside, err := filepath.Glob(dir + "/*.db-*")
				if more, err2 := filepath.Glob(dir + "/*.lock"); err != nil || err2 != nil || len(beside)+len(more) > 0 {
					t.Errorf("beside the links there are %q and %q: %v, %v", beside, more, err, err2)
				}
			}
		})
	}
}

// TestF55ALedgerWithTwoNamesOnTheDiskIsRefused gives it a hard link: no name is the file's own then.
func TestF55ALedgerWithTwoNamesOnTheDiskIsRefused(t *testing.T) {
	path := file(t)
	migrated(t, path)
	other := path + ".other"
	stage.Must(t, os.Link(path, other))
	for _, name := range []string{path, other} {
		wantAdvice(t, openError(t, name), "2 names (hard links)", "-samefile "+name)
		if _, err := ledger.OpenShared(t.Context(), name); err == nil || !strings.Contains(err.Error(), "hard links") {
			t.Errorf("beside others it got %v", err)
		}
	}
	stage.Must(t, os.Remove(other))
	migrated(t, path)
}

// TestAPathThatCannotBeFollowedIsLeftAsItIs has links that lead to themselves and into a directory that is missing.
func TestAPathThatCannotBeFollowedIsLeftAsItIs(t *testing.T) {
	dir := t.TempDir()
	for name, target := range map[string]string{"round.db": "round.db", "lost.db": "missing/firstcome.db"} {
		path := filepath.Join(dir, name)
		stage.Must(t, os.Symlink(target, path))
		stage.Same(t, name, path, sqldb.File(path))
		openError(t, path)
	}
	stage.Same(t, "a directory that is missing", "missing/firstcome.db", sqldb.File("missing/firstcome.db"))
	stage.Same(t, "a plain name", "firstcome.db", sqldb.File("firstcome.db"))
}
