//go:build !check && (!race || soak)

package ledger_test

import (
	"bytes"
	"database/sql"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"testing"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/doctor"
	"github.com/firstcome/firstcome/internal/ledger"
	"github.com/firstcome/firstcome/test/services"
	"github.com/firstcome/firstcome/test/stage"
)

// mariaDBDefaults are defaults of a MariaDB under which a session that takes them over hangs, fails, or reads
// something else than what is committed. Each has the statement that restores the server's own.
var mariaDBDefaults = map[string][2]string{
	"no autocommit":         {`SET GLOBAL autocommit = 0`, `SET GLOBAL autocommit = 1`},
	"no autocommit by init": {`SET GLOBAL init_connect = 'SET autocommit = 0'`, `SET GLOBAL init_connect = ''`},
	"read uncommitted":      {`SET GLOBAL TRANSACTION ISOLATION LEVEL READ UNCOMMITTED`, `SET GLOBAL TRANSACTION ISOLATION LEVEL REPEATABLE READ`},
	"serializable":          {`SET GLOBAL TRANSACTION ISOLATION LEVEL SERIALIZABLE`, `SET GLOBAL TRANSACTION ISOLATION LEVEL REPEATABLE READ`},
	"chained transactions":  {`SET GLOBAL completion_type = 'CHAIN'`, `SET GLOBAL completion_type = NO_CHAIN`},
	"released connections":  {`SET GLOBAL completion_type = 'RELEASE'`, `SET GLOBAL completion_type = NO_CHAIN`},
	"small joins":           {`SET GLOBAL max_join_size = 1`, `SET GLOBAL max_join_size = DEFAULT`},
	"read only":             {`SET GLOBAL tx_read_only = 1`, `SET GLOBAL tx_read_only = 0`},
	"short statements":      {`SET GLOBAL max_statement_time = 1`, `SET GLOBAL max_statement_time = 0`},
	"few rows":              {`SET GLOBAL sql_select_limit = 1`, `SET GLOBAL sql_select_limit = DEFAULT`},
	"safe updates":          {`SET GLOBAL sql_safe_updates = 1`, `SET GLOBAL sql_safe_updates = 0`},
	"no constraints": {
		`SET GLOBAL check_constraint_checks = 0, GLOBAL foreign_key_checks = 0, GLOBAL unique_checks = 0`,
		`SET GLOBAL check_constraint_checks = 1, GLOBAL foreign_key_checks = 1, GLOBAL unique_checks = 1`,
	},
	"another character set": {`SET GLOBAL init_connect = 'SET NAMES latin1'`, `SET GLOBAL init_connect = ''`},
	"another engine":        {`SET GLOBAL default_storage_engine = MyISAM`, `SET GLOBAL default_storage_engine = InnoDB`},
	"loose modes":           {`SET GLOBAL sql_mode = 'ORACLE,NO_BACKSLASH_ESCAPES'`, `SET GLOBAL sql_mode = DEFAULT`},
	"another time zone":     {`SET GLOBAL time_zone = '+09:00'`, `SET GLOBAL time_zone = 'SYSTEM'`},
	"no waits for locks":    {`SET GLOBAL lock_wait_timeout = 0, GLOBAL innodb_lock_wait_timeout = 1`, `SET GLOBAL lock_wait_timeout = DEFAULT, GLOBAL innodb_lock_wait_timeout = DEFAULT`},
	"short sessions": {
		`SET GLOBAL wait_timeout = 1, GLOBAL idle_transaction_timeout = 1`,
		`SET GLOBAL wait_timeout = DEFAULT, GLOBAL idle_transaction_timeout = DEFAULT`,
	},
}

// postgreSQLDefaults are such defaults of a PostgreSQL, which its databases may have each for itself.
var postgreSQLDefaults = map[string]string{
	"serializable":           `default_transaction_isolation = 'serializable'`,
	"short statements":       `statement_timeout = '1s'`,
	"no waits for locks":     `lock_timeout = '1s'`,
	"short transactions":     `idle_in_transaction_session_timeout = '1ms'`,
	"short sessions":         `idle_session_timeout = '1s'`,
	"no sync":                `synchronous_commit = off`,
	"a sync without standby": `synchronous_commit = local`,
	"another character set":  `client_encoding = 'LATIN1'`,
	"other strings":          `standard_conforming_strings = off`,
	"another time zone":      `timezone = 'Asia/Seoul'`,
	"no indexes":             `enable_indexscan = off`,
}

