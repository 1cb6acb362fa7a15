//go:build soak

package sim

import "github.com/firstcome/firstcome/test/stage"

// schedules is how many are lived through: a million in a whole soak.
func schedules() uint64 { return uint64(stage.Rounds(2000, 1_000_000)) }

// livedTwice is how many are lived through twice.
const livedTwice = 1000

// putBack is how many are lived through in which the ledger is put back.
func putBack() uint64 { return uint64(stage.Rounds(2000, 200_000)) }

// logged is how many are lived through whose line is logged.
func logged() uint64 { return uint64(stage.Rounds(2000, 500_000)) }
