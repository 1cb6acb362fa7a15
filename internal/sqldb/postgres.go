package sqldb

import (
	"context"
	"crypto/tls"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"net"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/pressly/goose/v3"
	"github.com/pressly/goose/v3/lock"

	"github.com/firstcome/firstcome/internal/doctor"
	"github.com/firstcome/firstcome/internal/trust"
)

// PostgreSQL is the dialect of PostgreSQL 13 and later.
var PostgreSQL = Dialect{
	name: "postgres", Limit: `LIMIT ?`, Shared: true, numbered: true, ForUpdate: ` FOR UPDATE`,
	// now() would be the time at which the transaction began, before it had its locks.
	Clock:    `(extract(epoch FROM clock_timestamp()) * 1000000)::bigint`,
	Classify: classifyPostgreSQL, code: codePostgreSQL, advise: advisePostgreSQL,
	damagedCodes: []string{"XX001", "XX002"}, // data_corrupted, index_corrupted
	lockedCodes:  []string{"55P03"},          // lock_not_available, which is lock_timeout's
	deniedCodes:  []string{"42501"},          // insufficient_privilege
	session:      sessionPostgreSQL, shown: `SELECT lower(name), setting FROM pg_settings WHERE lower(name) IN (%s)`,
	old: `WITH found AS (
			SELECT concat_ws(', ', usename, 'process ' || pid, nullif(application_name, ''), state) AS who, xact_start AS began
			FROM pg_stat_activity WHERE datname = current_database() AND backend_type = 'client backend' AND pid <> pg_backend_pid()
			AND (backend_xmin IS NOT NULL OR backend_xid IS NOT NULL)
			UNION ALL SELECT concat_ws(', ', owner, 'prepared transaction ' || gid), prepared FROM pg_prepared_xacts WHERE database = current_database())
		SELECT who, extract(epoch FROM clock_timestamp() - began)::bigint FROM found
		WHERE began <= clock_timestamp() - make_interval(secs => ?) ORDER BY began LIMIT 5`,
	mayMakeTables: `SELECT has_schema_privilege(current_schema(), 'CREATE')`,
	connector:     connectorPostgreSQL, examine: examinePostgreSQL, backup: "pg_dump --format=custom DATABASE",
	schema: schema{
		goose: goose.DialectPostgres, tables: `SELECT table_name FROM information_schema.tables WHERE table_schema = current_schema()`,
		locker: lockPostgreSQL, check: checkPostgreSQL,
	},
}

// advisePostgreSQL implements Dialect.advise.
func advisePostgreSQL(err error) string {
	switch codePostgreSQL(err) {
	case "28P01": // invalid_password
		return "give the user and password that the server knows"
	case "28000": // invalid_authorization_specification
		return "the server's pg_hba.conf has no line for this user, database and address that this connection fits: see sslmode, sslcert and sslkey, or add one"
	}
	return ""
}

// connectorPostgreSQL implements Dialect.connector. The URL is in libpq's format.
func connectorPostgreSQL(u *url.URL, p patience) (driver.Connector, error) {
	if err := checkFiles(u.Query()); err != nil {
		return nil, fmt.Errorf("the ledger's name: %w", err)
	}
	named := *u
	named.Scheme = "postgres"
	c, err := pgx.ParseConfig(named.String())
	if err != nil {
		return nil, errors.New("the ledger's name has an option that PostgreSQL does not know, or a bad value of one")
	}
	c.ConnectTimeout = connectTimeout / time.Duration(hosts(c))
	var options []stdlib.OptionOpenDB
	if p.primary {
		options = onlyPrimary(c)
	}
	dial := c.DialFunc
	c.DialFunc = func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := dial(ctx, network, address)
		if tcp, ok := conn.(*net.TCPConn); ok && err == nil {
			err = tcp.SetKeepAliveConfig(probes())
		}
		if err != nil || p.answer == 0 {
			return conn, err
		}
		return &impatient{Conn: conn, answer: p.answer}, nil
	}
	if c.RuntimeParams["application_name"] == "" {
		c.RuntimeParams["application_name"] = "firstcome"
	}
	connector := stdlib.GetConnector(*c, append(options, afterConnect(c, overridden(sessionPostgreSQL(p), u)))...)
	if p.primary {
		connector = newPostgreSQLConnector(connector)
	}
	return connector, nil
}

// hosts counts the hosts in a name. Each host gets an equal share of the connection timeout, so the driver tries the
// last host before the caller gives up, even if the other hosts hang.
func hosts(c *pgx.ConnConfig) int {
	all := map[string]bool{fmt.Sprint(c.Host, ":", c.Port): true}
	for _, other := range c.Fallbacks { // the same host again, without TLS, too
		all[fmt.Sprint(other.Host, ":", other.Port)] = true
	}
	return len(all)
}

