package ledger

import (
	"cmp"
	"context"
	"database/sql"
	"database/sql/driver"
	"fmt"
	"io"
	"strings"
)

// A name may lead to a standby: for a while, or by its second host. So what decides or
// concludes goes through connections that hold their server to be the primary:
//
//   - A connection is not made to a server that only reads. One that was made to a standby, to
//     list, lives on when that is promoted, and is never used for more.
//   - A primary that is demoted keeps its connections on MySQL and MariaDB, and says nothing to
//     the reader. So each transaction and each query outside of one asks it first, in the same round
//     trip. What is read after that has all that was committed before: until then nobody else
//     was the primary. PostgreSQL demotes by a restart; if it is told to be read-only, it
//     reports so by itself.
//
// What was refused so was not done, and database/sql tries it again on a new connection, which leads
// to the new primary if the name does.

// lookMySQLPrimary asks whether a server takes writes: of Aurora's the second tells.
const lookMySQLPrimary = `SELECT @@global.read_only, @@global.innodb_read_only`

// A mySQLConn is what the driver's connections are.
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

// A mySQLPrimary makes connections to a server while it is the primary.
type mySQLPrimary struct{ driver.Connector }

// Connect is a driver.Connector's.
func (p mySQLPrimary) Connect(ctx context.Context) (driver.Conn, error) {
	conn, err := p.Connector.Connect(ctx)
	if err != nil {
		return nil, err
	}
	c := &primaryConn{mySQLConn: conn.(mySQLConn)}
	rows, err := c.ask(ctx, errStandby, lookMySQLPrimary, nil)
	if err != nil {
		_ = conn.Close() // which is not used
		return nil, err
	}
	return c, rows.Close()
}

// A primaryConn is a connection that is bad as soon as its server is no primary. It takes several
// statements at once: its own, and then the one that it was given.
type primaryConn struct {
	mySQLConn
	within bool // a transaction, which asked when it began
}

// ask runs statements of which the first that returns rows is lookMySQLPrimary. If that says that the server is no primary,
// the error is otherwise.
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

// off tells whether a setting is off, which some servers tell by a number and some by a word.
func off(setting driver.Value) bool {
	text := fmt.Sprint(setting)
	if b, ok := setting.([]byte); ok {
		text = string(b)
	}
	return text == "0" || strings.EqualFold(text, "OFF")
}

// QueryContext is a driver.QueryerContext's.
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

// PrepareContext is a driver.ConnPrepareContext's: of a query with more arguments than the driver
// writes into its text.
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

// BeginTx is a driver.ConnBeginTx's: one round trip, where the driver's own makes two.
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

// A primaryTx is a transaction that a primaryConn began.
type primaryTx struct{ conn *primaryConn }

// Commit is a driver.Tx's.
func (t *primaryTx) Commit() error { return t.end(`COMMIT`) }

// Rollback is a driver.Tx's.
func (t *primaryTx) Rollback() error { return t.end(`ROLLBACK`) }

func (t *primaryTx) end(how string) error {
	t.conn.within = false
	_, err := t.conn.ExecContext(context.Background(), how, nil)
	return err
}
