package gate_test

import (
	"testing"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/gate"
	"github.com/firstcome/firstcome/test/stage"
)

// TestAWitnessIsOlderIfAnythingOfItIs compares two witnesses, and adds each to the other.
func TestAWitnessIsOlderIfAnythingOfItIs(t *testing.T) {
	witness := func(epoch, version, number, generation, ticket int64) gate.Witness {
		return gate.Witness{Epoch: epoch, Version: version, Number: number, Ticket: firstcome.Ticket{Generation: generation, Number: ticket}}
	}
	now := witness(2, 5, 10, 3, 7)
	for name, c := range map[string]struct {
		least gate.Witness
		older bool
		both  gate.Witness
	}{
		"nothing":                      {gate.Witness{}, false, now},
		"the same":                     {now, false, now},
		"less":                         {witness(2, 4, 9, 3, 6), false, now},
		"a version":                    {witness(2, 6, 0, 0, 0), true, witness(2, 6, 10, 3, 7)},
		"a number":                     {witness(2, 1, 11, 3, 7), true, witness(2, 5, 11, 3, 7)},
		"a ticket":                     {witness(2, 5, 10, 3, 8), true, witness(2, 5, 10, 3, 8)},
		"a generation":                 {witness(2, 5, 10, 4, 1), true, witness(2, 5, 10, 4, 1)},
		"a ticket of a generation ago": {witness(2, 5, 10, 2, 9), false, now},
		"an epoch":                     {witness(3, 1, 1, 1, 1), true, witness(3, 1, 1, 1, 1)},
		"more of an epoch ago":         {witness(1, 9, 99, 9, 9), false, now},
	} {
		t.Run(name, func(t *testing.T) {
			stage.Same(t, "whether the gate has forgotten", c.older, now.Older(c.least))
			one, other := now, c.least
			one.Add(c.least)
			other.Add(now)
			stage.Same(t, "both, in both orders", [2]gate.Witness{c.both, c.both}, [2]gate.Witness{one, other})
		})
	}
}
