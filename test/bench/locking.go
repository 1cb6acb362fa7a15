package main

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/firstcome/firstcome/test/services"
)

// open returns so many connections to a ledger's database, as a plain program has them.
func open(url string, connections int) (*sql.DB, error) {
	if strings.HasPrefix(url, "mysql:") {
		url += "?interpolateParams=true" // one round trip a statement
	}
	db, err := services.Open(url)
	if err != nil {
		return nil, err
	}
	db.SetMaxOpenConns(connections)
	db.SetMaxIdleConns(connections)
	return db, nil
}

// A locking is the reference of the SQL gates: it decides each claim in a transaction
// of its own, on the ledger's own tables.
type locking struct {
	db                           *sql.DB
	stock, holder, insert, count string
}

func newLocking(url string, connections int) (*locking, error) {
	db, err := open(url, connections)
	l := &locking{
		db:     db,
		stock:  `SELECT quantity, in_force, last_number FROM campaigns WHERE id = $1 FOR UPDATE`,
		holder: `SELECT number FROM coupons WHERE user_id = $1 AND campaign_id = $2 AND voided_at IS NULL`,
		insert: `INSERT INTO coupons (campaign_id, number, user_id, code, terms_version, issued_at, recorded_at, position) VALUES ($1, $2, $3, $4, $5, $6, $7, $8)`,
		count:  `UPDATE campaigns SET in_force = in_force + 1, issued = issued + 1, last_number = $1, position = $2 WHERE id = $3`,
	}
	if strings.HasPrefix(url, "mysql:") {
		for _, query := range []*string{&l.stock, &l.holder, &l.insert, &l.count} {
			for n := '1'; n <= '8'; n++ {
				*query = strings.Replace(*query, "$"+string(n), "?", 1)
			}
		}
		l.holder = strings.Replace(l.holder, "user_id", "holder", 1) // the column of the index
	}
	return l, err
}

// serve is the handler of claims.
func (l *locking) serve(w http.ResponseWriter, r *http.Request) {
	var body struct {
		User string `json:"user_id"`
	}
	if err := json.NewDecoder(io.LimitReader(r.Body, 64<<10)).Decode(&body); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	outcome, number, at, err := l.claim(r.Context(), r.PathValue("id"), body.User)
	status := map[string]int{"issued": http.StatusCreated, "already_issued": http.StatusOK, "sold_out": http.StatusGone}[outcome]
	if err != nil {
		http.Error(w, err.Error(), http.StatusServiceUnavailable)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	fmt.Fprintf(w, `{"outcome":"%s","coupon":{"number":%d,"user_id":%q,"code":"0123456789ABCDEF","issued_at":%q}}`,
		outcome, number, body.User, at.Format(time.RFC3339Nano))
}

// claim decides a claim.
func (l *locking) claim(ctx context.Context, campaign, user string) (outcome string, number int64, at time.Time, err error) {
	tx, err := l.db.BeginTx(ctx, nil)
	if err != nil {
		return "", 0, at, err
	}
	defer func() { _ = tx.Rollback() }() // which does nothing after the commit
	var quantity sql.NullInt64
	var inForce, last int64
	if err := tx.QueryRowContext(ctx, l.stock, campaign).Scan(&quantity, &inForce, &last); err != nil {
		return "", 0, at, err
	}
	err = tx.QueryRowContext(ctx, l.holder, user, campaign).Scan(&number)
	if !errors.Is(err, sql.ErrNoRows) {
		return "already_issued", number, at, err
	}
	if quantity.Valid && inForce >= quantity.Int64 {
		return "sold_out", 0, at, nil
	}
	number, at = last+1, time.Now().UTC()
	if _, err := tx.ExecContext(ctx, l.insert, campaign, number, user, "0123456789ABCDEF", 1, at.UnixMicro(), at.UnixMicro(), number); err != nil {
		return "", 0, at, err
	}
	if _, err := tx.ExecContext(ctx, l.count, number, number, campaign); err != nil {
		return "", 0, at, err
	}
	return "issued", number, at, tx.Commit()
}

// serveLocking is the reference, as a process.
func serveLocking(ctx context.Context, address, ledger string, connections int) error {
	l, err := newLocking(ledger, connections)
	if err != nil {
		return err
	}
	defer l.db.Close()
	mux := http.NewServeMux()
	mux.HandleFunc("POST /v1/campaigns/{id}/claims", l.serve)
	mux.HandleFunc("GET /readyz", func(http.ResponseWriter, *http.Request) {})
	return serveHTTP(ctx, address, mux)
}
