package sqldb

import (
	"context"
	"crypto/tls"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/url"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/pressly/goose/v3"
	"github.com/pressly/goose/v3/lock"

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
	connector:    connectorPostgreSQL, examine: examinePostgreSQL, backup: "pg_dump --format=custom DATABASE",
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
	if p.answer > 0 {
		dial := c.DialFunc
		c.DialFunc = func(ctx context.Context, network, address string) (net.Conn, error) {
			conn, err := dial(ctx, network, address)
			if err != nil {
				return nil, err
			}
			return &impatient{Conn: conn, answer: p.answer}, nil
		}
	}
	for name, value := range map[string]string{"application_name": "firstcome", "timezone": "UTC"} {
		if _, set := c.RuntimeParams[name]; !set {
			c.RuntimeParams[name] = value
		}
	}
	settings := map[string]string{
		"lock_timeout":                        fmt.Sprint(lockTimeout.Milliseconds()),
		"idle_in_transaction_session_timeout": fmt.Sprint(p.idle.Milliseconds()),
		// A bitmap scan returns rows in no order. If a campaign has no statistics yet, PostgreSQL scans and sorts all
		// its coupons for each page. In a trial with a million coupons a page took 600 ms.
		"enable_bitmapscan": "off",
	}
	if p.primary {
		maps.Copy(settings, seeks)
	}
	return stdlib.GetConnector(*c, append(options, afterConnect(c, settings))...), nil
}

// afterConnect sets the settings of a session after it connects. Values in the ledger's name take precedence.
// PgBouncer refuses a connection that sends settings at its start, or drops them.
func afterConnect(c *pgx.ConnConfig, settings map[string]string) stdlib.OptionOpenDB {
	var all strings.Builder
	for name, value := range settings {
		if asked, set := c.RuntimeParams[name]; set {
			value = asked
			delete(c.RuntimeParams, name)
		}
		fmt.Fprintf(&all, "SET %s = '%s';", name, strings.ReplaceAll(value, "'", "''"))
	}
	return stdlib.OptionAfterConnect(func(ctx context.Context, conn *pgx.Conn) error {
		return conn.PgConn().Exec(ctx, all.String()).Close()
	})
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

// seeks are settings under which look-ups find their rows by an index, even if the tables were small at first.
//
// The driver prepares each statement once, and the server may then keep its plan. A plan that was made for a campaign
// of 60 coupons reads the whole table for each user, even after the table has grown: in a trial, 52,000,000 rows for
// 10,240 claims. So the settings turn off sequential scans if there is an index. A new plan for each execution is not
// enough: it still read 13 rows a claim while the table was small. No plan is kept either, because another index may
// become the better one. Planning costs about 15 µs a batch.
//
// A look-up that selects only by user in a subquery with OFFSET 0 needs no setting against scans, but it reads each
// user's coupons of all campaigns.
var seeks = map[string]string{
	"plan_cache_mode": "force_custom_plan",
	"enable_seqscan":  "off",
	"jit":             "off", // a query without an index gets a huge cost, so the server would compile it
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
