package sqldb

import (
	"slices"
	"strconv"
	"strings"

	"github.com/firstcome/firstcome/internal/doctor"
)

// The oldest servers that enforce CHECK constraints and lock rows as the ledger needs.
var (
	leastMariaDB = []int{10, 6}
	leastMySQL   = []int{8, 0, 16}
)

// examineMySQL implements Dialect.examine. None of its queries needs a privilege.
func examineMySQL(e *exam) {
	const what = "server"
	s, err := e.settings(`SHOW GLOBAL VARIABLES WHERE Variable_name IN ('version', 'read_only', 'log_bin', 'binlog_format', 'sync_binlog',
		'innodb_flush_log_at_trx_commit', 'innodb_doublewrite', 'innodb_flush_method', 'max_connections', 'max_user_connections')`)
	if err != nil {
		e.unknown(what, err)
		return
	}
	kind, least := "MySQL", leastMySQL
	if strings.Contains(s["version"], "MariaDB") {
		kind, least = "MariaDB", leastMariaDB
	}
	e.Hold(newer(s["version"], least), doctor.Fail, what, "MariaDB 10.6 or MySQL 8.0.16, or later", "%s %s", kind, s["version"])
	e.want(s, "read_only", "OFF", doctor.Fail, "name the primary: this server takes no writes")
	e.want(s, "innodb_flush_log_at_trx_commit", "1", doctor.Fail, "set it to 1: else a coupon answered as recorded is lost when the machine stops")
	e.want(s, "innodb_doublewrite", "ON", doctor.Warn, "set it to ON, unless the disk never tears a page of 16 KiB")
	if method := s["innodb_flush_method"]; method == "nosync" || method == "littlesync" {
		e.Add(doctor.Fail, "innodb_flush_method", "set it to fsync or O_DIRECT: else nothing is synced", "%s", method)
	}
	e.binlog(s)
	e.mySQLConnections(s)
}

// binlog checks the settings of the binary log, if it is on. When a server recovers, it rolls back the
// transactions that its binary log lacks.
func (e *exam) binlog(s map[string]string) {
	if s["log_bin"] != "ON" && s["log_bin"] != "1" {
		e.Add(doctor.OK, "binary log", "", "off: there is nothing to replicate from, and nothing to sync")
		e.Add(doctor.OK, "isolation", "", "transactions set READ COMMITTED themselves")
		return
	}
	e.want(s, "sync_binlog", "1", doctor.Fail, "set it to 1: else a coupon answered as recorded is lost when the machine stops")
	e.Hold(s["binlog_format"] != "STATEMENT", doctor.Fail, "isolation", "set binlog_format to ROW or MIXED: transactions are READ COMMITTED, which STATEMENT cannot log",
		"transactions set READ COMMITTED themselves; binlog_format is %s", s["binlog_format"])
}

func (e *exam) mySQLConnections(s map[string]string) {
	most, err := strconv.ParseInt(s["max_connections"], 10, 64)
	if err != nil {
		e.unknown("connections", err)
		return
	}
	fix := "raise max_connections"
	if own, err := strconv.ParseInt(s["max_user_connections"], 10, 64); err == nil && own > 0 && own < most {
		most, fix = own, "raise max_user_connections"
	}
	status, err := e.settings(`SHOW GLOBAL STATUS LIKE 'Threads_connected'`)
	if err != nil {
		e.unknown("connections", err)
		return
	}
	used, _ := strconv.ParseInt(status["threads_connected"], 10, 64) // 0 is as good as unknown
	e.connections(most, used, fix)
}

// newer reports whether a version like 10.11.6-MariaDB is at least least.
func newer(version string, least []int) bool {
	number, _, _ := strings.Cut(version, "-")
	var has []int
	for part := range strings.SplitSeq(number, ".") {
		n, err := strconv.Atoi(part)
		if err != nil {
			break
		}
		has = append(has, n)
	}
	return slices.Compare(has, least) >= 0
}