// TestF66ADropUnderEachDefaultOfAServerIsExact has two nodes migrate and serve a campaign under each default.
func TestF66ADropUnderEachDefaultOfAServerIsExact(t *testing.T) {
	t.Run(string(services.MariaDB), func(t *testing.T) {
		t.Parallel()
		server := services.MariaDB.Server(t, services.MariaDB.Fast()...)
		for what, statements := range mariaDBDefaults {
			t.Run(what, func(t *testing.T) {
				as := services.User(t, database(t, server, false), "ALL") // init_connect is not for a superuser
				t.Cleanup(func() { execute(t, services.Beside(t, neutral(server.URL())), statements[1]) })
				stage.Must(t, services.Execute(t.Context(), server.URL(), statements[0]))
				dropUnder(t, services.MariaDB, as, isShort(what))
			})
		}
	})
	t.Run(string(services.PostgreSQL), func(t *testing.T) {
		t.Parallel()
		for what, setting := range postgreSQLDefaults {
			t.Run(what, func(t *testing.T) {
				t.Parallel()
				name := services.PostgreSQL.Database(t)
				stage.Must(t, services.Execute(t.Context(), name, `ALTER DATABASE "`+strings.Trim(parse(t, name).Path, "/")+`" SET `+setting))
				dropUnder(t, services.PostgreSQL, name, isShort(what))
			})
		}
	})
}

// isShort reports whether a default limits a time.
func isShort(what string) bool {
	return strings.HasPrefix(what, "short") || strings.HasPrefix(what, "no wait")
}

// neutral returns the URL of sessions of the test's own, which have none of the defaults.
func neutral(at string) string {
	if strings.HasPrefix(at, "mysql") {
		return at + "?autocommit=1&completion_type=0&tx_read_only=0&max_statement_time=0&sql_big_selects=1&wait_timeout=600&idle_transaction_timeout=0&lock_wait_timeout=60&sql_select_limit=1000"
	}
	return at + "&statement_timeout=0&idle_session_timeout=0&idle_in_transaction_session_timeout=0&lock_timeout=0"
}

// dropUnder has two nodes migrate a database at once, and a crowd claim at both. Each node reads what the other
// committed, and nothing else. If short is set, a claim also waits for longer than the defaults allow.
func dropUnder(t *testing.T, kind services.Kind, name string, short bool) {
	const quantity = 20
	var a, b *ledger.Ledger
	var both sync.WaitGroup
	both.Go(func() { a = start(t, name, nil) })
	both.Go(func() { b = start(t, name, nil) })
	both.Wait()
	if a == nil || b == nil {
		t.FailNow()
	}
	named := terms(quantity)
	named.Name = "선착순 쿠폰"
	stage.Must(t, a.Campaigns.Create(t.Context(), "test", "c", named))
	create(t, b, "other", 1)
	db := services.Beside(t, neutral(name))
	each := func(do func(l *ledger.Ledger)) {
		for _, l := range []*ledger.Ledger{a, b} {
			do(l)
		}
	}
	each(func(l *ledger.Ledger) { stage.Same(t, "in force before", int64(0), status(t, l).InForce) })

	told := claimAtBoth(t, a, b, people(2*quantity))
	stage.Same(t, "winners", quantity, len(told))
	each(func(l *ledger.Ledger) {
		s := status(t, l)
		stage.Same(t, "the campaign", fmt.Sprint("선착순 쿠폰 ", quantity), fmt.Sprint(s.Name, " ", s.InForce))
		for user, number := range told {
			stage.Same(t, "asked again", fmt.Sprint("already_issued:", number), claim(t, l.Gate, "c", user))
			c, err := l.Gate.CouponOf(t.Context(), "c", user)
			stage.Must(t, err)
			stage.Same(t, "the holder reads number", number, c.Number)
		}
		stage.Same(t, "coupons in the list", quantity, len(allCoupons(t, l)))
		listed, err := l.Reads.Campaigns(t.Context(), "", 10)
		stage.Must(t, err)
		stage.Same(t, "campaigns in the list", 2, len(listed))
	})
	hand := begin(t, db, `UPDATE campaigns SET closed = `+map[services.Kind]string{services.MariaDB: "1", services.PostgreSQL: "true"}[kind]+` WHERE id = 'c'`)
	each(func(l *ledger.Ledger) {
		stage.Same(t, "a close that is not committed is read", false, status(t, l).Closed)
	})
	if short {
		claimWhileLocked(t, kind, db, hand, b)
	} else {
		stage.Must(t, hand.Rollback())
	}
	void(t, a, "c", 1)
	each(func(l *ledger.Ledger) {
		stage.Same(t, "in force after a void", int64(quantity-1), status(t, l).InForce)
		keepsPlaces(t, l)
	})
	examine(t, name).Want(t, doctor.OK, "settings")
	wantTransactions(t, kind, db)
}

