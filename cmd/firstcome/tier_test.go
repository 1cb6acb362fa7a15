//go:build !soak

package main

import (
	"hash/fnv"
	"maps"
	"slices"
	"testing"

	"github.com/firstcome/firstcome/test/services"
)

// kinds returns the kinds of ledgers that a test runs on: one kind, chosen by the test's name, so that the tests are spread over all kinds. Soak runs each
// test on all kinds.
func kinds(t *testing.T) []string {
	all := slices.Sorted(maps.Keys(services.Ledgers))
	sum := fnv.New32a()
	_, _ = sum.Write([]byte(t.Name())) // never fails
	return all[sum.Sum32()%uint32(len(all)):][:1]
}

// isTurn reports whether the n-th of many similar cases runs on a kind of ledgers. They take turns. Soak runs each case on all kinds.
func isTurn(n int, kind string) bool {
	all := slices.Sorted(maps.Keys(services.Ledgers))
	return all[n%len(all)] == kind
}
