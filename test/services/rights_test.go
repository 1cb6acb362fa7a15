package services_test

import (
	"testing"

	"github.com/firstcome/firstcome/test/services"
)

func TestAUserServesWithRightsOnRowsAndMakesNoTable(t *testing.T) {
	for _, kind := range []services.Kind{services.MariaDB, services.PostgreSQL} {
		t.Run(string(kind), func(t *testing.T) {
			at := kind.Database(t)
			must(t, execute(t, at, "CREATE TABLE there (text VARCHAR(20))"))
			user := services.User(t, at)
			must(t, execute(t, at, "CREATE TABLE later (text VARCHAR(20))"))
			for _, table := range []string{"there", "later"} {
				must(t, execute(t, user, "INSERT INTO "+table+" VALUES ('a')"))
				must(t, execute(t, user, "UPDATE "+table+" SET text = 'b' WHERE text = 'a'"))
				must(t, execute(t, user, "DELETE FROM "+table))
			}
			for _, statement := range []string{"CREATE TABLE other (text VARCHAR(20))", "DROP TABLE there", "TRUNCATE TABLE there"} {
				if execute(t, user, statement) == nil {
					t.Errorf("the user may %s", statement)
				}
			}
			reader := services.User(t, at, "SELECT")
			must(t, execute(t, reader, "SELECT * FROM there"))
			if execute(t, reader, "INSERT INTO there VALUES ('a')") == nil {
				t.Error("a reader may write")
			}
		})
	}
}

func TestAUserOfRedisMayDoWhatTheRulesSay(t *testing.T) {
	at := services.Redis.Database(t)
	user := services.User(t, at, "~ours:*", "+@all", "-config")
	if _, err := redisDo(t.Context(), user, "SET", "ours:a", "1"); err != nil {
		t.Error(err)
	}
	for _, command := range [][]string{{"SET", "theirs:a", "1"}, {"CONFIG", "GET", "maxmemory-policy"}} {
		if _, err := redisDo(t.Context(), user, command...); err == nil {
			t.Errorf("the user may %v", command)
		}
	}
}

// execute runs a statement on the database of a URL.
func execute(t *testing.T, at, statement string) error {
	db, err := services.Open(at)
	must(t, err)
	defer db.Close()
	_, err = db.ExecContext(t.Context(), statement)
	return err
}
