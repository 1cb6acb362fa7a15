package sqldb

import (
	"context"
	"errors"
	"strconv"

	"github.com/firstcome/firstcome/internal/doctor"
)

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
	e.Hold(s["synchronous_commit"] != "off", doctor.Fail, "synchronous_commit", "set it to on, for this user at least: ALTER ROLE NAME SET synchronous_commit = on",
		"%s", s["synchronous_commit"])
	e.want(s, "full_page_writes", "on", doctor.Fail, "set it to on, unless the disk never tears a page of 8 KiB")
	e.isolation()
	e.session()
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

// session checks that the ledger's settings of a session stay set.
func (e *exam) session() {
	const what = "settings"
	s, err := e.settings(`SELECT name, setting FROM pg_settings WHERE name IN ('lock_timeout', 'idle_in_transaction_session_timeout', 'enable_bitmapscan')
		AND source <> 'session'`)
	if err != nil {
		e.unknown(what, err)
		return
	}
	e.Hold(len(s) == 0, doctor.Fail, what, "let nothing between firstcome and the server drop SET", "of what a session sets, %d settings are not in force: %v", len(s), s)
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
