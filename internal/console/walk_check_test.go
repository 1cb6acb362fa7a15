//go:build check && (!race || soak)

package console_test

import "testing"

// realGates and realTopics are none where no server is started.
var realGates, realTopics map[string]func(t *testing.T, change func(*house)) *house
