//go:build check

package services

import "testing"

// ledgers are the databases that Ledgers names: make check starts no server.
var ledgers = map[string]func(testing.TB) string{SQLite: sqlite}

// mayStart fails the test: its file belongs to make test.
func (k Kind) mayStart(t testing.TB) {
	t.Helper()
	t.Fatalf("%s: make check starts no server. Add //go:build !check to the file of this test", k)
}
