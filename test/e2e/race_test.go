//go:build linux && race && !check

package e2e_test

import "time"

// underRace tells whether these tests run under the race detector.
const underRace = true

// patience bounds every wait of these tests, on slow machines and under the detector.
const patience = 5 * time.Minute
