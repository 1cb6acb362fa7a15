//go:build soak

package main

import (
	"testing"
	"time"
)

// inTime expects that something took no longer.
func inTime(t *testing.T, what string, took, most time.Duration) {
	t.Helper()
	if took > most {
		t.Errorf("%s took %v, want %v at most", what, took, most)
	}
}
