package ledger_test

import (
	"net/url"
	"strings"
	"testing"

	"github.com/firstcome/firstcome/internal/ledger"
	"github.com/firstcome/firstcome/test/services"
)

// examine returns what is found of a ledger's server, by what it is about.
func examine(t testing.TB, name string) map[string]ledger.Finding {
	t.Helper()
	found := map[string]ledger.Finding{}
	for _, f := range ledger.Examine(t.Context(), name) {
		if f.Grade != ledger.OK && f.Fix == "" {
			t.Errorf("%s has no fix: %+v", f.What, f)
		}
		if strings.Contains(f.Found+f.Fix, "open-sesame") {
			t.Errorf("%s shows a password: %+v", f.What, f)
		}
		found[f.What] = f
	}
	return found
}

func wantGrade(t testing.TB, found map[string]ledger.Finding, grade ledger.Grade, what ...string) {
	t.Helper()
	for _, one := range what {
		if f := found[one]; f.Grade != grade {
			t.Errorf("%s is %q, want %q: %+v", one, f.Grade, grade, f)
		}
	}
}

// database makes a database on a server, with the ledger's tables in it or not.
func database(t testing.TB, server *services.Server, tables bool) string {
	t.Helper()
	name, err := server.Database(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if tables {
		_, stop := open(t, name, nil)
		stop()
	}
	return name
}

func TestAServerThatKeepsWhatItConfirmsIsFoundGood(t *testing.T) {
	for kind, settings := range map[services.Kind][]string{
		services.MariaDB:    {"server", "read_only", "innodb_flush_log_at_trx_commit", "innodb_doublewrite", "binary log", "isolation"},
		services.PostgreSQL: {"server", "writes", "fsync", "synchronous_commit", "full_page_writes", "isolation"},
	} {
		t.Run(string(kind), func(t *testing.T) {
			server := kind.Server(t)
			good := database(t, server, true)
			found := examine(t, services.User(t, good)) // who may read and write rows, and nothing else
			wantGrade(t, found, ledger.OK, append(settings, "connections", "the ledger's clock", "tables", "ids", "rights")...)
			for what, f := range found {
				if f.Grade == ledger.Fail {
					t.Errorf("%s fails: %+v", what, f)
				}
			}
			wantGrade(t, examine(t, services.User(t, good, "SELECT")), ledger.Fail, "rights")
			wantGrade(t, examine(t, database(t, server, false)), ledger.Fail, "tables")
			proxy, far := through(t, good)
			proxy.Cut()
			wantGrade(t, examine(t, far), ledger.Fail, "ledger")
		})
	}
}

func TestEverySettingThatLosesWhatWasConfirmedIsFound(t *testing.T) {
	for kind, bad := range map[services.Kind]struct{ arguments, fails, warns []string }{
		services.MariaDB: {
			append(services.MariaDB.Fast(), "--log-bin=log", "--server-id=1", "--binlog-format=STATEMENT", "--sync-binlog=0", "--max-connections=20"),
			[]string{"innodb_flush_log_at_trx_commit", "innodb_flush_method", "sync_binlog", "isolation", "connections", "tables"},
			[]string{"innodb_doublewrite"},
		},
		services.PostgreSQL: {
			append(services.PostgreSQL.Fast(), "-c", "max_connections=20"),
			[]string{"fsync", "synchronous_commit", "full_page_writes", "connections", "tables"},
			nil,
		},
	} {
		t.Run(string(kind), func(t *testing.T) {
			found := examine(t, database(t, kind.Server(t, bad.arguments...), false))
			wantGrade(t, found, ledger.Fail, bad.fails...)
			wantGrade(t, found, ledger.Warn, bad.warns...)
			wantGrade(t, found, ledger.OK, "server")
		})
	}
}

func TestAUserWhoseWritesAreNotTakenIsFound(t *testing.T) {
	onServers(t, func(t *testing.T, kind services.Kind) {
		name := kind.Database(t)
		_, stop := open(t, name, nil)
		stop()
		u, err := url.Parse(services.User(t, name))
		if err != nil {
			t.Fatal(err)
		}
		what := "rights"
		if kind == services.PostgreSQL {
			what = "writes"
			if _, err := rawServer(t, name).Exec(`ALTER ROLE ` + u.User.Username() + ` SET default_transaction_read_only = on`); err != nil {
				t.Fatal(err)
			}
		} else if _, err := rawServer(t, name).Exec(`REVOKE UPDATE ON ` + strings.Trim(u.Path, "/") + `.* FROM ` + u.User.Username()); err != nil {
			t.Fatal(err)
		}
		wantGrade(t, examine(t, u.String()), ledger.Fail, what)
	})
}

func TestAColumnThatWouldMergeUsersIsFound(t *testing.T) {
	onServers(t, func(t *testing.T, kind services.Kind) {
		name := kind.Database(t)
		_, stop := open(t, name, nil)
		stop()
		if _, err := rawServer(t, name).Exec(map[services.Kind]string{
			services.MariaDB:    `ALTER TABLE audit_log MODIFY user_id VARCHAR(128) CHARACTER SET utf8mb4 COLLATE utf8mb4_general_ci`,
			services.PostgreSQL: `ALTER TABLE audit_log ALTER COLUMN user_id TYPE text COLLATE "default"`,
		}[kind]); err != nil {
			t.Fatal(err)
		}
		wantGrade(t, examine(t, name), ledger.Fail, "ids")
	})
}
