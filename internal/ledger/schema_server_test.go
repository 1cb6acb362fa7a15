//go:build !check && (!race || soak)

package ledger_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/ledger"
	"github.com/firstcome/firstcome/test/services"
	"github.com/firstcome/firstcome/test/stage"
)

func TestF56OfNodesThatMigrateAtOnceOneDoes(t *testing.T) {
	onServers(t, func(t *testing.T, kind services.Kind) {
		name := kind.Database(t)
		var all sync.WaitGroup
		for range 4 {
			all.Go(func() {
				identityAt(t, name)
			})
		}
		all.Wait()
		var versions int
		if err := services.Beside(t, name).QueryRow(`SELECT count(*) FROM goose_db_version`).Scan(&versions); err != nil || versions != 2 {
			t.Errorf("%d versions are noted, want 0 and 1, each once: %v", versions, err)
		}
	})
}

// TestF56AMigrationThatIsCutAtAnyPointGoesOn drops every other reply of a migration in turn,
// each time on a new database, and opens that again.
func TestF56AMigrationThatIsCutAtAnyPointGoesOn(t *testing.T) {
	onServers(t, func(t *testing.T, kind services.Kind) {
		dropped, cut := true, 0
		for k := 1; dropped; k += 2 {
			name := kind.Database(t)
			proxy, far := through(t, name)
			lost := proxy.DropReply(k)
			l, err := ledger.Open(t.Context(), far, ledger.Options{Secret: stage.Secret()})
			select {
			case <-lost:
			default:
				dropped = false
			}
			proxy.Heal()
			if err != nil {
				cut++
			} else if err := l.Close(); err != nil {
				t.Error(err)
			}
			l, stop := serve(t, name, ledger.Options{})
			create(t, l, "c", 1)
			stage.Same(t, "after a cut", "issued:1 sold_out:0", claim(t, l.Gate, "c", "a", "b"))
			stop()
		}
		if cut < 10 {
			t.Errorf("only %d migrations were cut", cut)
		}
	})
}

func TestADatabaseOfSomethingElseIsRefused(t *testing.T) {
	onServers(t, func(t *testing.T, kind services.Kind) {
		for theirs, statements := range map[string][]string{
			"orders": {`CREATE TABLE orders (id INTEGER)`},
			// A shop has campaigns and coupons of its own.
			"coupons": {`CREATE TABLE campaigns (id INTEGER)`, `CREATE TABLE coupons (id INTEGER)`},
			"accounts": {
				`CREATE TABLE goose_db_version (id INTEGER, version_id BIGINT, is_applied BOOLEAN)`, `INSERT INTO goose_db_version VALUES (1, 1, true)`,
				`CREATE TABLE campaigns (id INTEGER)`, `CREATE TABLE accounts (id INTEGER)`,
			},
		} {
			name := kind.Database(t)
			for _, s := range statements {
				execute(t, services.Beside(t, name), s)
			}
			wantAdvice(t, openError(t, name), theirs, "create database firstcome")
		}
		if _, err := ledger.OpenShared(t.Context(), kind.Database(t)); err == nil || !strings.Contains(err.Error(), "not a ledger") {
			t.Errorf("an empty database is a ledger: %v", err)
		}
	})
}

// TestF57AColumnThatWouldMergeUsersIsRefused gives the users' column a collation that
// takes case and accents for the same, or too few bytes.
func TestF57AColumnThatWouldMergeUsersIsRefused(t *testing.T) {
	for kind, changes := range map[services.Kind][]string{
		services.MariaDB: {
			`ALTER TABLE coupons MODIFY user_id VARCHAR(128) CHARACTER SET utf8mb4 COLLATE utf8mb4_general_ci NOT NULL`,
			`ALTER TABLE coupons MODIFY user_id VARBINARY(16) NOT NULL`,
		},
		services.PostgreSQL: {
			`CREATE COLLATION lax (provider = icu, locale = 'und-u-ks-level1', deterministic = false);
				ALTER TABLE coupons ALTER COLUMN user_id TYPE text COLLATE lax`,
			`ALTER TABLE coupons ALTER COLUMN user_id TYPE varchar(16) COLLATE "C"`,
		},
	} {
		for _, change := range changes {
			t.Run(string(kind), func(t *testing.T) {
				name := kind.Database(t)
				execute(t, services.Beside(t, migrated(t, name)), change)
				wantAdvice(t, openError(t, name), "coupons.user_id", "ALTER TABLE coupons")
			})
		}
	}
}

func TestF65AUserWithDataRightsServesAndAMissingRightIsNamed(t *testing.T) {
	onServers(t, func(t *testing.T, kind services.Kind) {
		name := kind.Database(t)
		wantAdvice(t, openError(t, services.User(t, name)), "lacks the right to make its tables", "firstcome migrate")
		migrated(t, name)
		l := start(t, services.User(t, name, "SELECT", "INSERT", "UPDATE"), nil)
		create(t, l, "c", 2)
		stage.Same(t, "with SELECT, INSERT and UPDATE", "issued:1", claim(t, l.Gate, "c", "a"))
		if _, err := l.Campaigns.Void(t.Context(), "test", "c", 1, "test"); err != nil {
			t.Error(err)
		}
		reader := start(t, services.User(t, name, "SELECT"), nil)
		_, err := reader.Gate.Claim(t.Context(), "c", []firstcome.UserID{"c"})
		wantAdvice(t, fmt.Sprint(err), "lacks the right to "+map[services.Kind]string{
			services.MariaDB: "INSERT", services.PostgreSQL: "SELECT and UPDATE",
		}[kind])
		updater := start(t, services.User(t, name, "SELECT", "UPDATE"), nil)
		_, err = updater.Campaigns.ChangeState(t.Context(), "test", "c", 0, firstcome.ChangePause)
		wantAdvice(t, fmt.Sprint(err), "lacks the right to INSERT")
	})
}
