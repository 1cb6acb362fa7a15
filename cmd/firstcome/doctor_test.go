package main

import (
	"bytes"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"github.com/firstcome/firstcome/test/services"
)

// runDoctor runs firstcome doctor on a ledger and a gate and returns its exit status and what it prints.
func runDoctor(t *testing.T, ledger, gate string) (status int, out string) {
	t.Helper()
	var both bytes.Buffer
	status = run(t.Context(), []string{"doctor"}, terminal{out: &both, err: &both, env: []string{
		"FIRSTCOME_LEDGER=" + ledger, "FIRSTCOME_GATE=" + gate, "FIRSTCOME_SECRET=" + strings.Repeat("5", 64),
		"FIRSTCOME_MAX_CONNECTIONS=100",
	}})
	return status, both.String()
}

func TestDoctorLooksAtTheDatabaseAndAtRedis(t *testing.T) {
	for _, kind := range []services.Kind{services.MariaDB, services.PostgreSQL} {
		t.Run(string(kind), func(t *testing.T) {
			server, gate := kind.Server(t), services.Redis.Server(t, "--maxmemory", "256mb")
			ledger, err := server.Database(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			status, out := runDoctor(t, ledger, gate.URL())
			if status != exitFailed || !regexp.MustCompile(`FAIL +tables .*\n.*fix: firstcome migrate`).MatchString(out) {
				t.Errorf("without tables it ends with %d:\n%s", status, out)
			}
			var errs bytes.Buffer
			if status := run(t.Context(), []string{"migrate", "--ledger", ledger}, terminal{out: &errs, err: &errs}); status != exitOK {
				t.Fatalf("migrate ends with %d: %s", status, &errs)
			}
			status, out = runDoctor(t, services.User(t, ledger), services.User(t, gate.URL(), "~*", "&*", "+@all"))
			if status != exitOK || strings.Contains(out, "FAIL") {
				t.Errorf("with tables it ends with %d:\n%s", status, out)
			}
			for _, want := range []string{"tables", "ids", "rights", "the ledger's clock", "eviction", "appendfsync", "the gate's rights"} {
				if !regexp.MustCompile(`OK +` + want).MatchString(out) {
					t.Errorf("it does not find %s in order:\n%s", want, out)
				}
			}
			if strings.Contains(out, services.Password) {
				t.Errorf("it shows a password:\n%s", out)
			}
		})
	}
}

func TestDoctorFindsServersThatAreAway(t *testing.T) {
	u := url.URL{Scheme: "mysql", User: url.UserPassword("root", "hunter2"), Host: "127.0.0.1:1", Path: "/firstcome"}
	status, out := runDoctor(t, u.String(), "redis://default:hunter2@127.0.0.1:1/0")
	if status != exitFailed || !regexp.MustCompile(`FAIL +ledger`).MatchString(out) || !regexp.MustCompile(`FAIL +gate`).MatchString(out) {
		t.Errorf("it ends with %d:\n%s", status, out)
	}
	if strings.Contains(out, "hunter2") {
		t.Errorf("it shows a password:\n%s", out)
	}
}
