package sqldb

import (
	"context"
	"database/sql/driver"
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"

	"github.com/firstcome/firstcome/internal/doctor"
)

// A setting is a setting of a session that the ledger relies on. Each connection sets it when it opens, because the
// default of a server, a database or a user may be anything. doctor compares a fresh session with the same list.
type setting struct {
	name, value string // as the server shows them
	// on says which servers have the setting. It is empty if all have it. On PostgreSQL it is the first version. On
	// MariaDB and MySQL it opens a comment that only one of them runs, or is apart.
	on string
	// stronger is a value that is left as it is. It may be empty.
	stronger string
}

const (
	onMariaDB = "M!"
	onMySQL   = "!80016"
	apart     = "-" // a statement of its own sets it: see mySQLStatements
)

// sessionMySQL returns the settings of a session on MariaDB or MySQL. The sessions that decide or conclude also wait, on
// Galera, for what other servers committed before.
func sessionMySQL(p patience) []setting {
	lock, idle := lockTimeout, 8*time.Hour
	if p == migrating {
		lock = migrateTimeout // a statement waits for the transactions of a table
	}
	if p.idle > 0 {
		idle = p.idle
	}
	all := []setting{
		{name: "max_statement_time", value: "0", on: onMariaDB}, // the driver and the caller have limits
		{name: "max_execution_time", value: "0", on: onMySQL},
		{name: "autocommit", value: "ON"},            // a statement outside of a transaction is committed, and reads what is committed now
		{name: "completion_type", value: "NO_CHAIN"}, // COMMIT begins no transaction, and ends no connection
		{name: "sql_big_selects", value: "ON"},       // max_join_size refuses nothing
		{name: "sql_select_limit", value: "18446744073709551615"},
		{name: "sql_safe_updates", value: "OFF"},                      // an UPDATE needs no key
		{name: "sql_auto_is_null", value: "OFF"},                      // IS NULL finds NULL, and not the last id
		{name: "check_constraint_checks", value: "ON", on: onMariaDB}, // the constraints repeat the promises
		{name: "foreign_key_checks", value: "ON"},
		{name: "unique_checks", value: "ON"},
		{name: "default_storage_engine", value: "InnoDB"}, // goose does not name one
		{name: "max_sort_length", value: "1024"},          // longer than an id
		{name: "character_set_client", value: "utf8mb4"},
		{name: "character_set_results", value: "utf8mb4"},
		{name: "collation_connection", value: "utf8mb4_bin"},
		{name: "time_zone", value: "+00:00"},
		{name: "lock_wait_timeout", value: seconds(lock)},
		{name: "innodb_lock_wait_timeout", value: seconds(lockTimeout)},
		{name: "wait_timeout", value: seconds(idle)},
		{name: "idle_transaction_timeout", value: "0", on: onMariaDB}, // wait_timeout is the limit
		{name: "idle_readonly_transaction_timeout", value: "0", on: onMariaDB},
		{name: "idle_write_transaction_timeout", value: "0", on: onMariaDB},
		// A value that is too long is an error. It is never cut.
		{name: "sql_mode", value: "STRICT_ALL_TABLES,ERROR_FOR_DIVISION_BY_ZERO,NO_ENGINE_SUBSTITUTION"},
		{name: "tx_isolation", value: "READ-COMMITTED", on: apart}, // its name before MariaDB 11.1
		{name: "transaction_isolation", value: "READ-COMMITTED", on: apart},
		{name: "tx_read_only", value: "OFF", on: apart},
		{name: "transaction_read_only", value: "OFF", on: apart},
	}
	if p.primary {
		all = append(all,
			setting{name: "wsrep_sync_wait", value: galeraWaits, on: apart},
			setting{name: "wsrep_dirty_reads", value: "OFF", on: apart}, // a server that has lost the others answers nothing
		)
	}
	return all
}

// galeraWaits has SELECT and BEGIN (1), UPDATE and DELETE (2), and INSERT (4) wait until this server has applied what any
// server of the cluster committed before. SHOW does not wait, so that doctor can describe a server that does not catch up.
const galeraWaits = "7"

// mySQLStatements returns the statements that set the settings.
func mySQLStatements(p patience) []string {
	var all []string
	var some string
	for _, s := range sessionMySQL(p) {
		switch item := fmt.Sprintf(`SESSION %s = %s`, s.name, literal(s.value)); s.on {
		case apart:
		case "":
			all = append(all, item)
		default:
			some += `/*` + s.on + ` , ` + item + `*/`
		}
	}
	return []string{
		`SET ` + strings.Join(all, `, `) + some,
		`SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED, READ WRITE`,
	}
}

func literal(value string) string {
	if _, err := strconv.ParseUint(value, 10, 64); err == nil {
		return value // a number may not be in quotes
	}
	return `'` + strings.ReplaceAll(value, `'`, `''`) + `'`
}

func seconds(d time.Duration) string { return fmt.Sprint(int(d / time.Second)) }

// A mySQLSession connects, and sets the settings of the session.
type mySQLSession struct {
	driver.Connector
	p patience
}