// claimAtBoth has all users claim at each node, and returns the winners' numbers.
func claimAtBoth(t *testing.T, a, b *ledger.Ledger, crowd []firstcome.UserID) map[firstcome.UserID]int64 {
	t.Helper()
	told, numbers := map[firstcome.UserID]int64{}, map[int64]bool{}
	var mu sync.Mutex // guards told and numbers
	var all sync.WaitGroup
	for n, user := range append(crowd, crowd...) {
		l := []*ledger.Ledger{a, b}[n%2]
		if n >= len(crowd) {
			l = []*ledger.Ledger{b, a}[n%2]
		}
		all.Go(func() {
			d, err := l.Gate.Claim(t.Context(), "c", users(user))
			mu.Lock()
			defer mu.Unlock()
			switch {
			case err != nil:
				t.Errorf("a claim: %v", err)
			case d[0].Outcome == firstcome.Issued && (told[user] != 0 || numbers[d[0].Coupon.Number]):
				t.Errorf("%s or number %d was issued twice", user, d[0].Coupon.Number)
			case d[0].Outcome == firstcome.Issued:
				told[user], numbers[d[0].Coupon.Number] = d[0].Coupon.Number, true
			}
		})
	}
	all.Wait()
	return told
}

// claimWhileLocked claims while a transaction by hand has had the campaign's row for longer than the short limits of a server.
func claimWhileLocked(t *testing.T, kind services.Kind, db *sql.DB, hand *sql.Tx, l *ledger.Ledger) {
	t.Helper()
	claimed := make(chan error, 1)
	go func() {
		_, err := l.Gate.Claim(t.Context(), "c", users("late"))
		claimed <- err
	}()
	query := map[services.Kind]string{
		services.MariaDB: `SELECT count(*) FROM information_schema.processlist WHERE db = database() AND info LIKE '%FOR UPDATE%'
			AND info NOT LIKE '%processlist%' AND time_ms > 1500`,
		services.PostgreSQL: `SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'
			AND clock_timestamp() - query_start > interval '1500ms'`,
	}[kind]
	stage.Await(t, "a claim that waits for longer than the limit", true, func() bool {
		var waiting int
		stage.Must(t, db.QueryRowContext(t.Context(), query).Scan(&waiting))
		return waiting > 0 || len(claimed) > 0
	})
	stage.Must(t, hand.Rollback())
	if err := <-claimed; err != nil {
		t.Errorf("a claim that waited: %v", err)
	}
}

// wantTransactions wants each table of a MariaDB in the engine that has transactions.
func wantTransactions(t *testing.T, kind services.Kind, db *sql.DB) {
	t.Helper()
	if kind != services.MariaDB {
		return
	}
	var others int
	stage.Must(t, db.QueryRowContext(t.Context(), `SELECT count(*) FROM information_schema.tables WHERE table_schema = database() AND engine <> 'InnoDB'`).Scan(&others))
	stage.Same(t, "tables without transactions", 0, others)
}

// TestASettingThatASessionDoesNotKeepIsFound has something between firstcome and the server change one statement.
func TestASettingThatASessionDoesNotKeepIsFound(t *testing.T) {
	onServers(t, func(t *testing.T, kind services.Kind) {
		name := migrated(t, kind.Database(t))
		examine(t, name).Want(t, doctor.OK, "settings")
		statement := map[services.Kind]string{services.MariaDB: `SESSION lock_wait_timeout = %d`, services.PostgreSQL: `lock_timeout = '%d000'`}[kind]
		far := altered(t, name, fmt.Sprintf(statement, 5), fmt.Sprintf(statement, 6))
		found := examine(t, far)
		found.Want(t, doctor.Fail, "settings")
		if text := found["settings"].Found; !strings.Contains(text, "lock_") || strings.Contains(text, ",") {
			t.Errorf("it does not name the one setting: %s", text)
		}
	})
}

// altered returns the name of a database through a proxy that replaces a text in what clients send by another of the same length.
func altered(t *testing.T, name, from, to string) string {
	t.Helper()
	u := parse(t, name)
	upstream := u.Host
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	stage.Must(t, err)
	var all sync.WaitGroup
	t.Cleanup(all.Wait)
	t.Cleanup(func() { _ = ln.Close() })
	all.Go(func() {
		for client, err := ln.Accept(); err == nil; client, err = ln.Accept() {
			server, err := net.Dial("tcp", upstream)
			if err != nil {
				t.Error(err)
				return
			}
			all.Go(func() {
				_, _ = io.Copy(client, server)
				_ = client.Close()
			})
			all.Go(func() {
				for buffer := make([]byte, 64<<10); ; {
					n, err := client.Read(buffer)
					if err == nil {
						_, err = server.Write(bytes.ReplaceAll(buffer[:n], []byte(from), []byte(to)))
					}
					if err != nil {
						_ = server.Close()
						return
					}
				}
			})
		}
	})
	u.Host = ln.Addr().String()
	return u.String()
}
