//go:build !check

package ledger_test

import (
	"context"
	"database/sql"
	"errors"
	"strings"
	"testing"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/ledger"
	"github.com/firstcome/firstcome/internal/record"
	"github.com/firstcome/firstcome/test/services"
	"github.com/firstcome/firstcome/test/stage"
)

// TestOfTwoNodesThatCreateACampaignAtOnceOneDoes has another node, here a hand, make
// the campaign between the look whether there is one and the insert, and then commit or not.
func TestOfTwoNodesThatCreateACampaignAtOnceOneDoes(t *testing.T) {
	onServers(t, func(t *testing.T, kind services.Kind) {
		name := kind.Database(t)
		l := start(t, name, nil)
		create(t, l, "other", 5)
		db := services.Beside(t, name)
		for id, end := range map[firstcome.CampaignID]func(*sql.Tx) error{"kept": (*sql.Tx).Commit, "dropped": (*sql.Tx).Rollback} {
			hand := begin(t, db, `INSERT INTO campaigns (id, version, terms_version, applied, gate, epoch, secret, decided_at, created_at)
				SELECT '`+string(id)+`', version, terms_version, applied, gate, epoch, secret, decided_at, created_at FROM campaigns WHERE id = 'other'`)
			made := make(chan error, 1)
			go func() { made <- l.Campaigns.Create(context.Background(), "test", id, terms(5)) }()
			waitUntilBlocked(t, kind, db)
			stage.Must(t, end(hand))
			err := <-made
			if exists := errors.Is(err, firstcome.ErrCampaignExists); exists != (id == "kept") || !exists && err != nil {
				t.Errorf("%s: %v", id, err)
			}
		}
	})
}

// isolated makes every transaction that does not say otherwise one of another level.
func isolated(t *testing.T, kind services.Kind, server *services.Server, name, level string) {
	t.Helper()
	statement := map[services.Kind]string{
		services.MariaDB:    `SET GLOBAL TRANSACTION ISOLATION LEVEL ` + level,
		services.PostgreSQL: `ALTER DATABASE "` + strings.Trim(parse(t, name).Path, "/") + `" SET default_transaction_isolation = '` + strings.ToLower(level) + `'`,
	}[kind]
	execute(t, services.Beside(t, server.URL()), statement)
}

// otherLevel counts what waits for a lock in a transaction of another level than READ
// COMMITTED. PostgreSQL shows that of SERIALIZABLE only, by the locks that it takes.
func otherLevel(t *testing.T, kind services.Kind, db *sql.DB) (transactions int) {
	t.Helper()
	query := map[services.Kind]string{
		services.MariaDB: `SELECT count(*) FROM information_schema.innodb_trx
			WHERE trx_state = 'LOCK WAIT' AND trx_isolation_level <> 'READ COMMITTED'`,
		services.PostgreSQL: `SELECT count(*) FROM pg_locks l JOIN pg_stat_activity a USING (pid)
			WHERE l.mode = 'SIReadLock' AND a.wait_event_type = 'Lock'`,
	}[kind]
	stage.Must(t, db.QueryRowContext(t.Context(), query).Scan(&transactions))
	return transactions
}

// TestTheServersDefaultIsolationDoesNotMatter has a coupon issued by hand while a
// claim by the same user waits, where transactions by default see what was before.
func TestTheServersDefaultIsolationDoesNotMatter(t *testing.T) {
	onServers(t, func(t *testing.T, kind services.Kind) {
		server := kind.Server(t, kind.Fast()...)
		for _, level := range []string{"REPEATABLE READ", "SERIALIZABLE"} {
			name, err := server.Database(t.Context())
			stage.Must(t, err)
			isolated(t, kind, server, name, level)
			l := start(t, name, nil)
			create(t, l, "c", 2)
			db := services.Beside(t, name)
			hand := begin(t, db, issuedByHand...)
			claimed := make(chan string, 1)
			go func() { claimed <- claim(t, l.Gate, "c", "a", "b", "d") }()
			waitUntilBlocked(t, kind, db)
			stage.Same(t, level+": transactions of another level", 0, otherLevel(t, kind, db))
			stage.Must(t, hand.Commit())
			stage.Same(t, level, "already_issued:1 issued:2 sold_out:0", <-claimed)
		}
	})
}

