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
	"slices"
	"strconv"
	"strings"

	"github.com/go-sql-driver/mysql"
	"github.com/pressly/goose/v3"

	"github.com/firstcome/firstcome/internal/doctor"
	"github.com/firstcome/firstcome/internal/trust"
)

// MySQL is the dialect of MariaDB 10.6 and later, and MySQL 8.0.16 and later, which enforce CHECK constraints.
var MySQL = Dialect{
	name: "mysql", Limit: `LIMIT ?`, Shared: true, ForUpdate: ` FOR UPDATE`,
	// now(6) would be the time at which the statement began.
	Clock:    `CAST(UNIX_TIMESTAMP(SYSDATE(6)) * 1000000 AS SIGNED)`,
	Classify: classifyMySQL, code: codeMySQL, advise: adviseMySQL,
	damagedCodes: []string{"1034", "1194", "1712", "1877"},                 // ER_NOT_KEYFILE, ER_CRASHED_ON_USAGE, ER_INDEX_CORRUPT, ER_TABLE_CORRUPT
	lockedCodes:  []string{"1205"},                                         // ER_LOCK_WAIT_TIMEOUT
	deniedCodes:  []string{"1044", "1045", "1142", "1143", "1227", "1370"}, // for a database, at all, for a table, a column, a privilege, a routine
	session:      sessionMySQL, shown: `SHOW SESSION VARIABLES WHERE Variable_name IN (%s)`,
	connector: connectorMySQL, lapsed: lapsedMySQL,
	mayMakeTables: `SELECT count(*) > 0 FROM (SELECT privilege_type FROM information_schema.user_privileges
		UNION ALL SELECT privilege_type FROM information_schema.schema_privileges WHERE database() LIKE table_schema) AS own WHERE privilege_type = 'CREATE'`,
	examine: examineMySQL, backup: "mariadb-dump --single-transaction DATABASE, or mysqldump",
	schema: schema{
		goose: goose.DialectMySQL, tables: `SELECT table_name FROM information_schema.tables WHERE table_schema = database()`,
		alone: aloneMySQL, check: checkMySQL,
	},
}

// adviseMySQL implements Dialect.advise.
func adviseMySQL(err error) string {
	if errors.Is(err, mysql.ErrNoTLS) {
		return "have the server speak TLS (ssl_cert, ssl_key), or leave tls= out where nobody else is on the network"
	}
	switch codeMySQL(err) {
	case "1045": // ER_ACCESS_DENIED_ERROR, which is all it says of a missing certificate, too
		return "give the user and password that the server knows, and where it asks that user for TLS or for a certificate, tls=true or sslcert and sslkey"
	case "3159": // ER_SECURE_TRANSPORT_REQUIRED
		return "the server wants TLS: add tls=true"
	}
	return ""
}

// connectorMySQL implements Dialect.connector. The URL's options are tls=true, tls=preferred, tls=skip-verify, and the
// options of package trust, which imply tls=true.
func connectorMySQL(u *url.URL, p patience) (driver.Connector, error) {
	if strings.Contains(u.Host, ",") {
		return nil, errors.New("the ledger's name has several hosts, of which MariaDB and MySQL take one: a name that leads to the primary")
	}
	c := mysql.NewConfig()
	c.Net, c.Addr, c.DBName = "tcp", u.Host, strings.Trim(u.Path, "/")
	if u.Port() == "" {
		c.Addr = net.JoinHostPort(u.Hostname(), "3306")
	}
	c.User = u.User.Username()
	c.Passwd, _ = u.User.Password()
	if err := tlsMySQL(c, u.Query()); err != nil {
		return nil, fmt.Errorf("the ledger's name: %w", err)
	}
	c.Collation = "utf8mb4_bin"
	c.InterpolateParams = true    // a statement is one round trip, and wide ones need not be prepared
	c.Logger = &mysql.NopLogger{} // what it would write is in the errors too
	c.RejectReadOnly = true       // a primary that became a replica: connect again
	c.Timeout, c.ReadTimeout, c.WriteTimeout = connectTimeout, p.answer, p.answer
	c.MultiStatements = p.primary // see primaryConn; every value is an argument
	connector, err := mysql.NewConnector(c)
	if err != nil {
		return nil, err
	}
	connector = mySQLSession{connector, p}
	if p.primary {
		connector = mySQLPrimary{connector}
	}
	return connector, nil
}

// tlsMySQL reads the TLS options of a name.
func tlsMySQL(c *mysql.Config, options url.Values) error {
	files := trust.Take(options)
	wanted := options.Get("tls")
	options.Del("tls")
	for name := range options {
		return fmt.Errorf("it has the option %q, and there are only tls, %s, %s and %s", name, trust.RootOption, trust.CertOption, trust.KeyOption)
	}
	switch {
	case wanted == "true" || wanted == "" && files != trust.Files{}:
		c.TLS = &tls.Config{MinVersion: tls.VersionTLS12}
		return files.Apply(c.TLS)
	case files != trust.Files{}:
		return fmt.Errorf("with %s, %s and %s there is only tls=true", trust.RootOption, trust.CertOption, trust.KeyOption)
	case !slices.Contains([]string{"", "false", "preferred", "skip-verify"}, wanted):
		return errors.New("it has a bad value of tls: write true, preferred or skip-verify")
	}
	c.TLSConfig = wanted
	return nil
}