// onlyPrimary makes connections accept only the primary, even if the name prefers other servers, and makes them bad
// when their server is no longer the primary: see primary.go.
func onlyPrimary(c *pgx.ConnConfig) []stdlib.OptionOpenDB {
	c.ValidateConnect = func(ctx context.Context, conn *pgconn.PgConn) error {
		err := pgconn.ValidateConnectTargetSessionAttrsReadWrite(ctx, conn)
		if errors.Is(err, pgconn.ErrReadOnlyConnection) {
			err = errStandby
		}
		return err
	}
	fatal := c.OnPgError
	c.OnPgError = func(conn *pgconn.PgConn, e *pgconn.PgError) bool {
		return fatal(conn, e) && e.Code != "25006" // read_only_sql_transaction
	}
	return []stdlib.OptionOpenDB{stdlib.OptionResetSession(func(_ context.Context, conn *pgx.Conn) error {
		if conn.PgConn().ParameterStatus("default_transaction_read_only") == "on" {
			return driver.ErrBadConn
		}
		return nil
	})}
}

// checkFiles reads the files that options name, because the driver's own error may contain the password.
func checkFiles(options url.Values) error {
	files, encrypted := trust.Take(options), options.Has("sslpassword")
	if files.Root == "system" {
		files.Root = ""
	}
	if encrypted {
		files.Cert, files.Key = "", ""
	}
	return files.Apply(&tls.Config{MinVersion: tls.VersionTLS12})
}

// classifyPostgreSQL implements Dialect.Classify. The codes are listed in PostgreSQL's appendix A. Their first two
// characters are the class.
func classifyPostgreSQL(err error) verdict {
	var e *pgconn.PgError
	var connect *pgconn.ConnectError
	switch {
	case errors.As(err, &e):
	case errors.As(err, &connect):
		return unreachable
	default:
		return classifyConnection(err)
	}
	switch e.Code {
	case "40001", // serialization_failure
		"40P01", // deadlock_detected
		"55P03", // lock_not_available: lock_timeout
		// Statements prepared before a migration changed a column, or on another connection
		// of a pooler: the driver prepares them again.
		"0A000", "26000":
		return again
	}
	switch e.Code[:2] {
	case "23": // integrity constraint violation
		return Refused
	case "08", // connection exception
		"57", // operator intervention: shutting down, starting up, cancelled
		"53", // insufficient resources
		"58": // system error: of its disk
		return unreachable
	case "25":
		switch e.Code {
		case "25P03", // idle_in_transaction_session_timeout
			"25006": // read_only_sql_transaction
			return unreachable
		}
	}
	return broken
}

// codePostgreSQL implements Dialect.code.
func codePostgreSQL(err error) string {
	if e, ok := errors.AsType[*pgconn.PgError](err); ok {
		return e.Code
	}
	return ""
}

// lockPostgreSQL returns the lock that lets one node migrate at a time: see schema.locker.
func lockPostgreSQL() (lock.SessionLocker, error) {
	return lock.NewPostgresSessionLocker(lock.WithLockTimeout(1, uint64(migrateTimeout/time.Second)))
}

// checkPostgreSQL implements schema.check.
func checkPostgreSQL(ctx context.Context, db *sql.DB) error {
	var encoding string
	if err := db.QueryRowContext(ctx, `SHOW server_encoding`).Scan(&encoding); err != nil {
		return err
	}
	if encoding != "UTF8" {
		return fmt.Errorf("the ledger's database has the encoding %s, which cannot hold every user id: make one with CREATE DATABASE firstcome ENCODING 'UTF8' TEMPLATE template0", encoding)
	}
	return checkColumns(ctx, db, `SELECT table_name, column_name, coalesce(collation_name, ''), coalesce(character_maximum_length, 2147483647)
		FROM information_schema.columns WHERE table_schema = current_schema()`, "C",
		`ALTER TABLE %s ALTER COLUMN %s TYPE text COLLATE "C"`)
}

// leastPostgreSQL is the oldest version that the ledger is tested on, as in server_version_num.
const leastPostgreSQL = 130000

