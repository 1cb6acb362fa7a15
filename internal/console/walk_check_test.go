//go:build check && (!race || soak)

package console_test

import "testing"

// realGates are none where no server is started.
var realGates map[string]func(t *testing.T, change func(*house)) *house