// TestF52AConnectionThatDiesWhileALockIsWaitedForDecidesNothing cuts a node's
// connection while its claim waits for the campaign's row. What the server goes on doing for
// the connection that is gone must not count.
func TestF52AConnectionThatDiesWhileALockIsWaitedForDecidesNothing(t *testing.T) {
	onServers(t, func(t *testing.T, kind services.Kind) {
		nodes, name := nodesOn(t, kind, 1, 2)
		proxy, far := through(t, name)
		l := start(t, far, nil)
		claim(t, nodes[0].Gate, "c", "first")
		db := services.Beside(t, name)
		hand := begin(t, db, `SELECT id FROM campaigns WHERE id = 'c' FOR UPDATE`)
		claimed := make(chan error, 1)
		go func() {
			_, err := l.Gate.Claim(context.Background(), "c", users("a"))
			claimed <- err
		}()
		waitUntilBlocked(t, kind, db)
		proxy.Cut()
		if err := <-claimed; err == nil {
			t.Error("a claim without a connection was answered")
		}
		stage.Must(t, hand.Commit())
		stage.Same(t, "at another node", "issued:2 sold_out:0", claim(t, nodes[0].Gate, "c", "b", "a"))
		proxy.Heal()
		stage.Same(t, "and at this one", "already_issued:2 sold_out:0", claim(t, l.Gate, "c", "b", "a"))
	})
}

// TestF53AServerThatWasReadOnlyIsWrittenToAsSoonAsItMayBe has a node whose new connections
// get a server that only reads, as behind an address that still leads to a standby.
func TestF53AServerThatWasReadOnlyIsWrittenToAsSoonAsItMayBe(t *testing.T) {
	name := services.PostgreSQL.Database(t)
	l := start(t, name, nil)
	create(t, l, "c", 5)
	admin := services.Beside(t, name)
	database := `ALTER DATABASE "` + strings.Trim(parse(t, name).Path, "/") + `" `
	execute(t, admin, database+`SET default_transaction_read_only = on`)
	openError(t, name) // nothing can be decided there
	execute(t, admin, `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND application_name = 'firstcome'`)
	if _, err := l.Gate.Claim(t.Context(), "c", users("a")); err == nil {
		t.Fatal("it was written to")
	}
	if _, err := l.Reads.Campaign(t.Context(), "c"); err == nil || errors.Is(err, firstcome.ErrNoCampaign) {
		t.Errorf("it concludes: %v", err)
	}
	if _, err := l.Reads.Campaigns(t.Context(), "", 10); err != nil {
		t.Errorf("a list: %v", err)
	}
	conn, err := admin.Conn(t.Context())
	stage.Must(t, err)
	defer conn.Close()
	for _, statement := range []string{`SET default_transaction_read_only = off`, database + `RESET default_transaction_read_only`} {
		stage.Must(t, stage.Err(conn.ExecContext(t.Context(), statement)))
	}
	stage.Same(t, "it may be written to", "issued:1", claim(t, l.Gate, "c", "a"))
}

// TestF65AColumnThatChangesItsTypeMeetsNoClaim changes one that statements which the
// connections have prepared return, as a newer release's migration might.
func TestF65AColumnThatChangesItsTypeMeetsNoClaim(t *testing.T) {
	onServers(t, func(t *testing.T, kind services.Kind) {
		nodes, name := nodesOn(t, kind, 1, 2)
		stage.Same(t, "before", "issued:1", claim(t, nodes[0].Gate, "c", "a"))
		stage.Same(t, "prepared", "already_issued:1", claim(t, nodes[0].Gate, "c", "a"))
		change := map[services.Kind]string{
			services.MariaDB:    `ALTER TABLE coupons MODIFY code VARBINARY(64) NOT NULL`,
			services.PostgreSQL: `ALTER TABLE coupons ALTER code TYPE varchar(64)`,
		}[kind]
		execute(t, services.Beside(t, name), change)
		stage.Same(t, "behind it", "already_issued:1 issued:2", claim(t, nodes[0].Gate, "c", "a", "b"))
	})
}

// TestADeadLetterOfNoCampaignIsVoidedOnce has another operator, here a hand, void the
// letter at the same time: there is no campaign's row that both would lock.
func TestADeadLetterOfNoCampaignIsVoidedOnce(t *testing.T) {
	onServers(t, func(t *testing.T, kind services.Kind) {
		name := kind.Database(t)
		l := remoteAt(t, name)
		stage.Must(t, stage.Err(l.Recorder.Bury(t.Context(), record.Batch{Campaign: "unknown", Coupons: stage.Coupons("c", 1, 1)}, "no such campaign")))
		db := services.Beside(t, name)
		hand := begin(t, db, `UPDATE dead_letters SET resolved_at = 1, resolved_by = 'voided'`)
		voided := make(chan error, 1)
		letter := letters(t, l, ledger.Letters{})[0].ID
		go func() { voided <- l.Recorder.VoidLetter(context.Background(), "op", letter, "looked at") }()
		waitUntilBlocked(t, kind, db)
		stage.Must(t, hand.Commit())
		if err := <-voided; !errors.Is(err, firstcome.ErrResolvedLetter) {
			t.Errorf("voided twice: %v", err)
		}
	})
}
