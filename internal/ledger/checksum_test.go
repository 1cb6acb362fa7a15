package ledger_test

import (
	"crypto/sha256"
	"encoding/hex"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/firstcome/firstcome/internal/sqldb"
	"github.com/firstcome/firstcome/test/services"
	"github.com/firstcome/firstcome/test/stage"
)

// TestF56ALedgerOfADevelopmentBuildSaysWhatToDo has ledgers that other migrations than this binary's
// made, under the same version or an older or a newer one.
func TestF56ALedgerOfADevelopmentBuildSaysWhatToDo(t *testing.T) {
	const newer = `INSERT INTO goose_db_version (version_id, is_applied) VALUES (9999, TRUE)`
	for what, statements := range map[string][]string{
		"other tables":                 {`UPDATE schema_checksums SET checksum = 'another' WHERE version = 1`},
		"no checksum":                  {`DELETE FROM schema_checksums`},
		"no checksums":                 {`DROP TABLE schema_checksums`},
		"other tables of a newer one":  {`UPDATE schema_checksums SET checksum = 'another' WHERE version = 1`, newer},
		"no checksums, from a newer":   {`DROP TABLE schema_checksums`, newer},
		"older than its compatibility": {`DROP TABLE schema_checksums`, `DROP TABLE compatibility`},
	} {
		t.Run(what, func(t *testing.T) {
			onEach(t, func(t *testing.T, name string) {
				execute(t, services.Beside(t, migrated(t, name)), statements...)
				for how, err := range openings(t, name) {
					if strings.HasPrefix(what, "older") && how == "doctor" {
						continue // it takes them for none, and sends the operator to firstcome migrate
					}
					if err == nil {
						t.Errorf("opened %s it served", how)
						continue
					}
					wantAdvice(t, err.Error(), "made by a development build", "make a new ledger", "export first")
				}
			})
		})
	}
}

// TestALedgerKeepsTheChecksumsOfItsMigrations holds what a ledger keeps against the files.
func TestALedgerKeepsTheChecksumsOfItsMigrations(t *testing.T) {
	onEach(t, func(t *testing.T, name string) {
		migrated(t, name)
		dialect := "sqlite"
		if sqldb.OnServer(name) {
			dialect, _, _ = strings.Cut(name, ":")
			dialect = map[string]string{"mysql": "mysql", "mariadb": "mysql", "postgres": "postgres"}[dialect]
		}
		files, err := filepath.Glob("../sqldb/migrations/" + dialect + "/*.sql")
		if err != nil || len(files) == 0 {
			t.Fatal(files, err)
		}
		var want, got []string
		for _, file := range files {
			text, err := os.ReadFile(file)
			stage.Must(t, err)
			sum := sha256.Sum256(text)
			want = append(want, hex.EncodeToString(sum[:]))
		}
		rows, err := services.Beside(t, name).Query(`SELECT checksum FROM schema_checksums ORDER BY version`)
		stage.Must(t, err)
		defer rows.Close()
		for rows.Next() {
			var sum string
			stage.Must(t, rows.Scan(&sum))
			got = append(got, sum)
		}
		stage.Same(t, "checksums", want, got)
	})
}

// git runs git in a directory, and returns what it prints.
func git(t *testing.T, dir string, arguments ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "git", append([]string{"-c", "user.name=test", "-c", "user.email=test@localhost", "-c", "commit.gpgsign=false", "-c", "tag.gpgsign=false"}, arguments...)...)
	cmd.Dir = dir
	cmd.Env = slices.DeleteFunc(os.Environ(), func(v string) bool { return strings.HasPrefix(v, "GIT_") })
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("git %v: %v\n%s", arguments, err, out)
	}
	return string(out)
}

// editedSince returns the migrations below a directory of a work tree that are not as a tag has them, for
// each tag of a release behind which the work tree is.
func editedSince(t *testing.T, dir string) []string {
	t.Helper()
	var edited []string
	for tag := range strings.FieldsSeq(git(t, dir, "tag", "--list", "v*", "--merged", "HEAD")) {
		for file := range strings.FieldsSeq(git(t, dir, "diff", "--name-only", "--relative", "--no-renames", "--diff-filter=a", tag, "--", ".")) {
			edited = append(edited, tag+" "+file)
		}
	}
	return edited
}

// TestNoMigrationOfAReleaseIsEdited compares the migrations with those of each release. A tree without a
// repository, as of an archive, has none to compare with.
func TestNoMigrationOfAReleaseIsEdited(t *testing.T) {
	if _, err := os.Stat("../../.git"); os.IsNotExist(err) {
		return
	}
	if edited := editedSince(t, "../sqldb/migrations"); len(edited) > 0 {
		t.Errorf("edited since a release, whose ledgers would be refused: %q. Write a new migration instead", edited)
	}
}

// TestAMigrationThatIsEditedBehindATagIsFound makes a repository, and edits a migration before and behind its tag.
func TestAMigrationThatIsEditedBehindATagIsFound(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) {
		t.Helper()
		stage.Must(t, os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o700))
		stage.Must(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	want := func(what string, edited ...string) {
		t.Helper()
		if diff := cmp.Diff(edited, editedSince(t, filepath.Join(dir, "migrations"))); diff != "" {
			t.Errorf("%s (-want +got):\n%s", what, diff)
		}
	}
	commit := func() { git(t, dir, "add", "-A"); git(t, dir, "commit", "-q", "-m", "a commit") }
	git(t, dir, "init", "-q")
	write("migrations/sqlite/1.sql", "one")
	commit()
	write("migrations/sqlite/1.sql", "two")
	want("edited before the first release")
	commit()
	git(t, dir, "tag", "v1.0.0")
	write("migrations/sqlite/2.sql", "another")
	write("code.go", "package code")
	want("a new migration that is not committed")
	commit()
	want("a new migration")
	git(t, dir, "tag", "v1.1.0")
	write("migrations/sqlite/2.sql", "edited")
	want("not committed", "v1.1.0 sqlite/2.sql")
	write("migrations/sqlite/1.sql", "three")
	commit()
	want("committed", "v1.0.0 sqlite/1.sql", "v1.1.0 sqlite/1.sql", "v1.1.0 sqlite/2.sql")
	stage.Must(t, os.Rename(filepath.Join(dir, "migrations/sqlite/1.sql"), filepath.Join(dir, "migrations/sqlite/3.sql")))
	want("renamed", "v1.0.0 sqlite/1.sql", "v1.1.0 sqlite/1.sql", "v1.1.0 sqlite/2.sql")
}
