package services

import (
	"context"
	"fmt"
	"net/url"
	"strings"
	"testing"
)

// User makes a user of the database of a URL until t ends, and returns the URL for that user. The user has
// the given rights and no others. On MariaDB and PostgreSQL these are privileges on all tables that exist or
// that the URL's own user makes later; by default SELECT, INSERT, UPDATE and DELETE, which is what serving
// needs. On Redis these are rules of its access control, such as ~firstcome:* and +@all; by default the user
// may do nothing.
func User(t testing.TB, at string, rights ...string) string {
	t.Helper()
	u, err := url.Parse(at)
	if err != nil {
		t.Fatal(err)
	}
	name := "user_" + random()
	made, unmade := accountOf(u, name, rights)
	if err := Execute(t.Context(), at, made...); err != nil {
		t.Fatalf("make a user: %v", err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		if err := Execute(ctx, at, unmade...); err != nil {
			t.Errorf("drop a user: %v", err)
		}
	})
	u.User = url.UserPassword(name, Password)
	return u.String()
}

// Password is the password of every user that User makes: the servers are for tests.
const Password = "open-sesame"

// accountOf returns the statements that make and remove a user. Execute runs them as a user with the right to
// do so.
func accountOf(u *url.URL, name string, rights []string) (made, unmade []string) {
	if u.Scheme == "redis" || u.Scheme == "rediss" {
		return []string{"ACL SETUSER " + name + " reset on >" + Password + " " + strings.Join(rights, " ")}, []string{"ACL DELUSER " + name}
	}
	if len(rights) == 0 {
		rights = []string{"SELECT", "INSERT", "UPDATE", "DELETE"}
	}
	privileges, database := strings.Join(rights, ", "), strings.TrimPrefix(u.Path, "/")
	if u.Scheme == "mysql" {
		return []string{
			fmt.Sprintf("CREATE USER %s IDENTIFIED BY '%s'", name, Password),
			fmt.Sprintf("GRANT %s ON %s.* TO %s", privileges, database, name),
		}, []string{"DROP USER " + name}
	}
	return []string{
		fmt.Sprintf("CREATE ROLE %s LOGIN PASSWORD '%s'", name, Password),
		// Before version 15 everybody may make tables here.
		"REVOKE CREATE ON SCHEMA public FROM PUBLIC",
		fmt.Sprintf("GRANT %s ON ALL TABLES IN SCHEMA public TO %s", privileges, name),
		fmt.Sprintf("ALTER DEFAULT PRIVILEGES IN SCHEMA public GRANT %s ON TABLES TO %s", privileges, name),
		fmt.Sprintf("GRANT USAGE ON ALL SEQUENCES IN SCHEMA public TO %s", name),
		fmt.Sprintf("ALTER DEFAULT PRIVILEGES IN SCHEMA public GRANT USAGE ON SEQUENCES TO %s", name),
	}, []string{"DROP OWNED BY " + name, "DROP ROLE " + name}
}
