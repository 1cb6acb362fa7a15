//go:build !check

package services_test

import (
	"testing"

	"github.com/firstcome/firstcome/test/services"
)

func TestAUserServesWithRightsOnRowsAndMakesNoTable(t *testing.T) {
	for _, kind := range []services.Kind{services.MariaDB, services.PostgreSQL} {
		t.Run(string(kind), func(t *testing.T) {
			at := kind.Database(t)
			must(t, services.Execute(t.Context(), at, "CREATE TABLE there (text VARCHAR(20))"))
			user := services.User(t, at)
			must(t, services.Execute(t.Context(), at, "CREATE TABLE later (text VARCHAR(20))"))
			for _, table := range []string{"there", "later"} {
				must(t, services.Execute(t.Context(), user, "INSERT INTO "+table+" VALUES ('a')"))
				must(t, services.Execute(t.Context(), user, "UPDATE "+table+" SET text = 'b' WHERE text = 'a'"))
				must(t, services.Execute(t.Context(), user, "DELETE FROM "+table))
			}
			for _, statement := range []string{"CREATE TABLE other (text VARCHAR(20))", "DROP TABLE there", "TRUNCATE TABLE there"} {
				if services.Execute(t.Context(), user, statement) == nil {
					t.Errorf("the user may %s", statement)
				}
			}
			reader := services.User(t, at, "SELECT")
			must(t, services.Execute(t.Context(), reader, "SELECT * FROM there"))
			if services.Execute(t.Context(), reader, "INSERT INTO there VALUES ('a')") == nil {
				t.Error("a reader may write")
			}
		})
	}
}

func TestAUserOfRedisMayDoWhatTheRulesSay(t *testing.T) {
	at := services.Redis.Database(t)
	user := services.User(t, at, "~ours:*", "+@all", "-config")
	must(t, services.Execute(t.Context(), user, "SET ours:a 1"))
	for _, command := range []string{"SET theirs:a 1", "CONFIG GET maxmemory-policy"} {
		if services.Execute(t.Context(), user, command) == nil {
			t.Errorf("the user may %s", command)
		}
	}
}
