//go:build !check

package services_test

import (
	"context"
	"errors"
	"net"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"github.com/firstcome/firstcome/test/services"
)

// kinds are all kinds of servers.
var kinds = []services.Kind{services.Redis, services.MariaDB, services.PostgreSQL}

// each runs a test for every kind of server.
func each(t *testing.T, test func(*testing.T, services.Kind)) {
	for _, kind := range kinds {
		t.Run(string(kind), func(t *testing.T) { test(t, kind) })
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

// put stores a text in a database; get reads it.
func put(ctx context.Context, at, text string) error {
	if strings.HasPrefix(at, "redis") {
		return services.Execute(ctx, at, "SET kept "+text)
	}
	return services.Execute(ctx, at, "CREATE TABLE IF NOT EXISTS kept (text VARCHAR(20))", "INSERT INTO kept VALUES ('"+text+"')")
}

func get(ctx context.Context, at string) (text string, err error) {
	if strings.HasPrefix(at, "redis") {
		return redisDo(ctx, at, "GET", "kept")
	}
	db, err := services.Open(at)
	if err != nil {
		return "", err
	}
	defer db.Close()
	return text, db.QueryRowContext(ctx, "SELECT text FROM kept").Scan(&text)
}

func TestAServerThatEndedComesBackWithItsDataAndItsAddress(t *testing.T) {
	each(t, func(t *testing.T, kind services.Kind) {
		// By default Redis answers during a sync, and writes the data only after the sync.
		server := kind.Server(t, map[services.Kind][]string{services.Redis: {"--appendfsync", "always"}}[kind]...)
		at, err := server.Database(t.Context())
		must(t, err)
		must(t, put(t.Context(), at, "before"))
		for how, end := range map[string]func() error{"kill": server.Kill, "stop": server.Stop} {
			must(t, end())
			if err := end(); err == nil {
				t.Errorf("it did %s twice", how)
			}
			if _, err := get(t.Context(), at); err == nil {
				t.Fatalf("after %s it answers", how)
			}
			must(t, server.Restart(t.Context()))
			if text, err := get(t.Context(), at); err != nil || text != "before" {
				t.Fatalf("after %s and a restart it has %q, %v", how, text, err)
			}
		}
	})
}

func TestAFrozenServerAnswersNobodyUntilItContinues(t *testing.T) {
	each(t, func(t *testing.T, kind services.Kind) {
		server := kind.Server(t)
		at, err := server.Database(t.Context())
		must(t, err)
		must(t, put(t.Context(), at, "before"))
		must(t, server.Freeze())
		short, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		defer cancel()
		if err := server.Wait(short); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("while it is frozen: %v", err)
		}
		must(t, server.Continue())
		must(t, server.Wait(t.Context()))
		if text, err := get(t.Context(), at); err != nil || text != "before" {
			t.Errorf("it has %q, %v", text, err)
		}
	})
}

func TestArgumentsWinOverTheServersOwn(t *testing.T) {
	server := services.Redis.Server(t, "--maxmemory-policy", "allkeys-lru")
	info, err := redisDo(t.Context(), server.URL(), "INFO", "memory")
	must(t, err)
	if !strings.Contains(info, "maxmemory_policy:allkeys-lru") {
		t.Errorf("the server says\n%s", info)
	}
}

// directoryForAll makes a directory that every account may use. The parent of t.TempDir is closed to other
// accounts.
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
