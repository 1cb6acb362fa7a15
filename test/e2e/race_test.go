//go:build linux && race

package e2e_test

// underRace tells whether these tests run under the race detector.
const underRace = true
