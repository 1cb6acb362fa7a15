package sqldb

import (
	"cmp"
	"context"
	"database/sql"
	"database/sql/driver"
	"fmt"
	"io"
	"strings"
)

// A name may lead to a standby: for a while, or by its second host. So decisions, and the reads that they
// depend on, use connections that make sure that their server is the primary:
//
//   - They do not connect to a server that is read-only. Connections to a standby that serve lists stay open
//     when the standby is promoted, and still only serve lists.
//   - A demoted primary keeps its connections on MySQL and MariaDB, and does not tell readers. So each
//     transaction, and each query outside of one, first asks whether the server is the primary, in the same
//     round trip. A read after the answer sees everything that was committed before the answer, because until
//     then no other server was the primary. PostgreSQL restarts to be demoted. A PostgreSQL that is set to
//     read-only reports this by itself.
//
// A statement that is refused for this reason was not run. database/sql tries it again on a new connection, which
// leads to the new primary if the name does.

// lookMySQLPrimary asks whether a server takes writes. On Aurora the second setting says so.
const lookMySQLPrimary = `SELECT @@global.read_only, @@global.innodb_read_only`

// A mySQLConn lists the interfaces that the driver's connections have.
type mySQLConn interface {
	driver.Conn
	driver.ConnBeginTx
	driver.ConnPrepareContext
	driver.ExecerContext
	driver.QueryerContext
	driver.NamedValueChecker
	driver.Pinger
	driver.SessionResetter
	driver.Validator
}

// A mySQLPrimary connects to a server only while that is the primary.
type mySQLPrimary struct{ driver.Connector }

// Connect implements driver.Connector.
func (p mySQLPrimary) Connect(ctx context.Context) (driver.Conn, error) {
	conn, err := p.Connector.Connect(ctx)
	if err != nil {
		return nil, err
	}
	c := &primaryConn{mySQLConn: conn.(mySQLConn)}
	rows, err := c.ask(ctx, errStandby, lookMySQLPrimary, nil)
	if err != nil {
		_ = conn.Close() // nobody uses it
		return nil, err
	}
	return c, rows.Close()
}

// A primaryConn is a connection that is bad as soon as its server is not the primary. It sends several
// statements at once: its own, and then the caller's.
type primaryConn struct {
	mySQLConn
	within bool // in a transaction, which asked when it began
}

// ask runs statements. The first of them that returns rows is lookMySQLPrimary. If its answer is that the server is not
// the primary, ask returns the error otherwise.
func (c *primaryConn) ask(ctx context.Context, otherwise error, query string, args []driver.NamedValue) (driver.Rows, error) {
	rows, err := c.mySQLConn.QueryContext(ctx, query, args)
	if err != nil {
		return nil, err
	}
	var settings [2]driver.Value
	if err = rows.Next(settings[:]); err == nil && off(settings[0]) && off(settings[1]) {
		return rows, nil
	}
	_ = rows.Close() // the connection is not used again
	return nil, cmp.Or(err, otherwise)
}

// off reports whether a setting is off. Some servers say so with a number, some with a word.
func off(setting driver.Value) bool {
	text := fmt.Sprint(setting)
	if b, ok := setting.([]byte); ok {
		text = string(b)
	}
	return text == "0" || strings.EqualFold(text, "OFF")
}

// QueryContext implements driver.QueryerContext.
func (c *primaryConn) QueryContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Rows, error) {
	if c.within {
		return c.mySQLConn.QueryContext(ctx, query, args)
	}
	rows, err := c.ask(ctx, driver.ErrBadConn, lookMySQLPrimary+`; `+query, args)
	if err != nil {
		return nil, err
	}
	if err := rows.(driver.RowsNextResultSet).NextResultSet(); err != nil && err != io.EOF {
		_ = rows.Close()
		return nil, err
	}
	return rows, nil
}

// PrepareContext implements driver.ConnPrepareContext. It is called for a query with more arguments than the
// driver writes into the query's text.
func (c *primaryConn) PrepareContext(ctx context.Context, query string) (driver.Stmt, error) {
	if !c.within {
		rows, err := c.ask(ctx, driver.ErrBadConn, lookMySQLPrimary, nil)
		if err != nil {
			return nil, err
		}
		if err := rows.Close(); err != nil {
			return nil, err
		}
	}
	return c.mySQLConn.PrepareContext(ctx, query)
}

// BeginTx implements driver.ConnBeginTx. It takes one round trip, where the driver's own takes two.
func (c *primaryConn) BeginTx(ctx context.Context, o driver.TxOptions) (driver.Tx, error) {
	begin := `START TRANSACTION; `
	if o.ReadOnly {
		begin = `START TRANSACTION READ ONLY; `
	}
	if level := sql.IsolationLevel(o.Isolation); level != sql.LevelDefault {
		begin = `SET TRANSACTION ISOLATION LEVEL ` + strings.ToUpper(level.String()) + `; ` + begin
	}
	rows, err := c.ask(ctx, driver.ErrBadConn, begin+lookMySQLPrimary, nil)
	if err != nil {
		return nil, err
	}
	c.within = true
	return &primaryTx{c}, rows.Close()
}

// A primaryTx is a transaction of a primaryConn.
type primaryTx struct{ conn *primaryConn }

// Commit implements driver.Tx.
func (t *primaryTx) Commit() error { return t.end(`COMMIT`) }

// Rollback implements driver.Tx.
func (t *primaryTx) Rollback() error { return t.end(`ROLLBACK`) }

func (t *primaryTx) end(how string) error {
	t.conn.within = false
	_, err := t.conn.ExecContext(context.Background(), how, nil)
	return err
}
