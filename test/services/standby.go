package services

import (
	"context"
	"fmt"
	"net/url"
	"testing"
)

// A Standby is a server that follows another one, the primary, and takes no writes itself. A PostgreSQL
// standby is a copy that streams. A MariaDB standby is a replica that begins with the primary's first
// statement.
type Standby struct {
	*Server
	primary *Server
}

// Primary starts a MariaDB or PostgreSQL for t that a Standby may follow, fast and not durable.
func (k Kind) Primary(t testing.TB) *Server {
	t.Helper()
	return k.Server(t, append(k.Fast(), map[Kind][]string{
		MariaDB:    {"--log-bin=log", "--server-id=1", "--sync-binlog=0"},
		PostgreSQL: {"-c", "synchronous_commit=on"}, // so that a commit is flushed and sent to the standby
	}[k]...)...)
}

// Standby starts a standby of a Primary for t, and returns when the standby has all that the primary has.
func (s *Server) Standby(t testing.TB) *Standby {
	t.Helper()
	recipe, err := s.kind.recipe()
	s.kind.must(t, err)
	arguments := s.kind.Fast()
	if s.kind == PostgreSQL {
		copier, err := binary(newestFirst("/usr/lib/postgresql/*/bin"), "pg_basebackup")
		s.kind.must(t, err)
		recipe.template = nil
		recipe.prepare = func(data string) []string {
			return []string{copier, "-D", data, "-h", "127.0.0.1", "-p", s.port.String(), "-U", "postgres", "-R", "-c", "fast", "--no-sync"}
		}
	} else {
		arguments = append(arguments, "--server-id=2", "--read-only=1", "--log-bin=log", "--sync-binlog=0")
	}
	started, err := s.kind.start(t.Context(), recipe, arguments...)
	s.kind.ends(t, started, err)
	standby := &Standby{started, s}
	if err := standby.follow(t.Context()); err != nil {
		t.Fatalf("follow %s: %v", s.Address(), err)
	}
	return standby
}

// follow has the standby begin to follow, and waits until the standby has caught up.
func (s *Standby) follow(ctx context.Context) error {
	if s.kind == MariaDB {
		err := Execute(ctx, s.URL(), fmt.Sprintf(
			`CHANGE MASTER TO MASTER_HOST = '127.0.0.1', MASTER_PORT = %s, MASTER_USER = 'root', MASTER_USE_GTID = slave_pos`, s.primary.port))
		if err != nil {
			return err
		}
	}
	return s.CatchUp(ctx)
}

// At returns the URL by which the standby serves a database of the primary.
func (s *Standby) At(database string) (string, error) {
	u, err := url.Parse(database)
	if err != nil {
		return "", err
	}
	u.Host = s.Address()
	return u.String(), nil
}

// Lag has the standby apply nothing more, until CatchUp or Promote.
func (s *Standby) Lag(ctx context.Context) error {
	if s.kind == MariaDB {
		return Execute(ctx, s.URL(), `STOP SLAVE SQL_THREAD`)
	}
	if err := Execute(ctx, s.URL(), `SELECT pg_wal_replay_pause()`); err != nil {
		return err
	}
	return s.awaitTrue(ctx, `SELECT pg_get_wal_replay_pause_state() = 'paused'`)
}

// CatchUp has the standby follow again, and returns when the standby has what the primary had at the time of
// the call.
func (s *Standby) CatchUp(ctx context.Context) error {
	follow, position, reached := `SELECT pg_wal_replay_resume()`, `SELECT pg_current_wal_flush_lsn()::text`,
		`SELECT pg_last_wal_replay_lsn() >= '%s'::pg_lsn`
	if s.kind == MariaDB {
		follow, position, reached = `START SLAVE`, `SELECT @@global.gtid_binlog_pos`, `SELECT MASTER_GTID_WAIT('%s', 10) = 0`
	}
	if err := Execute(ctx, s.URL(), follow); err != nil {
		return err
	}
	var at string
	if err := s.primary.scan(ctx, position, &at); err != nil {
		return err
	}
	return s.awaitTrue(ctx, fmt.Sprintf(reached, at))
}

// Promote makes the standby a primary, with the data that it has. Connections to it stay open.
func (s *Standby) Promote(ctx context.Context) error {
	if s.kind == PostgreSQL {
		return Execute(ctx, s.URL(), `SELECT pg_promote()`)
	}
	return Execute(ctx, s.URL(), `STOP SLAVE`, `RESET SLAVE ALL`, `SET GLOBAL read_only = 0`)
}

// Demote has a primary take no more writes, as an operator does before promoting another server. MariaDB
// keeps running with its connections; PostgreSQL stops.
func (s *Server) Demote(ctx context.Context) error {
	if s.kind == PostgreSQL {
		return s.Stop()
	}
	return Execute(ctx, s.URL(), `SET GLOBAL read_only = 1`)
}

// Synchronize has a PostgreSQL primary confirm a commit only when the standby has it.
func (s *Standby) Synchronize(ctx context.Context) error {
	if err := Execute(ctx, s.primary.URL(), `ALTER SYSTEM SET synchronous_standby_names = '*'`, `SELECT pg_reload_conf()`); err != nil {
		return err
	}
	return s.primary.awaitTrue(ctx, `SELECT count(*) > 0 FROM pg_stat_replication WHERE sync_state = 'sync'`)
}

// Unconfirmed returns how many commits on a PostgreSQL wait for a standby.
func (s *Server) Unconfirmed(ctx context.Context) (commits int, err error) {
	err = s.scan(ctx, `SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'SyncRep'`, &commits)
	return commits, err
}

// scan runs a query on the server and reads its one value.
func (s *Server) scan(ctx context.Context, query string, into any) error {
	db, err := Open(s.URL())
	if err != nil {
		return err
	}
	defer db.Close()
	if err := db.QueryRowContext(ctx, query).Scan(into); err != nil {
		return fmt.Errorf("%s: %w", query, err)
	}
	return nil
}

// awaitTrue repeats a query until the answer is true.
func (s *Server) awaitTrue(ctx context.Context, query string) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	var last error
	err := until(ctx, func() bool {
		var so bool
		last = s.scan(ctx, query, &so)
		return last == nil && so
	})
	if err != nil && last != nil {
		return fmt.Errorf("%w: %w", err, last)
	}
	return err
}