// Connect implements driver.Connector.
func (s mySQLSession) Connect(ctx context.Context) (driver.Conn, error) {
	conn, err := s.Connector.Connect(ctx)
	if err != nil {
		return nil, err
	}
	session := conn.(mySQLConn)
	for _, statement := range mySQLStatements(s.p) {
		if err == nil {
			_, err = session.ExecContext(ctx, statement, nil)
		}
	}
	if err == nil && s.p.primary {
		_, err = session.ExecContext(ctx, `SET SESSION wsrep_sync_wait = `+galeraWaits+`, SESSION wsrep_dirty_reads = 'OFF'`, nil)
		if codeMySQL(err) == "1193" { // ER_UNKNOWN_SYSTEM_VARIABLE: a server without Galera
			err = nil
		}
	}
	if err != nil {
		_ = conn.Close() // nobody uses it
		return nil, fmt.Errorf("set the settings of a session: %w", err)
	}
	return conn, nil
}

// sessionPostgreSQL returns the settings of a session on PostgreSQL. default_transaction_read_only is not among them:
// operators set it on a server that must take no writes, and primary.go obeys it.
func sessionPostgreSQL(p patience) []setting {
	all := []setting{
		{name: "statement_timeout", value: "0"}, // it comes first, because it may end any statement. Connections and callers have limits
		{name: "transaction_timeout", value: "0", on: "17"},
		{name: "idle_session_timeout", value: "0", on: "14"}, // the session that migrates waits, and has the lock
		{name: "lock_timeout", value: fmt.Sprint(lockTimeout.Milliseconds())},
		{name: "idle_in_transaction_session_timeout", value: fmt.Sprint(p.idle.Milliseconds())},
		{name: "default_transaction_isolation", value: "read committed"}, // a statement outside of a transaction reads what is committed, and never fails for another's sake
		// A commit is on the disk when it returns, and at a synchronous standby if there is one. local and remote_write
		// would lose it at a fail-over.
		{name: "synchronous_commit", value: "on", stronger: "remote_apply"},
		{name: "client_encoding", value: "UTF8"},
		{name: "standard_conforming_strings", value: "on"},
		{name: "timezone", value: "UTC"},
		// A bitmap scan returns rows in no order. If a campaign has no statistics yet, PostgreSQL scans and sorts all
		// its coupons for each page. In a trial with a million coupons a page took 600 ms.
		{name: "enable_bitmapscan", value: "off"},
		{name: "enable_indexscan", value: "on"},
		{name: "enable_indexonlyscan", value: "on"},
	}
	if p.primary {
		all = append(all, seeks...)
	}
	return all
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
var seeks = []setting{
	{name: "plan_cache_mode", value: "force_custom_plan"},
	{name: "enable_seqscan", value: "off"},
	{name: "jit", value: "off"}, // a query without an index gets a huge cost, so the server would compile it
}

// afterConnect sets the settings of a session after it connects. Values in the ledger's name take precedence.
// PgBouncer refuses a connection that sends settings at its start, or drops them.
func afterConnect(c *pgx.ConnConfig, settings []setting) stdlib.OptionOpenDB {
	for _, s := range settings {
		delete(c.RuntimeParams, s.name)
	}
	return stdlib.OptionAfterConnect(func(ctx context.Context, conn *pgx.Conn) error {
		version := conn.PgConn().ParameterStatus("server_version")
		var all strings.Builder
		for _, s := range settings {
			first, _ := strconv.Atoi(s.on) // 0 if all versions have it
			switch {
			case !newer(version, []int{first}):
			case s.stronger != "":
				fmt.Fprintf(&all, "SELECT set_config('%s', '%s', false) WHERE current_setting('%[1]s') <> '%s';", s.name, s.value, s.stronger)
			default:
				fmt.Fprintf(&all, "SET %s = '%s';", s.name, strings.ReplaceAll(s.value, "'", "''"))
			}
		}
		return conn.PgConn().Exec(ctx, all.String()).Close()
	})
}

// overridden returns settings with the values that the ledger's name has of them.
func overridden(settings []setting, name *url.URL) []setting {
	own := name.Query()
	for n, s := range settings {
		if own.Has(s.name) {
			settings[n] = setting{name: s.name, value: own.Get(s.name), on: s.on}
		}
	}
	return settings
}

// session compares a fresh session with the settings that it was given. Something between firstcome and the server may
// drop a SET, or change it.
func (e *exam) session(wanted []setting) {
	const what = "settings"
	var names, wrong []string
	for _, s := range wanted {
		names = append(names, literal(s.name))
	}
	has, err := e.settings(fmt.Sprintf(e.d.shown, strings.Join(names, ", ")))
	if err != nil {
		e.unknown(what, err)
		return
	}
	for _, s := range wanted {
		value, there := has[s.name]
		if there && !equal(value, s.value) && (s.stronger == "" || value != s.stronger) {
			wrong = append(wrong, fmt.Sprintf("%s is %s and not %s", s.name, value, s.value))
		}
	}
	if len(wrong) > 0 || len(has) == 0 {
		e.Add(doctor.Fail, what, "let nothing between firstcome and the server drop or change SET", "a session does not keep what it sets: %s", strings.Join(wrong, ", "))
		return
	}
	e.Add(doctor.OK, what, "", "a session has the %d settings that it sets, whatever the server's defaults are", len(has))
}

// equal reports whether a server shows a value that was set. Some show 0 as 0.000000.
func equal(shown, set string) bool {
	if integer, fraction, found := strings.Cut(shown, "."); found && strings.Trim(fraction, "0") == "" {
		shown = integer
	}
	return strings.EqualFold(shown, set)
}
