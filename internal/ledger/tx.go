package ledger

import (
	"database/sql"
	"errors"

	"github.com/firstcome/firstcome"
)

// A tx is a transaction as a job sees it: the writer's, or on a server the job's own.
type tx struct {
	statements
	dialect *dialect
	writes  int
	touched map[firstcome.CampaignID]bool // campaigns with new facts

	// What flush will write: claims only decide, so that the claims of many
	// campaigns are written together.
	coupons []placed
	joins   []ticket                       // that were given
	ends    []ticket                       // that ended: see ticket.outcome
	past    []pastLine                     // generations that ended
	dirty   map[firstcome.CampaignID]inRow // campaigns whose rows are raised
	// stocks are the campaigns' rows as this transaction leaves them, and on SQLite those of
	// earlier ones: nobody else writes them, so they are read once.
	stocks map[firstcome.CampaignID]stock
}

// Statements are what a transaction runs.
type statements interface {
	// exec runs a statement that returns no rows, and returns how many it changed.
	exec(query string, args ...any) (int64, error)
	// row runs a query of at most one row; sql.ErrNoRows says that there is none.
	row(query string, args ...any) *row
	// query runs a query of many rows.
	query(query string, args ...any) (*sql.Rows, error)
}

func newTx(d *dialect) *tx {
	return &tx{
		dialect: d,
		touched: map[firstcome.CampaignID]bool{},
		dirty:   map[firstcome.CampaignID]inRow{},
		stocks:  map[firstcome.CampaignID]stock{},
	}
}

// An inRow is what the row of a campaign has in the database, until flush.
type inRow struct {
	lastNumber int64
	line       firstcome.Line
}

// begin forgets what the transaction before wrote.
func (t *tx) begin() {
	t.writes, t.coupons = 0, t.coupons[:0]
	t.joins, t.ends, t.past = t.joins[:0], t.ends[:0], t.past[:0]
	clear(t.touched)
	clear(t.dirty)
}

// change is exec for a statement that writes.
func (t *tx) change(query string, args ...any) (int64, error) {
	t.writes++
	return t.exec(query, args...)
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
