//go:build soak

package main

import (
	"maps"
	"slices"
	"testing"

	"github.com/firstcome/firstcome/test/services"
)

// kinds returns all kinds of ledgers.
func kinds(*testing.T) []string { return slices.Sorted(maps.Keys(services.Ledgers)) }

// isTurn reports true: each case runs on all kinds of ledgers.
func isTurn(int, string) bool { return true }
