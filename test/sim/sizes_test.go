//go:build !soak

package sim

// schedules is how many are lived through: as many as the list of everything that has to happen needs.
func schedules() uint64 { return 2000 }

// livedTwice is how many are lived through twice.
const livedTwice = 100

// putBack is how many are lived through in which the ledger is put back.
func putBack() uint64 { return 400 }

// logged is how many are lived through whose line is logged.
func logged() uint64 { return 400 }