// classifyMySQL implements Dialect.Classify. The numbers are in the servers' lists of errors.
func classifyMySQL(err error) verdict {
	var e *mysql.MySQLError
	switch {
	case errors.As(err, &e):
	case errors.Is(err, mysql.ErrInvalidConn):
		return unreachable
	default:
		return classifyConnection(err)
	}
	switch e.Number {
	case 1205, // ER_LOCK_WAIT_TIMEOUT
		1213,       // ER_LOCK_DEADLOCK
		1020,       // ER_CHECKREAD: MariaDB's snapshot isolation found a newer row
		1412,       // ER_TABLE_DEF_CHANGED: another node migrates
		1615, 3101: // to be prepared again; rolled back in favour of another node of a group
		return again
	case 1022, 1062, 1169, 1586, // duplicate keys
		1048, 1364, // NULL or nothing where there must be something
		1264, 1265, 1366, 1406, // out of range, cut, of another form, too long
		1452,       // no such row in the table referred to
		3819, 4025: // a CHECK: MySQL's, MariaDB's
		return Refused
	case 1037, 1038, 1040, 1041, 1203, 1226, // out of memory, connections or a user's share of them
		1047, 1158, 1159, 1160, 1161, // a node of a cluster that is not ready, the network
		1053, 1077, 1079, 1927, 3024, 1317, 1969, 1021, 1114, // shutting down, killed, timed out, disk full
		1290, 1792, 1836, 4031: // read-only, idle for too long
		return unreachable
	}
	return broken
}

// codeMySQL implements Dialect.code.
func codeMySQL(err error) string {
	if e, ok := errors.AsType[*mysql.MySQLError](err); ok {
		return fmt.Sprint(e.Number)
	}
	return ""
}

// lockNameMySQL is an SQL expression. It includes the database's name, because such a lock is for the whole server.
const lockNameMySQL = `left(sha2(concat('firstcome migrates ', database()), 256), 40)`

// aloneMySQL implements schema.alone. The lock ends with its connection.
func aloneMySQL(ctx context.Context, db *sql.DB) (release func(), err error) {
	conn, err := db.Conn(ctx)
	if err != nil {
		return nil, err
	}
	var got sql.NullInt64
	for err == nil && got.Int64 != 1 {
		err = conn.QueryRowContext(ctx, `SELECT GET_LOCK(`+lockNameMySQL+`, 1)`).Scan(&got)
	}
	if err == nil {
		err = noteNoVersion(ctx, conn)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("wait for another node that migrates: %w", err), conn.Close())
	}
	return func() {
		_, _ = conn.ExecContext(context.WithoutCancel(ctx), `DO RELEASE_LOCK(`+lockNameMySQL+`)`) // it ends with the connection at the latest
		_ = conn.Close()
	}, nil
}

// noteNoVersion inserts version 0 into goose's table if the table is empty. goose creates the table and then inserts
// version 0, and MySQL cannot roll back a new table. If goose is killed between the two, it refuses to continue.
func noteNoVersion(ctx context.Context, conn *sql.Conn) error {
	var tables int
	err := conn.QueryRowContext(ctx, `SELECT count(*) FROM information_schema.tables
		WHERE table_schema = database() AND table_name = 'goose_db_version'`).Scan(&tables)
	if err != nil || tables == 0 {
		return err
	}
	_, err = conn.ExecContext(ctx, `INSERT INTO goose_db_version (version_id, is_applied)
		SELECT 0, 1 FROM (SELECT count(*) AS n FROM goose_db_version) AS versions WHERE n = 0`)
	return err
}

// checkMySQL implements schema.check.
func checkMySQL(ctx context.Context, db *sql.DB) error {
	return checkColumns(ctx, db, `SELECT table_name, column_name, coalesce(collation_name, ''), coalesce(character_octet_length, 2147483647)
		FROM information_schema.columns WHERE table_schema = database()`, "",
		"ALTER TABLE %s MODIFY %s VARBINARY of the length in the migration")
}

// The oldest servers that enforce CHECK constraints and lock rows as the ledger needs.
var (
	leastMariaDB = []int{10, 6}
	leastMySQL   = []int{8, 0, 16}
)

// leastPacket is twice the longest statement, which has maxRows coupons with the longest ids.
const leastPacket = 1 << 20

// examineMySQL implements Dialect.examine. None of its queries needs a privilege.
func examineMySQL(e *exam) {
	const what = "server"
	s, err := e.settings(`SHOW GLOBAL VARIABLES WHERE Variable_name IN ('version', 'read_only', 'log_bin', 'binlog_format', 'sync_binlog',
		'innodb_flush_log_at_trx_commit', 'innodb_doublewrite', 'innodb_flush_method', 'max_connections', 'max_user_connections',
		'max_allowed_packet', 'wsrep_on')`)
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
	if packet, err := strconv.ParseInt(s["max_allowed_packet"], 10, 64); err == nil {
		e.Hold(packet >= leastPacket, doctor.Fail, "max_allowed_packet", "set it to 16M: else a batch of coupons is refused", "%d bytes", packet)
	}
	e.binlog(s)
	e.semisync()
	if s["wsrep_on"] == "ON" {
		e.galera()
	}
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

// galera checks a server of a Galera cluster.
func (e *exam) galera() {
	const what = "cluster"
	s, err := e.settings(`SHOW GLOBAL STATUS WHERE Variable_name IN ('wsrep_cluster_size', 'wsrep_cluster_status', 'wsrep_local_state_comment')`)
	if err != nil {
		e.unknown(what, err)
		return
	}
	status, state := s["wsrep_cluster_status"], s["wsrep_local_state_comment"]
	if status != "Primary" || state != "Synced" {
		e.Add(doctor.Fail, what, "name a server of the cluster that is Primary and Synced", "this server of a Galera cluster is %s and %s", status, state)
		return
	}
	e.Add(doctor.Warn, what, "have the name lead all nodes to one server of the cluster at a time, and run firstcome migrate there",
		"a Galera cluster of %s servers: one that takes no writes of firstcome answers late", s["wsrep_cluster_size"])
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
