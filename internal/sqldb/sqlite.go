package sqldb

import (
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"net/url"

	"github.com/pressly/goose/v3"
	"modernc.org/sqlite"
	sqlitelib "modernc.org/sqlite/lib"
)

// SQLite is the dialect of SQLite: one process decides, and it has one writer. Limit is an expression, because SQLite
// prepares a statement again each time a plain argument of LIMIT is bound.
var SQLite = Dialect{
	name: "sqlite", Limit: `LIMIT ? + 0`, Clock: `NULL`,
	Classify: classifySQLite, code: codeSQLite, damagedCodes: []string{fmt.Sprint(sqlitelib.SQLITE_CORRUPT)},
	schema: schema{goose: goose.DialectSQLite3, tables: `SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite\_%' ESCAPE '\'`},
}

// readers is the number of connections that read. It keeps both cores of a small machine busy while one connection
// waits for the disk.
const readers = 4

// openSQLite returns the only connection that writes, a pool of connections that read, and a connection that copies
// the log to the database.
func openSQLite(path string) (write, read, checkpoints *sql.DB, err error) {
	common := []string{
		"busy_timeout(5000)",  // another process may be adding a key
		"cache_size(-8192)",   // 8 MiB a connection, so that memory does not grow with the ledger; larger ones gained nothing in a trial
		"temp_store(MEMORY)",  // statement journals need no file
		"foreign_keys(FALSE)", // the writer reads the campaign in the same transaction
	}
	writing := DSN(path, url.Values{"_pragma": append(common,
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
	read, err = sql.Open("sqlite", DSN(path, url.Values{"_pragma": append(common, "query_only(TRUE)")}))
	if err != nil {
		return nil, nil, nil, errors.Join(err, write.Close(), checkpoints.Close())
	}
	read.SetMaxOpenConns(readers)
	read.SetMaxIdleConns(readers)
	return write, read, checkpoints, nil
}

func DSN(path string, options url.Values) string {
	return (&url.URL{Scheme: "file", Opaque: (&url.URL{Path: path}).EscapedPath(), RawQuery: options.Encode()}).String()
}

// isOther reports whether an error means that the file can be read but is not a ledger: it lacks the table, or is no
// database.
func isOther(err error) bool {
	e, ok := errors.AsType[*sqlite.Error](err)
	return ok && (e.Code()&0xff == sqlitelib.SQLITE_ERROR || e.Code()&0xff == sqlitelib.SQLITE_NOTADB)
}

// classifySQLite implements Dialect.Classify.
func classifySQLite(err error) verdict {
	var e *sqlite.Error
	switch {
	case errors.Is(err, ErrUnknown), errors.Is(err, errDriver), errors.Is(err, sql.ErrConnDone), errors.Is(err, driver.ErrBadConn):
		return unreachable
	case errors.Is(err, ErrRowMoved):
		return Refused
	case !errors.As(err, &e):
		return NotOurs
	case e.Code()&0xff == sqlitelib.SQLITE_CONSTRAINT:
		return Refused
	}
	return unreachable
}

// codeSQLite implements Dialect.code.
func codeSQLite(err error) string {
	if e, ok := errors.AsType[*sqlite.Error](err); ok {
		return fmt.Sprint(e.Code() & 0xff)
	}
	return ""
}

// ErrRowMoved means that a campaign's row differs from the row that this process remembers, because another process
// wrote it. The transaction is rolled back, and its claims are decided again by the row in the file.
var ErrRowMoved = errors.New("the campaign's row was changed by somebody else")
