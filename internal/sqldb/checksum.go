package sqldb

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/pressly/goose/v3"
)

// A ledger stores the checksum of each migration that created it. Until the first release, migrations are edited in
// place, so a version alone does not show whether a ledger has the tables that a binary knows.

// A summed file system appends to each migration the statements that store its checksum. So a migration and
// its checksum share a transaction, on databases whose transactions cover changes of tables.
type summed struct{ fs.FS }

// Open returns a file, or a directory as it is.
func (s summed) Open(name string) (fs.File, error) {
	f, err := s.FS.Open(name)
	if err != nil || path.Ext(name) != ".sql" {
		return f, err
	}
	sum, err := checksum(s.FS, name)
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	version, err := goose.NumericComponent(name)
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	// The first statement is for MySQL: a migration that was killed after the second statement runs again.
	keep := fmt.Sprintf("\nDELETE FROM schema_checksums WHERE version = %[1]d;\nINSERT INTO schema_checksums (version, checksum) VALUES (%[1]d, '%[2]s');\n", version, sum)
	return appended{f, io.MultiReader(f, strings.NewReader(keep))}, nil
}

// An appended file is a file followed by more text.
type appended struct {
	fs.File
	all io.Reader
}

// Read reads the file, and then the text that follows it.
func (a appended) Read(b []byte) (int, error) { return a.all.Read(b) }

func checksum(dir fs.FS, name string) (string, error) {
	text, err := fs.ReadFile(dir, name)
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:]), nil
}

// errDevelopment means that other migrations than this binary's created the ledger.
var errDevelopment = errors.New("the ledger was made by a development build of firstcome, with other tables than this one's")

const adviceDevelopment = "make a new ledger: give serve another file or an empty database, and make its campaigns under new ids. " +
	"What is to be kept, export first, with the build that made it. If a backup was restored, restore all of its tables"

// checkSums returns an error that says what to do if other migrations than this binary's created the ledger's tables.
// has is the version of the ledger's schema.
func checkSums(ctx context.Context, d *Dialect, db *sql.DB, m *goose.Provider, has int64) error {
	kept, err := keptSums(ctx, d, db)
	if err != nil {
		return err
	}
	dir, err := migrationsOf(d)
	if err != nil {
		return err
	}
	for _, source := range m.ListSources() {
		sum, err := checksum(dir, path.Base(source.Path))
		if err != nil {
			return err
		}
		if source.Version <= has && kept[source.Version] != sum {
			return fmt.Errorf("%w: %s", errDevelopment, adviceDevelopment)
		}
	}
	return nil
}

// keptSums returns the checksums that the ledger stores, by version. It returns none if the ledger has no table for
// them.
func keptSums(ctx context.Context, d *Dialect, db *sql.DB) (map[int64]string, error) {
	there, err := tablesOf(ctx, d, db)
	if err != nil || !slices.Contains(there, "schema_checksums") {
		return nil, err
	}
	const query = `SELECT version, checksum FROM schema_checksums`
	rows, err := db.QueryContext(ctx, query)
	if err != nil {
		return nil, fmt.Errorf("read which migrations made the ledger: %w", d.explain(query, err))
	}
	kept := map[int64]string{}
	err = EachRow(rows, nil, func(take Scan) error {
		var version int64
		var sum string
		err := take(&version, &sum)
		kept[version] = sum
		return err
	})
	return kept, Wrap(err, "read which migrations made the ledger")
}
