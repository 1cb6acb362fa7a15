package services_test

import (
	"context"
	"net"
	"net/url"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"github.com/firstcome/firstcome/test/services"
)

func TestMain(m *testing.M) { services.Main(m) }

// kinds are all kinds of servers.
var kinds = []services.Kind{services.Redis, services.MariaDB, services.PostgreSQL}

// each runs a test for every kind of server.
func each(t *testing.T, test func(*testing.T, services.Kind)) {
	for _, kind := range kinds {
		t.Run(string(kind), func(t *testing.T) { test(t, kind) })
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// redisDo sends a command to the Redis of a URL and returns the answer as text.
func redisDo(ctx context.Context, at string, command ...string) (string, error) {
	option, err := rueidis.ParseURL(at)
	if err != nil {
		return "", err
	}
	option.DisableCache, option.ForceSingleClient = true, true
	client, err := rueidis.NewClient(option)
	if err != nil {
		return "", err
	}
	defer client.Close()
	return client.Do(ctx, client.B().Arbitrary(command...).Build()).ToString()
}

// put keeps a text in a database, get reads it.
func put(ctx context.Context, at, text string) error {
	if u, err := url.Parse(at); err != nil || u.Scheme == "redis" {
		_, err = redisDo(ctx, at, "SET", "kept", text)
		return err
	}
	db, err := services.Open(at)
	if err != nil {
		return err
	}
	defer db.Close()
	if _, err := db.ExecContext(ctx, "CREATE TABLE IF NOT EXISTS kept (text VARCHAR(20))"); err != nil {
		return err
	}
	_, err = db.ExecContext(ctx, "INSERT INTO kept VALUES ('"+text+"')")
	return err
}

func get(ctx context.Context, at string) (text string, err error) {
	if u, err := url.Parse(at); err != nil || u.Scheme == "redis" {
		return redisDo(ctx, at, "GET", "kept")
	}
	db, err := services.Open(at)
	if err != nil {
		return "", err
	}
	defer db.Close()
	return text, db.QueryRowContext(ctx, "SELECT text FROM kept").Scan(&text)
}

// comesBack restarts a server, and wants that it has what was put there before.
func comesBack(t *testing.T, server *services.Server, at string) {
	t.Helper()
	must(t, server.Restart(t.Context()))
	if text, err := get(t.Context(), at); err != nil || text != "before" {
		t.Fatalf("after the restart it has %q, %v", text, err)
	}
}

func TestAKilledServerComesBackWithItsDataAndItsAddress(t *testing.T) {
	each(t, func(t *testing.T, kind services.Kind) {
		// By default Redis writes what it answers while a sync is under way after that only.
		server := kind.Server(t, map[services.Kind][]string{services.Redis: {"--appendfsync", "always"}}[kind]...)
		at, err := server.Database(t.Context())
		must(t, err)
		must(t, put(t.Context(), at, "before"))
		must(t, server.Kill())
		if _, err := get(t.Context(), at); err == nil {
			t.Fatal("a killed server answers")
		}
		comesBack(t, server, at)
	})
}

func TestAServerThatWasStoppedComesBackWithItsData(t *testing.T) {
	each(t, func(t *testing.T, kind services.Kind) {
		server := kind.Server(t)
		at, err := server.Database(t.Context())
		must(t, err)
		must(t, put(t.Context(), at, "before"))
		must(t, server.Stop())
		if err := server.Stop(); err == nil {
			t.Error("it was stopped twice")
		}
		comesBack(t, server, at)
	})
}

func TestAFrozenServerAnswersNobodyUntilItContinues(t *testing.T) {
	each(t, func(t *testing.T, kind services.Kind) {
		server := kind.Server(t)
		ask, err := connect(t.Context(), t, server.URL())
		must(t, err)
		must(t, ask(t.Context()))
		must(t, server.Freeze())
		short, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		defer cancel()
		if ask(short) == nil {
			t.Error("a connection from before is answered")
		}
		if ask, err := connect(short, t, server.URL()); err == nil && ask(short) == nil {
			t.Error("a new connection is answered")
		}
		must(t, server.Continue())
		must(t, server.Wait(t.Context()))
	})
}

// connect makes a connection and returns what asks something trivial over it.
func connect(ctx context.Context, t *testing.T, at string) (ask func(context.Context) error, err error) {
	u, err := url.Parse(at)
	must(t, err)
	if u.Scheme == "redis" {
		return connectRedis(ctx, t, u.Host)
	}
	db, err := services.Open(at)
	must(t, err)
	t.Cleanup(func() { must(t, db.Close()) })
	c, err := db.Conn(ctx)
	if err != nil {
		return nil, err
	}
	t.Cleanup(func() { _ = c.Close() })
	return func(ctx context.Context) error {
		_, err := c.ExecContext(ctx, "SELECT 1")
		return err
	}, nil
}

func connectRedis(ctx context.Context, t *testing.T, address string) (ask func(context.Context) error, err error) {
	c, err := (&net.Dialer{}).DialContext(ctx, "tcp", address)
	if err != nil {
		return nil, err
	}
	t.Cleanup(func() { _ = c.Close() })
	return func(ctx context.Context) error {
		deadline, _ := ctx.Deadline()
		if err := c.SetDeadline(deadline); err != nil {
			return err
		}
		if _, err := c.Write([]byte("PING\r\n")); err != nil {
			return err
		}
		_, err := c.Read(make([]byte, 100))
		return err
	}, nil
}

func TestArgumentsWinOverTheServersOwn(t *testing.T) {
	server := services.Redis.Server(t, "--maxmemory-policy", "allkeys-lru")
	info, err := redisDo(t.Context(), server.URL(), "INFO", "memory")
	must(t, err)
	if !strings.Contains(info, "maxmemory_policy:allkeys-lru") {
		t.Errorf("the server says\n%s", info)
	}
}

// directoryForAll makes a directory that every account may use; t.TempDir has a
// parent of ours only.
func directoryForAll(t *testing.T) string {
	directory, err := os.MkdirTemp("", "services-")
	must(t, err)
	t.Cleanup(func() { must(t, os.RemoveAll(directory)) })
	must(t, os.Chmod(directory, 0o777))
	return directory
}

func TestAClosedServerIsGone(t *testing.T) {
	each(t, func(t *testing.T, kind services.Kind) {
		temporary := directoryForAll(t)
		t.Setenv("TMPDIR", temporary)
		server := kind.Server(t)
		must(t, server.Close())
		if c, err := net.Dial("tcp", server.Address()); err == nil {
			c.Close()
			t.Error("somebody listens at its address")
		}
		if left, err := os.ReadDir(temporary); err != nil || len(left) > 0 {
			t.Errorf("%v is left, %v", left, err)
		}
	})
}
