//go:build !check && (!race || soak)

package ledger_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/firstcome/firstcome/internal/doctor"
	"github.com/firstcome/firstcome/test/services"
	"github.com/firstcome/firstcome/test/stage"
)

func TestAServerThatKeepsWhatItConfirmsIsFoundGood(t *testing.T) {
	for kind, settings := range map[services.Kind][]string{
		services.MariaDB:    {"server", "read_only", "innodb_flush_log_at_trx_commit", "innodb_doublewrite", "binary log", "isolation", "settings"},
		services.PostgreSQL: {"server", "writes", "fsync", "synchronous_commit", "full_page_writes", "isolation", "settings", "sessions"},
	} {
		t.Run(string(kind), func(t *testing.T) {
			server := kind.Server(t)
			good := database(t, server, true)
			found := examine(t, services.User(t, good)) // who may read and write rows, and nothing else
			found.Want(t, doctor.OK, append(settings, "connections", "the ledger's clock", "tables", "ids", "rights")...)
			for what, f := range found {
				if f.Grade == doctor.Fail {
					t.Errorf("%s fails: %+v", what, f)
				}
			}
			examine(t, services.User(t, good, "SELECT")).Want(t, doctor.Fail, "rights")
			empty := database(t, server, false)
			examine(t, empty).Want(t, doctor.Warn, "tables") // serve makes them
			examine(t, services.User(t, empty)).Want(t, doctor.Fail, "tables")
			proxy, far := through(t, good)
			proxy.Cut()
			examine(t, far).Want(t, doctor.Fail, "ledger")
		})
	}
}

func TestEverySettingThatLosesWhatWasConfirmedIsFound(t *testing.T) {
	for kind, bad := range map[services.Kind]struct{ arguments, fails, warns []string }{
		services.MariaDB: {
			append(services.MariaDB.Fast(), "--log-bin=log", "--server-id=1", "--binlog-format=STATEMENT", "--sync-binlog=0", "--max-connections=20", "--max-allowed-packet=64K"),
			[]string{"max_allowed_packet", "innodb_flush_log_at_trx_commit", "innodb_flush_method", "sync_binlog", "isolation", "connections"},
			[]string{"innodb_doublewrite", "tables"},
		},
		services.PostgreSQL: {
			append(services.PostgreSQL.Fast(), "-c", "max_connections=20"),
			[]string{"fsync", "full_page_writes", "connections"},
			[]string{"tables"},
		},
	} {
		t.Run(string(kind), func(t *testing.T) {
			found := examine(t, database(t, kind.Server(t, bad.arguments...), false))
			found.Want(t, doctor.Fail, bad.fails...)
			found.Want(t, doctor.Warn, bad.warns...)
			found.Want(t, doctor.OK, "server")
		})
	}
}

func TestAUserWhoseWritesAreNotTakenIsFound(t *testing.T) {
	onServers(t, func(t *testing.T, kind services.Kind) {
		name := migrated(t, kind.Database(t))
		u := parse(t, services.User(t, name))
		what := "rights"
		if kind == services.PostgreSQL {
			what = "writes"
			execute(t, services.Beside(t, name), `ALTER ROLE `+u.User.Username()+` SET default_transaction_read_only = on`)
		} else {
			execute(t, services.Beside(t, name), `REVOKE UPDATE ON `+strings.Trim(u.Path, "/")+`.* FROM `+u.User.Username())
		}
		examine(t, u.String()).Want(t, doctor.Fail, what)
	})
}

// TestEveryRightThatServingLacksIsFound takes one right to one table away at a time, of all tables that the migrations make. Serving
// writes to each of them, except to those listed here.
func TestEveryRightThatServingLacksIsFound(t *testing.T) {
	migrates := []string{"compatibility", "goose_db_version", "schema_checksums"}
	unused := map[string][]string{"INSERT": migrates, "UPDATE": append(migrates, "audit_log", "facts", "identity", "lost", "past_lines")}
	onServers(t, func(t *testing.T, kind services.Kind) {
		name := migrated(t, kind.Database(t))
		as := services.User(t, name, "SELECT")
		user := parse(t, as).User.Username()
		db := services.Beside(t, name)
		var all string
		stage.Must(t, db.QueryRow(map[services.Kind]string{
			services.MariaDB:    `SELECT group_concat(table_name SEPARATOR ' ') FROM information_schema.tables WHERE table_schema = database()`,
			services.PostgreSQL: `SELECT string_agg(table_name, ' ') FROM information_schema.tables WHERE table_schema = current_schema()`,
		}[kind]).Scan(&all))
		for table := range strings.FieldsSeq(all) {
			execute(t, db, `GRANT INSERT, UPDATE ON `+table+` TO `+user)
		}
		examine(t, as).Want(t, doctor.OK, "rights")
		for table := range strings.FieldsSeq(all) {
			for verb, unused := range unused {
				if slices.Contains(unused, table) {
					continue
				}
				execute(t, db, `REVOKE `+verb+` ON `+table+` FROM `+user)
				if f := examine(t, as)["rights"]; f.Grade != doctor.Fail || !strings.HasSuffix(f.Found, verb+" "+table) {
					t.Errorf("without the right to %s %s: %+v", verb, table, f)
				}
				execute(t, db, `GRANT `+verb+` ON `+table+` TO `+user)
			}
		}
	})
}

func TestAColumnThatWouldMergeUsersIsFound(t *testing.T) {
	onServers(t, func(t *testing.T, kind services.Kind) {
		name := migrated(t, kind.Database(t))
		execute(t, services.Beside(t, name), map[services.Kind]string{
			services.MariaDB:    `ALTER TABLE audit_log MODIFY user_id VARCHAR(128) CHARACTER SET utf8mb4 COLLATE utf8mb4_general_ci`,
			services.PostgreSQL: `ALTER TABLE audit_log ALTER COLUMN user_id TYPE text COLLATE "default"`,
		}[kind])
		examine(t, name).Want(t, doctor.Fail, "ids")
	})
}
