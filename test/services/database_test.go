//go:build !check

package services_test

import (
	"net/url"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/firstcome/firstcome/test/services"
)

func TestEachDatabaseIsNewAndEmpty(t *testing.T) {
	each(t, func(t *testing.T, kind services.Kind) {
		one, other := kind.Database(t), kind.Database(t)
		must(t, put(t.Context(), one, "mine"))
		if text, err := get(t.Context(), other); err == nil {
			t.Errorf("the other database has %q", text)
		}
		must(t, put(t.Context(), other, "yours"))
		if text, err := get(t.Context(), one); err != nil || text != "mine" {
			t.Errorf("it has %q, %v", text, err)
		}
	})
}

func TestADatabaseOfAServerThatTheEnvironmentNamesEndsWithTheTest(t *testing.T) {
	each(t, func(t *testing.T, kind services.Kind) {
		server := kind.Server(t)
		t.Setenv(variables[kind], server.URL())
		var at string
		t.Run("test", func(t *testing.T) {
			at = kind.Database(t)
			if text, err := get(t.Context(), at); err == nil {
				t.Errorf("a new database has %q", text)
			}
			must(t, put(t.Context(), at, "mine"))
		})
		if kind == services.Redis {
			return // a numbered database is emptied when its turn comes again
		}
		if text, err := get(t.Context(), at); err == nil {
			t.Errorf("after the test the database has %q", text)
		}
	})
}

func TestTheComposeFileNamesTheServersToTheTests(t *testing.T) {
	text, err := os.ReadFile("../../compose.yaml")
	must(t, err)
	for kind, variable := range variables {
		found := regexp.MustCompile(`(?m)^#   export ` + variable + `='?([^'\n]+)'?$`).FindSubmatch(text)
		if found == nil {
			t.Errorf("it has no %s", variable)
			continue
		}
		u, err := url.Parse(string(found[1]))
		must(t, err)
		if published := `["` + u.Host + ":"; !strings.Contains(string(text), published) {
			t.Errorf("it has no %s at %s", kind, u.Host)
		}
	}
}

var variables = map[services.Kind]string{
	services.Redis:      "FIRSTCOME_TEST_REDIS_URL",
	services.MariaDB:    "FIRSTCOME_TEST_MARIADB_URL",
	services.PostgreSQL: "FIRSTCOME_TEST_POSTGRES_URL",
}
