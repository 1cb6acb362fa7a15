package campaign

import (
	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/sqldb"
)

// A queries holds the statements about coupons that differ between kinds of databases.
type queries struct {
	// CouponOf finds the coupon in force of a user (first argument) in a campaign (second argument).
	couponOf string
	// holder is the first column of the index of coupons for P3.
	holder string

	// look calls each with the coupons in force that claimants hold in the campaigns that they claim.
	look func(t *sqldb.Tx, all []Claimants, each func(firstcome.Coupon) error) error
	// insert writes coupons. They are grouped by campaign, and in number order.
	insert func(t *sqldb.Tx, coupons []Placed) error
	// update writes rows that the transaction changed.
	update func(t *sqldb.Tx, changed map[*Row]inRow) error
}

var queriesSQLite = queries{
	holder: `user_id`, couponOf: lookSQLiteQueries[1], look: lookSQLite, insert: insertSQLite, update: updateSQLite,
}

var queriesMySQL = queries{
	// A unique index cannot have a condition in MySQL. So the unique index of P3 is on a column that is NULL in
	// voided coupons.
	holder:   `holder`,
	couponOf: `SELECT ` + CouponColumns + ` FROM coupons WHERE holder = ? AND campaign_id = ? AND voided_at IS NULL`,
	look:     lookMySQL, insert: insertMySQL, update: updateEach,
}

var queriesPostgreSQL = queries{
	holder:   `user_id`,
	couponOf: `SELECT ` + CouponColumns + ` FROM coupons WHERE user_id = ? AND campaign_id = ? AND voided_at IS NULL`,
	look:     lookPostgreSQL, insert: insertPostgreSQL, update: updateEach,
}

// HeldQuery returns the query for the coupon in force of a user (first argument) in a campaign (second argument).
func (r *Store) HeldQuery() string { return r.queries.couponOf }

// HolderColumn returns the first column of the index of coupons for P3.
func (r *Store) HolderColumn() string { return r.queries.holder }

// byDialect has the queries of each dialect.
var byDialect = map[*sqldb.Dialect]*queries{&sqldb.SQLite: &queriesSQLite, &sqldb.MySQL: &queriesMySQL, &sqldb.PostgreSQL: &queriesPostgreSQL}
