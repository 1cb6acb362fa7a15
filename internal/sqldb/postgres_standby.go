package sqldb

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"net"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgconn/ctxwatch"
	"github.com/jackc/pgx/v5/pgproto3"
	"github.com/jackc/pgx/v5/stdlib"

	"github.com/firstcome/firstcome/internal/doctor"
)

// With a synchronous standby, PostgreSQL holds each COMMIT until the standby has it. Meanwhile no session sees the
// transaction's writes, and its locks stay. If the wait is cancelled, PostgreSQL keeps the transaction on the primary
// alone and shows it to all sessions, and a failover loses it. The driver sends a cancel request when a context ends and
// when it cannot read. So a COMMIT is sent and its answer read here, below the part of the driver that cancels:
//
//	COMMIT ──▶ answered: the connection goes back to its pool
//	      └──▶ ctx ends: the caller gets an error (unknown), and the connection is set aside ──▶ answered, or broken: closed
//
// A connection that is set aside keeps its place among a pool's connections, so a node never has more than
// serverWriters. When the pool closes, such a connection closes too. PostgreSQL does not notice that, and waits on.

// errUnanswered means that the server has not answered COMMIT within the caller's time.
var errUnanswered = errors.New("the server has not answered COMMIT: if it has a synchronous standby, that may be away. See synchronous_standby_names and pg_stat_replication")

// probes has a connection to a machine that is gone fail within half a minute, so that a wait for COMMIT ends after a
// failover.
func probes() net.KeepAliveConfig {
	return net.KeepAliveConfig{Enable: true, Idle: 15 * time.Second, Interval: 5 * time.Second, Count: 3}
}

// A postgreSQLConnector connects to a primary.
type postgreSQLConnector struct {
	driver.Connector
	places chan struct{}   // one element for each connection
	open   context.Context // ends when the pool closes
	close  context.CancelFunc
}

func newPostgreSQLConnector(c driver.Connector) *postgreSQLConnector {
	p := &postgreSQLConnector{Connector: c, places: make(chan struct{}, serverWriters)}
	p.open, p.close = context.WithCancel(context.Background())
	return p
}

// Connect implements driver.Connector. It waits for a place.
func (p *postgreSQLConnector) Connect(ctx context.Context) (driver.Conn, error) {
	select {
	case p.places <- struct{}{}:
	case <-ctx.Done():
		return nil, fmt.Errorf("%w: this node has %d connections, and waits for the server to confirm them: %w", ctx.Err(), serverWriters, errUnanswered)
	}
	conn, err := p.Connector.Connect(ctx)
	if err != nil {
		<-p.places
		return nil, err
	}
	return &postgreSQLConn{Conn: conn.(*stdlib.Conn), connector: p}, nil
}

// Close implements io.Closer. sql.DB.Close calls it.
func (p *postgreSQLConnector) Close() error {
	p.close()
	return nil
}

// A postgreSQLConn is a connection whose COMMIT is never cancelled.
type postgreSQLConn struct {
	*stdlib.Conn
	connector *postgreSQLConnector
	aside     bool // wait uses and closes it
}

// IsValid implements driver.Validator.
func (c *postgreSQLConn) IsValid() bool { return !c.aside }

// Close implements driver.Conn.
func (c *postgreSQLConn) Close() error {
	if c.aside {
		return nil
	}
	return c.leave()
}

// leave closes the connection. Unlike an error of the driver, that sends no cancel request.
func (c *postgreSQLConn) leave() error {
	defer func() { <-c.connector.places }()
	return c.Conn.Close()
}

// BeginTx implements driver.ConnBeginTx.
func (c *postgreSQLConn) BeginTx(ctx context.Context, o driver.TxOptions) (driver.Tx, error) {
	tx, err := c.Conn.BeginTx(ctx, o)
	return &postgreSQLTx{tx, ctx, c}, err
}

// wait waits for the answer to COMMIT, after its caller has given up.
func (c *postgreSQLConn) wait() {
	pg := c.Conn.Conn().PgConn()
	stop := context.AfterFunc(c.connector.open, func() { _ = pg.Conn().Close() })
	defer stop()
	for isTimeout(committed(pg.Frontend())) { // the time of an impatient connection, which begins again with each read
	}
	_ = c.leave() // the next transaction that needs the outcome reads it
}

