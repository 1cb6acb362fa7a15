package services

import (
	"context"
	"database/sql"
	"fmt"
	"testing"

	sqlitedriver "modernc.org/sqlite"
)

// Explain returns what a database says of how it runs a query, without the indexes that it only considered.
func Explain(ctx context.Context, db *sql.DB, query string, args ...any) (plan string, err error) {
	how := `EXPLAIN `
	if _, is := db.Driver().(*sqlitedriver.Driver); is {
		how = `EXPLAIN QUERY PLAN `
	}
	rows, err := db.QueryContext(ctx, how+query, args...)
	if err != nil {
		return "", err
	}
	defer rows.Close()
	columns, err := rows.Columns()
	if err != nil {
		return "", err
	}
	for rows.Next() {
		cells, into := make([]sql.NullString, len(columns)), make([]any, len(columns))
		for n := range cells {
			into[n] = &cells[n]
		}
		if err := rows.Scan(into...); err != nil {
			return "", err
		}
		for n, cell := range cells {
			if columns[n] != "possible_keys" {
				plan += cell.String + " "
			}
		}
		plan += "\n"
	}
	return plan, rows.Err()
}

// Program returns the instructions that SQLite runs for a statement with so many arguments.
func Program(t testing.TB, db *sql.DB, statement string, args int) (program string) {
	t.Helper()
	rows, err := db.Query(`EXPLAIN `+statement, make([]any, args)...)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	for rows.Next() {
		var opcode string
		var other any
		if err := rows.Scan(&other, &opcode, &other, &other, &other, &other, &other, &other); err != nil {
			t.Fatal(err)
		}
		program += opcode + "\n"
	}
	if err := rows.Err(); err != nil || program == "" {
		t.Fatalf("%s has no instructions: %v", statement, err)
	}
	return program
}

// FillVoids writes so many voids of a campaign c into the audit log. user-0, user-1, … have three each.
func FillVoids(t testing.TB, db *sql.DB, voids int) {
	t.Helper()
	tx, err := db.Begin()
	if err != nil {
		t.Fatal(err)
	}
	for n := range voids {
		_, err := tx.Exec(fmt.Sprintf(`INSERT INTO audit_log (at, actor, action, campaign_id, user_id, number, detail)
			VALUES (1, 'a', 'coupon.void', 'c', 'user-%d', %d, '{}')`, n/3, n+1))
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := tx.Commit(); err != nil {
		t.Fatal(err)
	}
}
