//go:build !check

package redis_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/firstcome/firstcome/test/services"
	"github.com/firstcome/firstcome/test/stage"
)

// TestF02AGateThatDidNotHearSentinelFindsThePrimaryAllTheSame makes Sentinel name another primary without a message to its clients. The old primary
// goes on, so no connection ends.
func TestF02AGateThatDidNotHearSentinelFindsThePrimaryAllTheSame(t *testing.T) {
	pair, at := services.SentinelPair(t)
	g := open(t, at)
	run := func() string {
		runs, err := g.Runs(t.Context())
		if err != nil || len(runs) != 1 {
			return "" // the primary is about to change
		}
		return runs[0].ID
	}
	before := run()
	stage.Must(t, pair.Promote(t.Context()))
	stage.Must(t, pair.Rename(t.Context()))
	stage.Await(t, "another server", true, func() bool { now := run(); return now != "" && now != before })
}

// TestF64ASentinelThatWantsALogInGetsIt names the log-in of a Sentinel in the URL and in a file, and gets it wrong.
func TestF64ASentinelThatWantsALogInGetsIt(t *testing.T) {
	pair, at := services.SentinelPair(t)
	user, password, err := pair.Lock(t.Context())
	stage.Must(t, err)
	file := filepath.Join(t.TempDir(), "password")
	stage.Must(t, os.WriteFile(file, []byte(password+"\n"), 0o600))
	for name, options := range map[string][]string{
		"in the URL": {"sentinel_user", user, "sentinel_password", password},
		"in a file":  {"sentinel_user", user, "sentinel_passwordfile", file},
	} {
		t.Run(name, func(t *testing.T) {
			if runs, err := open(t, with(t, at, options...)).Runs(t.Context()); err != nil || len(runs) != 1 {
				t.Errorf("%d servers, %v", len(runs), err)
			}
		})
	}
	for name, test := range map[string]struct {
		at, advice string
	}{
		"no log-in":          {at, "sentinel_password"},
		"a wrong password":   {with(t, at, "sentinel_user", user, "sentinel_password", "barley"), "sentinel_password"},
		"a user alone":       {with(t, at, "sentinel_user", user), "no password"},
		"no such file":       {with(t, at, "sentinel_passwordfile", file+"x"), "sentinel_passwordfile"},
		"twice":              {with(t, at, "sentinel_password", password, "sentinel_passwordfile", file), "name it once"},
		"without a Sentinel": {with(t, pair.Primary.URL(), "sentinel_password", password), "master_set"},
	} {
		t.Run(name, func(t *testing.T) { refused(t, test.at, test.advice) })
	}
}
