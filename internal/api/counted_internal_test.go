package api

import (
	"testing"

	"github.com/firstcome/firstcome/internal/gate"
	"github.com/firstcome/firstcome/internal/ledger"
	"github.com/firstcome/firstcome/test/stage"
)

// TestTheLastNumberOfAClosedCampaignIsOneThatWasGiven has a ledger that is drained through number 90, with 7 as the last number that was given. The gate was
// rebuilt, so its last number is 90, or has given number 91 since.
func TestTheLastNumberOfAClosedCampaignIsOneThatWasGiven(t *testing.T) {
	for _, c := range []struct {
		closed       bool
		gate, expect int64
	}{{true, 90, 7}, {true, 91, 91}, {false, 90, 90}} {
		var s ledger.Status
		s.Closed, s.LastNumber, s.DrainedThrough = c.closed, 7, 90
		got, err := withGate(s, gate.State{LastNumber: c.gate}, nil)
		stage.Must(t, err)
		stage.Same(t, "the last number", c.expect, got.LastNumber)
	}
}
