package designs

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/go-sql-driver/mysql"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/firstcome/firstcome/test/services"
)

// A Database is MySQL, MariaDB or PostgreSQL. Queries are written with ? for each placeholder.
type Database struct {
	*sql.DB
	postgres bool
}

// OpenDatabase opens the database of a URL (mysql:// or postgres://) with a pool of so many connections. A statement costs one round trip, as by
// default it does with Java's drivers.
func OpenDatabase(at string, connections int) (*Database, error) {
	u, err := url.Parse(at)
	if err != nil {
		return nil, err
	}
	if u.Scheme == "mysql" {
		query := u.Query()
		query.Set("interpolateParams", "true")
		u.RawQuery = query.Encode()
	}
	db, err := services.Open(u.String())
	if err != nil {
		return nil, err
	}
	db.SetMaxOpenConns(connections)
	db.SetMaxIdleConns(connections)
	return &Database{db, u.Scheme != "mysql"}, nil
}

// tables are what MakeTables makes. %s is the type of a key that counts itself.
var tables = []string{
	"CREATE TABLE user_coupons (id %s PRIMARY KEY, coupon VARCHAR(64) NOT NULL, user_id VARCHAR(64) NOT NULL, issued_at TIMESTAMP(6) NOT NULL, UNIQUE (coupon, user_id))",
	"CREATE TABLE coupons (coupon VARCHAR(64) PRIMARY KEY, quantity BIGINT NOT NULL, issued BIGINT NOT NULL, expires_at TIMESTAMP(6) NOT NULL)",
}

// MakeTables makes the tables, with one coupon that expires in a week.
func (d *Database) MakeTables(ctx context.Context, coupon string, quantity int64) error {
	key := "BIGINT AUTO_INCREMENT"
	if d.postgres {
		key = "BIGSERIAL"
	}
	for _, statement := range tables {
		if _, err := d.ExecContext(ctx, strings.Replace(statement, "%s", key, 1)); err != nil {
			return fmt.Errorf("%s: %w", statement, err)
		}
	}
	_, err := d.ExecContext(ctx, d.sql("INSERT INTO coupons (coupon, quantity, issued, expires_at) VALUES (?, ?, 0, ?)"), coupon, quantity, time.Now().Add(week).UTC())
	return err
}

// Tables returns the names of all tables of the database.
func (d *Database) Tables(ctx context.Context) (names []string, err error) {
	schema := "DATABASE()"
	if d.postgres {
		schema = "'public'"
	}
	found, err := d.QueryContext(ctx, "SELECT table_name FROM information_schema.tables WHERE table_schema = "+schema)
	if err != nil {
		return nil, err
	}
	defer found.Close()
	for found.Next() {
		var name string
		if err := found.Scan(&name); err != nil {
			return nil, err
		}
		names = append(names, name)
	}
	return names, found.Err()
}

// Empty drops all tables.
func (d *Database) Empty(ctx context.Context) error {
	names, err := d.Tables(ctx)
	if err != nil || len(names) == 0 {
		return err
	}
	connection, err := d.Conn(ctx)
	if err != nil {
		return err
	}
	defer connection.Close()
	statements := []string{"SET foreign_key_checks = 0", "DROP TABLE " + strings.Join(names, ", "), "SET foreign_key_checks = 1"}
	if d.postgres {
		statements = []string{"DROP TABLE " + strings.Join(names, ", ") + " CASCADE"}
	}
	for _, statement := range statements {
		if _, err := connection.ExecContext(ctx, statement); err != nil {
			return fmt.Errorf("%s: %w", statement, err)
		}
	}
	return nil
}

// sql returns a query with the placeholders of the database.
func (d *Database) sql(query string) string {
	if !d.postgres {
		return query
	}
	var b strings.Builder
	parts := strings.Split(query, "?")
	for n, part := range parts {
		if n > 0 {
			b.WriteString("$" + strconv.Itoa(n))
		}
		b.WriteString(part)
	}
	return b.String()
}

// A querier is a database or a transaction.
type querier interface {
	ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
}

// in runs a transaction: begin, do, commit; or roll back after an error.
func (d *Database) in(ctx context.Context, do func(tx *sql.Tx) error) error {
	tx, err := d.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	if err := do(tx); err != nil {
		return errors.Join(err, tx.Rollback())
	}
	return tx.Commit()
}

// find returns the id of a user's row, or 0.
func (d *Database) find(ctx context.Context, coupon, user string) (id int64, err error) {
	return d.findIn(ctx, d, coupon, user)
}

func (d *Database) findIn(ctx context.Context, q querier, coupon, user string) (id int64, err error) {
	err = q.QueryRowContext(ctx, d.sql("SELECT id FROM user_coupons WHERE coupon = ? AND user_id = ?"), coupon, user).Scan(&id)
	if errors.Is(err, sql.ErrNoRows) {
		return 0, nil
	}
	return id, err
}

