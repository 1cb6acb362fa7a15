package services

import (
	"context"
	"fmt"
	"net/url"
	"strings"
	"testing"
	"time"
)

// User makes a user of the database of a URL for the time of t, and returns the URL for
// that user. The user has the rights given and no others: on MariaDB and PostgreSQL,
// privileges on all tables that are there or that the URL's own user makes later; by
// default SELECT, INSERT, UPDATE and DELETE, which is what serving needs. On Redis they
// are rules of its access control, such as ~firstcome:* and +@all; by default there is
// nothing that the user may do.
func User(t testing.TB, at string, rights ...string) string {
	t.Helper()
	u, err := url.Parse(at)
	if err != nil {
		t.Fatal(err)
	}
	name := "user_" + random()
	a := accountOf(u, name, rights)
	if err := a.make(t.Context(), at); err != nil {
		t.Fatalf("make a user: %v", err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		if err := a.unmake(ctx, at); err != nil {
			t.Errorf("drop a user: %v", err)
		}
	})
	u.User = url.UserPassword(name, Password)
	return u.String()
}

// Password is that of every user whom User makes: the servers are for tests.
const Password = "open-sesame"

// An account makes and unmakes a user, through the URL of a user who may do that.
type account struct {
	make, unmake func(ctx context.Context, at string) error
}

func accountOf(u *url.URL, name string, rights []string) account {
	if u.Scheme == "redis" || u.Scheme == "rediss" {
		return commands(append([]string{"ACL", "SETUSER", name, "reset", "on", ">" + Password}, rights...), []string{"ACL", "DELUSER", name})
	}
	if len(rights) == 0 {
		rights = []string{"SELECT", "INSERT", "UPDATE", "DELETE"}
	}
	privileges, database := strings.Join(rights, ", "), strings.TrimPrefix(u.Path, "/")
	if u.Scheme == "mysql" {
		return statements([]string{
			fmt.Sprintf("CREATE USER %s IDENTIFIED BY '%s'", name, Password),
			fmt.Sprintf("GRANT %s ON %s.* TO %s", privileges, database, name),
		}, []string{"DROP USER " + name})
	}
	return statements([]string{
		fmt.Sprintf("CREATE ROLE %s LOGIN PASSWORD '%s'", name, Password),
		// Before version 15 everybody may make tables here.
		"REVOKE CREATE ON SCHEMA public FROM PUBLIC",
		fmt.Sprintf("GRANT %s ON ALL TABLES IN SCHEMA public TO %s", privileges, name),
		fmt.Sprintf("ALTER DEFAULT PRIVILEGES IN SCHEMA public GRANT %s ON TABLES TO %s", privileges, name),
		fmt.Sprintf("GRANT USAGE ON ALL SEQUENCES IN SCHEMA public TO %s", name),
		fmt.Sprintf("ALTER DEFAULT PRIVILEGES IN SCHEMA public GRANT USAGE ON SEQUENCES TO %s", name),
	}, []string{"DROP OWNED BY " + name, "DROP ROLE " + name})
}

func statements(to, from []string) account {
	return account{
		func(ctx context.Context, at string) error { return execute(ctx, at, to...) },
		func(ctx context.Context, at string) error { return execute(ctx, at, from...) },
	}
}

func commands(to, from []string) account {
	ask := func(command []string) func(context.Context, string) error {
		return func(ctx context.Context, at string) error {
			_, err := askRedis(ctx, at, command)
			return err
		}
	}
	return account{ask(to), ask(from)}
}
