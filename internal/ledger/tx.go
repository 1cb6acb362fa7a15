package ledger

import (
	"context"
	"database/sql"
	"errors"

	"github.com/firstcome/firstcome"
)

// A tx is a transaction as a job sees it: the writer's, or on a server the job's own.
type tx struct {
	dialect    *dialect
	conn       *sql.Conn            // the writer's, on SQLite
	stmts      map[string]*sql.Stmt // of conn
	server     *serverTx            // else
	lookFirst  bool                 // look users up before coupons are inserted
	savepoints bool                 // each job has a savepoint
	writes     int
	touched    map[firstcome.CampaignID]bool // campaigns with new facts

	// What flush will write: claims only decide, so that the claims of many
	// campaigns are written together.
	coupons []placed
	dirty   map[firstcome.CampaignID]bool
	// stocks are the campaigns' rows as this transaction leaves them, and those of
	// earlier ones: nobody else writes them, so they are read once.
	stocks map[firstcome.CampaignID]stock
}

func newTx(d *dialect) *tx {
	return &tx{
		dialect: d,
		stmts:   map[string]*sql.Stmt{},
		touched: map[firstcome.CampaignID]bool{},
		dirty:   map[firstcome.CampaignID]bool{},
		stocks:  map[firstcome.CampaignID]stock{},
	}
}

// reset forgets what a rollback undoes.
func (t *tx) reset() {
	t.forget()
	clear(t.stocks)
}

// stmt returns the prepared statement of a query.
func (t *tx) stmt(query string) (*sql.Stmt, error) {
	if s, ok := t.stmts[query]; ok {
		return s, nil
	}
	s, err := t.conn.PrepareContext(context.Background(), query)
	if err != nil {
		return nil, err
	}
	t.stmts[query] = s
	return s, nil
}

// exec runs a statement that returns no rows, and returns how many it changed.
// On SQLite it takes no context: a statement that is cut short would leave it unknown what
// happened, and every statement here is short.
func (t *tx) exec(query string, args ...any) (int64, error) {
	if t.server != nil {
		return t.server.exec(query, args)
	}
	s, err := t.stmt(query)
	if err != nil {
		return 0, err
	}
	r, err := s.Exec(args...)
	if err != nil {
		return 0, err
	}
	return r.RowsAffected()
}

// change is exec for a statement that writes.
func (t *tx) change(query string, args ...any) (int64, error) {
	t.writes++
	return t.exec(query, args...)
}

// row runs a query of at most one row; sql.ErrNoRows says that there is none.
func (t *tx) row(query string, args ...any) *row {
	if t.server != nil {
		return t.server.row(query, args)
	}
	s, err := t.stmt(query)
	if err != nil {
		return &row{err: err}
	}
	return &row{row: s.QueryRow(args...)}
}

// A row is a sql.Row or the error of its statement.
type row struct {
	row     *sql.Row
	err     error
	explain func(error) error // nil: the error says it
}

func (r *row) Scan(into ...any) error {
	if r.err != nil {
		return r.err
	}
	err := r.row.Scan(into...)
	if err != nil && r.explain != nil && !errors.Is(err, sql.ErrNoRows) {
		err = r.explain(err)
	}
	return err
}

// query runs a query of many rows.
func (t *tx) query(query string, args ...any) (*sql.Rows, error) {
	if t.server != nil {
		return t.server.query(query, args)
	}
	s, err := t.stmt(query)
	if err != nil {
		return nil, err
	}
	return s.Query(args...)
}
