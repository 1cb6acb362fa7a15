//go:build linux && !race && !check

package e2e_test

// underRace tells whether these tests run under the race detector.
const underRace = false
