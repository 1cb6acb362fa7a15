//go:build linux && !race && !check

package e2e_test

import "time"

// underRace tells whether these tests run under the race detector.
const underRace = false

// patience bounds every wait of these tests, on slow machines.
const patience = time.Minute
