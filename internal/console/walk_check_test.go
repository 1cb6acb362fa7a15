//go:build check && (!race || soak)

package console_test

import "testing"

// realGates is empty in make check, which starts no server.
var realGates map[string]func(t *testing.T, change func(*house)) *house
