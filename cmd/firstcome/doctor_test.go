//go:build !check && (!race || soak)

package main

import (
	"bytes"
	"fmt"
	"net/url"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/ledger"
	"github.com/firstcome/firstcome/test/services"
	"github.com/firstcome/firstcome/test/stage"
)

// runDoctor runs firstcome doctor on a ledger and a gate, and returns its exit status and output.
func runDoctor(t *testing.T, name, gate string) (status int, out string) {
	t.Helper()
	var both bytes.Buffer
	status = run(t.Context(), []string{"doctor"}, terminal{out: &both, err: &both, env: []string{
		"FIRSTCOME_LEDGER=" + name, "FIRSTCOME_GATE=" + gate, "FIRSTCOME_SECRET=" + strings.Repeat("5", 64),
		"FIRSTCOME_MAX_CONNECTIONS=100",
	}})
	return status, both.String()
}

func TestDoctorLooksAtTheDatabaseAndAtRedis(t *testing.T) {
	t.Parallel()
	for _, kind := range []services.Kind{services.MariaDB, services.PostgreSQL} {
		t.Run(string(kind), func(t *testing.T) {
			t.Parallel()
			server, gate := kind.Server(t), services.Redis.Server(t, "--maxmemory", "256mb")
			name, err := server.Database(t.Context())
			stage.Must(t, err)
			status, out := runDoctor(t, name, gate.URL())
			if status != exitOK || !regexp.MustCompile(`WARN +tables .*\n.*fix: nothing: .*serve.* or firstcome migrate`).MatchString(out) {
				t.Errorf("without tables it ends with %d:\n%s", status, out)
			}
			var errs bytes.Buffer
			if status := run(t.Context(), []string{"migrate", "--ledger", name}, terminal{out: &errs, err: &errs}); status != exitOK {
				t.Fatalf("migrate ends with %d: %s", status, &errs)
			}
			status, out = runDoctor(t, services.User(t, name), services.User(t, gate.URL(), "~*", "&*", "+@all"))
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

func TestDoctorHoldsTheClockAgainstEveryCampaign(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "firstcome.db")
	secret, err := firstcome.NewSecret(bytes.Repeat([]byte{5}, firstcome.MinSecret))
	stage.Must(t, err)
	behind := func(ahead time.Duration, ids ...string) {
		t.Helper()
		l, err := ledger.Open(t.Context(), path, ledger.Options{Owner: "a test", Secret: secret, Clock: func() time.Time { return time.Now().Add(ahead) }})
		stage.Must(t, err)
		defer stage.Serve(t, l)()
		for _, id := range ids {
			stage.Must(t, l.Campaigns.Create(t.Context(), "test", firstcome.CampaignID(id), firstcome.Terms{Name: "n", Answer: firstcome.Recorded, Benefit: []byte(`{}`)}))
		}
	}
	many := make([]string, 1000)
	for n := range many {
		many[n] = fmt.Sprintf("a-%d", n)
	}
	behind(0, many...)
	if _, out := runDoctor(t, "sqlite:"+path, "ledger"); !regexp.MustCompile(`OK +clock`).MatchString(out) {
		t.Errorf("a clock that is right is not:\n%s", out)
	}
	behind(time.Hour, "z")
	if _, out := runDoctor(t, "sqlite:"+path, "ledger"); !regexp.MustCompile(`WARN +clock +it is (1h0m0s|5\dm\d+s) behind`).MatchString(out) {
		t.Errorf("a clock that is behind is not noticed:\n%s", out)
	}
}
