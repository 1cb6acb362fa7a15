//go:build !check

package services

import "testing"

// ledgers are the databases that Ledgers names.
var ledgers = map[string]func(testing.TB) string{
	SQLite:             sqlite,
	string(MariaDB):    MariaDB.Database,
	string(PostgreSQL): PostgreSQL.Database,
}

// mayStart fails a test that must not start a server. Outside make check every test may.
func (k Kind) mayStart(testing.TB) {}
