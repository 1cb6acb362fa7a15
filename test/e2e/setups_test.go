//go:build linux && !check

package e2e_test

import "testing"

// The set-ups by name. A test runs on those where its mechanism differs, and setups_soak_test.go runs it on all.
var mariaDB, postgreSQL, redisOfMariaDB, redisOfPostgreSQL = setups[0], setups[1], setups[2], setups[3]

// patient are arguments of a server whose every claim must have an outcome, however busy the machine is.
var patient = []string{"--answer-wait", "60s"}

// on runs a story on some set-ups, all at once.
func on(t *testing.T, story func(*testing.T, setup), some ...setup) {
	t.Helper()
	for _, s := range some {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			story(t, s)
		})
	}
}
