//go:build soak

package main

import (
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/firstcome/firstcome/test/services"
)

// inTime expects that something took no longer.
func inTime(t *testing.T, what string, took, most time.Duration) {
	t.Helper()
	if took > most {
		t.Errorf("%s took %v, want %v at most", what, took, most)
	}
}

// kinds returns all kinds of ledgers.
func kinds(*testing.T) []string { return slices.Sorted(maps.Keys(services.Ledgers)) }
