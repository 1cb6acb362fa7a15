package ledger

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"net/url"

	"github.com/pressly/goose/v3"
	"modernc.org/sqlite"
	sqlitelib "modernc.org/sqlite/lib"
)

//go:embed migrations/sqlite/*.sql
var migrations embed.FS

// readers is the number of connections that read: enough for both cores of a
// small machine while one waits for the disk.
const readers = 4

// openSQLite returns the one connection that writes, a pool that reads, and a
// connection that copies the log to the database.
func openSQLite(path string) (write, read, checkpoints *sql.DB, err error) {
	common := []string{
		"busy_timeout(5000)",  // another process may be adding a key
		"cache_size(-8192)",   // 8 MiB a connection, so that memory does not grow with the ledger; larger ones gained nothing in a trial
		"temp_store(MEMORY)",  // statement journals need no file
		"foreign_keys(FALSE)", // the writer reads the campaign in the same transaction
	}
	writing := dsn(path, url.Values{"_pragma": append(common,
		"journal_mode(WAL)",     // readers do not wait for the writer
		"synchronous(FULL)",     // a commit is on the disk when it returns
		"wal_autocheckpoint(0)", // see checkpointer
	)})
	if write, err = sql.Open("sqlite", writing); err != nil {
		return nil, nil, nil, err
	}
	write.SetMaxOpenConns(1)
	if checkpoints, err = sql.Open("sqlite", writing); err != nil {
		return nil, nil, nil, errors.Join(err, write.Close())
	}
	checkpoints.SetMaxOpenConns(1)
	read, err = sql.Open("sqlite", dsn(path, url.Values{"_pragma": append(common, "query_only(TRUE)")}))
	if err != nil {
		return nil, nil, nil, errors.Join(err, write.Close(), checkpoints.Close())
	}
	read.SetMaxOpenConns(readers)
	read.SetMaxIdleConns(readers)
	return write, read, checkpoints, nil
}

func dsn(path string, options url.Values) string {
	return (&url.URL{Scheme: "file", Opaque: (&url.URL{Path: path}).EscapedPath(), RawQuery: options.Encode()}).String()
}

// isMachine tells whether an error is one of the machine or the connection,
// rather than the schema's refusal of a job or the job's own.
func isMachine(err error) bool {
	var e *sqlite.Error
	return errors.As(err, &e) && e.Code()&0xff != sqlitelib.SQLITE_CONSTRAINT ||
		errors.Is(err, sql.ErrConnDone) || errors.Is(err, driver.ErrBadConn)
}

func migrator(db *sql.DB) (*goose.Provider, error) {
	dir, err := fs.Sub(migrations, "migrations/sqlite")
	if err != nil {
		return nil, err
	}
	return goose.NewProvider(goose.DialectSQLite3, db, dir)
}

// migrate brings the schema up to this binary's. Each step is one transaction,
// so that a migration that is killed goes on where it was.
func migrate(ctx context.Context, db *sql.DB) error {
	m, err := migrator(db)
	if err != nil {
		return err
	}
	has, wants, err := m.GetVersions(ctx)
	if err != nil {
		return err
	}
	if has > wants {
		return newerSchema(has, wants)
	}
	_, err = m.Up(ctx)
	return err
}

// checkSchema returns an error that says what to do if the schema is not this binary's.
func checkSchema(ctx context.Context, db *sql.DB) error {
	m, err := migrator(db)
	if err != nil {
		return err
	}
	var has int64
	if err := db.QueryRowContext(ctx, `SELECT max(version_id) FROM goose_db_version`).Scan(&has); err != nil {
		return fmt.Errorf("this is not a ledger of firstcome, or an empty one: %w", err)
	}
	sources := m.ListSources()
	switch wants := sources[len(sources)-1].Version; {
	case has > wants:
		return newerSchema(has, wants)
	case has < wants:
		return fmt.Errorf("the ledger's schema is version %d and this firstcome needs %d: run firstcome migrate", has, wants)
	}
	return nil
}

func newerSchema(has, wants int64) error {
	return fmt.Errorf("the ledger's schema is version %d and this firstcome knows only %d: run the newer firstcome that migrated it", has, wants)
}