// count returns how many rows the coupon has.
func (d *Database) count(ctx context.Context, coupon string) (int64, error) {
	return d.countIn(ctx, d, coupon)
}

func (d *Database) countIn(ctx context.Context, q querier, coupon string) (count int64, err error) {
	err = q.QueryRowContext(ctx, d.sql("SELECT COUNT(*) FROM user_coupons WHERE coupon = ?"), coupon).Scan(&count)
	return count, err
}

// quantity returns how many coupons there are.
func (d *Database) quantity(ctx context.Context, coupon string) (quantity int64, err error) {
	err = d.QueryRowContext(ctx, d.sql("SELECT quantity FROM coupons WHERE coupon = ?"), coupon).Scan(&quantity)
	return quantity, err
}

// take counts a coupon as issued, and reports whether one was left.
func (d *Database) take(ctx context.Context, tx *sql.Tx, coupon string) (bool, error) {
	result, err := tx.ExecContext(ctx, d.sql("UPDATE coupons SET issued = issued + 1 WHERE coupon = ? AND issued < quantity"), coupon)
	if err != nil {
		return false, err
	}
	taken, err := result.RowsAffected()
	return taken > 0, err
}

// lock locks the coupon's row until the transaction ends, and returns the quantity.
func (d *Database) lock(ctx context.Context, tx *sql.Tx, coupon string) (quantity int64, err error) {
	err = tx.QueryRowContext(ctx, d.sql("SELECT quantity FROM coupons WHERE coupon = ? FOR UPDATE"), coupon).Scan(&quantity)
	return quantity, err
}

// insert stores a winner.
func (d *Database) insert(ctx context.Context, q querier, coupon, user string, at time.Time) error {
	_, err := q.ExecContext(ctx, d.sql("INSERT INTO user_coupons (coupon, user_id, issued_at) VALUES (?, ?, ?)"), coupon, user, at.UTC())
	return err
}

// insertAll stores winners by one statement. Rows that are there stay as they are.
func (d *Database) insertAll(ctx context.Context, coupon string, users []string, at time.Time) error {
	if len(users) == 0 {
		return nil
	}
	verb, end := "INSERT IGNORE INTO", ""
	if d.postgres {
		verb, end = "INSERT INTO", " ON CONFLICT DO NOTHING"
	}
	args := make([]any, 0, 3*len(users))
	for _, user := range users {
		args = append(args, coupon, user, at.UTC())
	}
	_, err := d.ExecContext(ctx, d.sql(verb+" user_coupons (coupon, user_id, issued_at) VALUES "+strings.Repeat("(?, ?, ?), ", len(users)-1)+"(?, ?, ?)"+end), args...)
	return err
}

// expiry returns when the coupon expires.
func (d *Database) expiry(ctx context.Context, coupon string) (at time.Time, err error) {
	err = d.QueryRowContext(ctx, d.sql("SELECT expires_at FROM coupons WHERE coupon = ?"), coupon).Scan(&at)
	return at, err
}

// isDuplicate reports whether an error says that the user has a row already.
func isDuplicate(err error) bool {
	if refused := (*mysql.MySQLError)(nil); errors.As(err, &refused) {
		return refused.Number == 1062 // ER_DUP_ENTRY
	}
	refused := (*pgconn.PgError)(nil)
	return errors.As(err, &refused) && refused.Code == "23505" // unique_violation
}

// A Row is a winner as the database has them.
type Row struct {
	ID   int64
	User string
}

// Rows returns the coupon's rows with ids above one, in the order of their ids.
func (d *Database) Rows(ctx context.Context, coupon string, above int64) (rows []Row, err error) {
	found, err := d.QueryContext(ctx, d.sql("SELECT id, user_id FROM user_coupons WHERE coupon = ? AND id > ? ORDER BY id"), coupon, above)
	if err != nil {
		return nil, err
	}
	defer found.Close()
	for found.Next() {
		var row Row
		if err := found.Scan(&row.ID, &row.User); err != nil {
			return nil, err
		}
		rows = append(rows, row)
	}
	return rows, found.Err()
}

// Commits returns how many transactions the server has committed, statements outside of one included.
func (d *Database) Commits(ctx context.Context) (n int64, err error) {
	if d.postgres {
		return n, d.QueryRowContext(ctx, "SELECT xact_commit FROM pg_stat_database WHERE datname = current_database()").Scan(&n)
	}
	var name string
	// The storage engine counts those that changed or read its rows, whether they began with BEGIN or not.
	return n, d.QueryRowContext(ctx, "SHOW GLOBAL STATUS LIKE 'Handler_commit'").Scan(&name, &n)
}
