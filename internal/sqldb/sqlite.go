package sqldb

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"

	"github.com/gofrs/flock"
	"github.com/pressly/goose/v3"
	"modernc.org/sqlite"
	sqlitelib "modernc.org/sqlite/lib"

	"github.com/firstcome/firstcome/internal/doctor"
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
	writing := url.Values{"_pragma": append(common,
		"journal_mode(WAL)",     // readers do not wait for the writer
		"synchronous(FULL)",     // a commit is on the disk when it returns
		"wal_autocheckpoint(0)", // see checkpointer
	)}
	if write, err = sql.Open("sqlite", DSN(path, writing)); err != nil {
		return nil, nil, nil, err
	}
	write.SetMaxOpenConns(1)
	writing.Set("mode", "rw") // only the writer makes the file
	if checkpoints, err = sql.Open("sqlite", DSN(path, writing)); err != nil {
		return nil, nil, nil, errors.Join(err, write.Close())
	}
	checkpoints.SetMaxOpenConns(1)
	read, err = sql.Open("sqlite", DSN(path, url.Values{"mode": {"rw"}, "_pragma": append(common, "query_only(TRUE)")}))
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

// examineFile is Examine for a ledger that is a file.
func examineFile(ctx context.Context, path string) doctor.Findings {
	e := &exam{ctx: ctx}
	dir := filepath.Dir(path)
	e.Files(dir, path, path+"-wal", path+"-shm")
	e.Space(dir)
	e.Sync(dir)
	e.file(path)
	e.holder(path + ".lock")
	return e.Findings
}

// file adds whether there is a ledger that this binary can use, and whether it is in WAL mode.
func (e *exam) file(path string) {
	const what = "ledger"
	if err := checkLog(path); err != nil {
		e.Add(doctor.Fail, what, "see docs/runbooks/FirstcomeLedgerDown.md", "%v", err)
		return
	}
	if _, err := os.Stat(path); errors.Is(err, os.ErrNotExist) {
		e.Add(doctor.OK, what, "", "there is none yet: the first start of serve makes %s", path)
		return
	}
	l, err := OpenShared(e.ctx, path)
	if err != nil {
		e.Add(doctor.Fail, what, "the message says what to do", "%v", err)
		return
	}
	defer func() { _ = l.Close() }() // it was only read
	wrong, err := l.Verify(e.ctx)
	switch {
	case err != nil:
		e.Add(doctor.Fail, what, "restore a backup", "%v", err)
	case len(wrong) > 0:
		e.Add(doctor.Fail, what, "stop the server and restore a backup", "%s is damaged: %s", path, wrong[0])
	default:
		e.Add(doctor.OK, what, "", "%s has this firstcome's schema, and SQLite finds nothing wrong with it", path)
		e.journalMode(l)
	}
}

// journalMode adds whether commits go to a write-ahead log.
func (e *exam) journalMode(l *DB) {
	const what = "WAL"
	var mode string
	err := l.Read.QueryRowContext(e.ctx, `PRAGMA journal_mode`).Scan(&mode)
	switch {
	case err != nil:
		e.Add(doctor.Fail, what, "restore a backup", "%v", err)
	case mode != "wal":
		e.Add(doctor.Warn, what, "nothing: serve switches it on", "the ledger is not in WAL mode, as a fresh backup is")
	default:
		e.Add(doctor.OK, what, "", "commits go to the write-ahead log: readers do not wait")
	}
}

// holder adds which process holds the ledger's lock. It does not disturb that process.
func (e *exam) holder(name string) {
	const what, nobody = "lock", "nobody has the ledger"
	if _, err := os.Stat(name); errors.Is(err, os.ErrNotExist) {
		e.Add(doctor.OK, what, "", nobody)
		return
	}
	lock := flock.New(name, flock.SetFlag(os.O_RDWR))
	free, err := lock.TryLock()
	switch {
	case err != nil:
		e.Add(doctor.Fail, what, "let the user who runs serve write "+name, "%v", err)
	case free:
		_ = lock.Unlock() // it was free
		e.Add(doctor.OK, what, "", nobody)
	default:
		who, _ := os.ReadFile(name) // it is only shown
		e.Add(doctor.OK, what, "", "a firstcome has the ledger: %s", who)
	}
}