// examinePostgreSQL implements Dialect.examine. None of its queries needs a privilege.
func examinePostgreSQL(e *exam) {
	const what = "server"
	s, err := e.settings(`SELECT name, setting FROM pg_settings WHERE name IN ('server_version', 'server_version_num', 'fsync',
		'synchronous_commit', 'full_page_writes', 'max_connections', 'superuser_reserved_connections', 'transaction_read_only')
		UNION ALL SELECT 'recovery', pg_is_in_recovery()::text
		UNION ALL SELECT 'used', count(*)::text FROM pg_stat_activity WHERE datname IS NOT NULL
		UNION ALL SELECT 'role', rolconnlimit::text FROM pg_roles WHERE rolname = current_user`)
	if err != nil {
		e.unknown(what, err)
		return
	}
	number, _ := strconv.Atoi(s["server_version_num"]) // 0 is too old
	e.Hold(number >= leastPostgreSQL, doctor.Fail, what, "PostgreSQL 13 or later", "PostgreSQL %s", s["server_version"])
	e.Hold(s["recovery"] == "false" && s["transaction_read_only"] == "off", doctor.Fail, "writes", "name the primary, and a user whose transactions are not read-only",
		"the server is a standby: %s; transactions are read-only: %s", s["recovery"], s["transaction_read_only"])
	e.want(s, "fsync", "on", doctor.Fail, "set it to on: else a coupon answered as recorded is lost when the machine stops")
	e.Hold(s["synchronous_commit"] == "on" || s["synchronous_commit"] == "remote_apply", doctor.Fail, "synchronous_commit",
		"leave it out of the ledger's name: else a coupon answered as recorded is lost", "%s", s["synchronous_commit"])
	e.want(s, "full_page_writes", "on", doctor.Fail, "set it to on, unless the disk never tears a page of 8 KiB")
	e.standby()
	e.old()
	e.isolation()
	e.pooler()
	most, _ := strconv.ParseInt(s["max_connections"], 10, 64)
	reserved, _ := strconv.ParseInt(s["superuser_reserved_connections"], 10, 64)
	used, _ := strconv.ParseInt(s["used"], 10, 64)
	most, fix := most-reserved, "raise max_connections"
	if own, err := strconv.ParseInt(s["role"], 10, 64); err == nil && own >= 0 && own < most {
		most, fix = own, "ALTER ROLE NAME CONNECTION LIMIT, higher"
	}
	e.connections(most, used, fix)
}

// old looks for transactions that were left open. They make each claim of a busy campaign read more old versions of its
// row.
func (e *exam) old() {
	const what = "old transactions"
	found, err := e.d.oldTransactions(e.ctx, e.db, time.Minute)
	if err != nil {
		e.unknown(what, err)
		return
	}
	var hidden int
	err = e.db.QueryRowContext(e.ctx, `SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND usename IS NOT NULL
		AND xact_start IS NULL AND (backend_xmin IS NOT NULL OR backend_xid IS NOT NULL)`).Scan(&hidden)
	if err != nil {
		e.unknown(what, err)
		return
	}
	if len(found) == 0 && hidden > 0 {
		e.Add(doctor.Warn, what, "GRANT pg_monitor TO NAME", "how old the transactions of %d sessions of other users are is unknown", hidden)
		return
	}
	var names []string
	for _, o := range found {
		names = append(names, fmt.Sprintf("%s, for %v", o.who, o.age))
	}
	e.Hold(len(found) == 0, doctor.Warn, what, "end them (SELECT pg_terminate_backend(PROCESS), ROLLBACK PREPARED): until then claims get slower, because vacuum removes no old versions",
		"%d are open for more than a minute. %s", len(found), strings.Join(names, "; "))
}

// pooler checks that a session always uses the same server process. Behind a pooler that assigns a process per
// transaction, another session's transaction may take this session's process.
func (e *exam) pooler() {
	const what = "sessions"
	const fix = "have the pooler pool sessions, not transactions: pool_mode = session, for this database at least"
	e.db.SetMaxOpenConns(2)
	defer e.db.SetMaxOpenConns(1)
	before, others, after, err := e.processes()
	if err != nil {
		e.Add(doctor.Fail, what, fix, "a session had no answer while another one was in a transaction: %v", err)
		return
	}
	e.Hold(before == after && before != others, doctor.Fail, what, fix, "the server process of one session was %d and then %d, and that of another %d", before, after, others)
}

// processes returns the server process of a session before and during a transaction of another session, and the process
// of that transaction.
func (e *exam) processes() (before, others, after int64, err error) {
	const process = `SELECT pg_backend_pid()`
	ctx, cancel := context.WithTimeout(e.ctx, connectTimeout)
	defer cancel()
	one, err := e.db.Conn(ctx)
	if err != nil {
		return 0, 0, 0, err
	}
	defer func() { _ = one.Close() }() // it was only read
	if err := one.QueryRowContext(ctx, process).Scan(&before); err != nil {
		return 0, 0, 0, err
	}
	tx, err := e.db.BeginTx(ctx, readCommitted())
	if err != nil {
		return 0, 0, 0, err
	}
	defer func() { _ = tx.Rollback() }() // it was only read
	err = errors.Join(tx.QueryRowContext(ctx, process).Scan(&others), one.QueryRowContext(ctx, process).Scan(&after))
	return before, others, after, err
}

// isolation checks the isolation level in a transaction that it begins as the ledger begins its own.
func (e *exam) isolation() {
	const what = "isolation"
	tx, err := e.db.BeginTx(e.ctx, readCommitted())
	if err != nil {
		e.unknown(what, err)
		return
	}
	defer func() { _ = tx.Rollback() }() // it was only read
	var level string
	if err := tx.QueryRowContext(e.ctx, `SHOW transaction_isolation`).Scan(&level); err != nil {
		e.unknown(what, err)
		return
	}
	e.Hold(level == "read committed", doctor.Fail, what, "let nothing between firstcome and the server change transactions", "transactions are %s, as the ledger asks", level)
}