// A postgreSQLTx is a transaction of a postgreSQLConn.
type postgreSQLTx struct {
	driver.Tx
	ctx  context.Context
	conn *postgreSQLConn
}

// Commit implements driver.Tx.
func (t *postgreSQLTx) Commit() error {
	if t.ctx.Err() != nil {
		return t.Tx.Commit() // which sends nothing
	}
	pg := t.conn.Conn.Conn().PgConn()
	watch := ctxwatch.NewContextWatcher(&pgconn.DeadlineContextWatcherHandler{Conn: pg.Conn()})
	watch.Watch(t.ctx)
	pg.Frontend().SendQuery(&pgproto3.Query{String: "commit"})
	err := pg.Frontend().Flush()
	if err == nil {
		err = committed(pg.Frontend())
	}
	watch.Unwatch()
	if e, ok := errors.AsType[*pgconn.PgError](err); err != nil && !errors.Is(err, pgx.ErrTxCommitRollback) && (!ok || e.SeverityUnlocalized == "FATAL") {
		t.conn.aside = true
		go t.conn.wait()
		if isTimeout(err) {
			return fmt.Errorf("%w: %w", errUnanswered, err)
		}
		return err
	}
	for { // the server sends this with its answer
		m, broken := pg.ReceiveMessage(context.Background())
		if _, ready := m.(*pgproto3.ReadyForQuery); ready || broken != nil {
			return err
		}
	}
}

// committed reads the answer to COMMIT.
func committed(f *pgproto3.Frontend) error {
	for {
		m, err := f.Receive()
		if err != nil {
			return err
		}
		switch m := m.(type) {
		case *pgproto3.ErrorResponse:
			return pgconn.ErrorResponseToPgError(m)
		case *pgproto3.CommandComplete:
			if string(m.CommandTag) == "ROLLBACK" {
				return pgx.ErrTxCommitRollback
			}
			return nil
		}
	}
}

func isTimeout(err error) bool {
	e, ok := errors.AsType[net.Error](err)
	return ok && e.Timeout()
}

// standby checks whether a coupon that was told would survive a failover to a synchronous standby, if one is named.
// Without the rights of pg_monitor, a user sees how many standbys are connected, and no more.
func (e *exam) standby() {
	const what = "synchronous standby"
	s, err := e.settings(`SELECT name, setting FROM pg_settings WHERE name IN ('synchronous_standby_names', 'synchronous_commit')
		UNION ALL SELECT 'connected', count(*)::text FROM pg_stat_replication
		UNION ALL SELECT 'read', count(sync_state)::text FROM pg_stat_replication
		UNION ALL SELECT 'confirming', count(*)::text FROM pg_stat_replication WHERE sync_state IN ('sync', 'quorum')`)
	if err != nil {
		e.unknown(what, err)
		return
	}
	names := s["synchronous_standby_names"]
	if names == "" {
		return
	}
	if level := s["synchronous_commit"]; level == "local" || level == "off" {
		e.Add(doctor.Fail, what, "leave synchronous_commit out of the ledger's name", "no commit waits for it (synchronous_commit = %s): a failover loses answered coupons", level)
		return
	}
	if s["connected"] != "0" && s["read"] == "0" {
		e.Add(doctor.Warn, what, "GRANT pg_monitor TO NAME", "whether one is connected is unknown: this user may not read pg_stat_replication")
		return
	}
	e.Hold(enough(names, s["confirming"]), doctor.Warn, what, "start it, or have it connect: until then nothing is committed, and claims are 503",
		"%s named by %s are connected", s["confirming"], names)
}

// enough reports whether so many standbys can confirm a commit. names is a value of synchronous_standby_names: FIRST 2
// (a, b, c), ANY 2 (a, b, c), 2 (a, b, c), or names alone, of which one is enough.
func enough(names, confirming string) bool {
	var least, has int
	count := strings.TrimSpace(names)
	for _, word := range []string{"FIRST", "ANY"} {
		if len(count) > len(word) && strings.EqualFold(count[:len(word)], word) {
			count = count[len(word):]
		}
	}
	if n, _ := fmt.Sscanf(count, "%d (", &least); n == 0 {
		least = 1
	}
	_, err := fmt.Sscan(confirming, &has)
	return err == nil && has >= least
}
