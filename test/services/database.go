package services

import (
	"context"
	"crypto/rand"
	"database/sql"
	"encoding/hex"
	"fmt"
	"net/url"
	"strings"
	"testing"

	"github.com/go-sql-driver/mysql"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"
)

// Open returns a pool of connections to a MariaDB or PostgreSQL, by a URL as Database returns it, or to a file of SQLite, if
// the program has its driver. It dials nothing before the first use. The caller closes the pool.
func Open(at string) (*sql.DB, error) {
	u, err := url.Parse(at)
	if err != nil {
		return nil, err
	}
	switch u.Scheme {
	case "mysql":
		config, err := mysqlConfig(u)
		if err != nil {
			return nil, err
		}
		connector, err := mysql.NewConnector(config)
		if err != nil {
			return nil, err
		}
		return sql.OpenDB(connector), nil
	case "postgres":
		config, err := pgx.ParseConfig(at)
		if err != nil {
			return nil, err
		}
		return stdlib.OpenDB(*config), nil
	case "":
		return sql.Open("sqlite", "file:"+at+"?_pragma=busy_timeout(5000)&_txlock=immediate")
	}
	return nil, fmt.Errorf("%s is no SQL database", u.Redacted())
}

// Beside returns a pool of connections to the database of what is tested, until the test ends.
func Beside(t testing.TB, at string) *sql.DB {
	t.Helper()
	db, err := Open(at)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	return db
}

// Database makes a new, empty database on the server and returns its URL, for a user with all rights.
func (s *Server) Database(ctx context.Context) (string, error) {
	return newDatabase(ctx, s.URL())
}

// newDatabase makes a database on the server of a URL and returns its URL.
func newDatabase(ctx context.Context, at string) (string, error) {
	u, err := url.Parse(at)
	if err != nil {
		return "", err
	}
	name := "firstcome" + random()
	switch u.Scheme {
	case "redis", "rediss":
		return newRedisDatabase(ctx, at)
	case "kafka":
		return MakeTopic(ctx, at, name, 3, nil)
	}
	if err := Execute(ctx, at, "CREATE DATABASE "+name); err != nil {
		return "", err
	}
	u.Path = "/" + name
	return u.String(), nil
}

// Unique returns a name that no other test has, for a database or topic at a server that tests share.
func Unique(name string) string { return name + "-" + random() }

// random returns 16 random characters, for a unique name.
func random() string {
	b := make([]byte, 8)
	_, _ = rand.Read(b) // it never fails
	return hex.EncodeToString(b)
}

// Execute runs statements on the database of a URL. On Redis a statement is a command whose words contain no
// blanks.
func Execute(ctx context.Context, at string, statements ...string) error {
	if strings.HasPrefix(at, "redis") {
		var commands [][]string
		for _, statement := range statements {
			commands = append(commands, strings.Fields(statement))
		}
		_, err := askRedis(ctx, at, commands...)
		return err
	}
	db, err := Open(at)
	if err != nil {
		return err
	}
	defer db.Close()
	for _, statement := range statements {
		if _, err := db.ExecContext(ctx, statement); err != nil {
			return fmt.Errorf("%s: %w", statement, err)
		}
	}
	return nil
}

// databaseAt makes a database for t on a server that the tests did not start. It drops the database when the
// test ends, because that server lives on.
func (k Kind) databaseAt(t testing.TB, at string) string {
	t.Helper()
	made, err := newDatabase(t.Context(), at)
	if err != nil {
		t.Fatalf("a database on the server of %s: %v", k.variable(), err)
	}
	if k == Redis {
		return made
	}
	if k == Kafka {
		t.Cleanup(func() { dropTopic(t, made) })
		return made
	}
	t.Cleanup(func() {
		if err := drop(at, made, k == PostgreSQL); err != nil {
			t.Errorf("drop the test's database: %v", err)
		}
	})
	return made
}

// drop drops the database with the URL made, by a connection to the server with the URL at. If forced is set,
// it first disconnects everybody who still uses the database.
func drop(at, made string, forced bool) error {
	u, err := url.Parse(made)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	statement := "DROP DATABASE " + u.Path[1:]
	if forced {
		statement += " WITH (FORCE)"
	}
	return Execute(ctx, at, statement)
}
