package services

import (
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

// PgBouncer starts a pooler in front of a database of PostgreSQL, and returns the database's URL through it. mode is what
// the pooler pools: session or transaction. The pooler ends with the test.
func PgBouncer(t testing.TB, database, mode string) string {
	t.Helper()
	const kind Kind = "PgBouncer"
	kind.mayStart(t)
	to, err := url.Parse(database)
	if err != nil {
		t.Fatal(err)
	}
	command, err := binary(nil, "pgbouncer")
	kind.must(t, err)
	through := func(address string) string {
		u := *to
		u.Host = address
		return u.String()
	}
	r := recipe{
		account: "postgres", // it refuses to run as root
		command: func(data, port string) []string {
			file := filepath.Join(data, "..", "pgbouncer.ini")
			settings := fmt.Sprintf("[databases]\n* = host=%s port=%s user=%s\n[pgbouncer]\nlisten_addr=127.0.0.1\nlisten_port=%s\nunix_socket_dir=\nauth_type=any\npool_mode=%s\n",
				to.Hostname(), to.Port(), to.User.Username(), port, mode)
			if err := os.WriteFile(file, []byte(settings), 0o644); err != nil {
				t.Fatal(err)
			}
			return []string{command, file}
		},
		stop: syscall.SIGTERM, end: "KILL", url: through, ping: pingSQL,
	}
	if os.Getuid() != 0 {
		r.account = ""
	}
	s, err := kind.start(t.Context(), r)
	kind.ends(t, s, err)
	return s.URL()
}
