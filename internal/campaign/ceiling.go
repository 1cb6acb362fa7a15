package campaign

import "cmp"

const (
	// defaultBacklog is the backlog if the option is 0. It must equal the gate's default.
	defaultBacklog = 1_000_000
	// anyBacklog stands for no limit. No gate assigns so many numbers.
	anyBacklog = 1 << 40
)

// Grant returns the highest number that the gate may assign to a coupon of a campaign in the state s. Above the
// ledger's highest number, it allows as many numbers as there is stock left, and at most the backlog. The
// ceiling never falls. A voided coupon returns stock, so each change grants again. The ceiling bounds the
// numbers that a gate may have assigned, even if the gate is lost.
func (r *Store) Grant(s *Row) int64 {
	if !r.Remote() {
		return 0
	}
	return max(s.Ceiling, max(s.LastNumber, s.DrainedThrough)+min(r.backlog, s.Quantity-s.InForce))
}

// backlogOf returns how many numbers above the ledger's highest a gate may assign. option is negative for no
// limit, and 0 for the default.
func backlogOf(option int64) int64 {
	if option < 0 {
		return anyBacklog
	}
	return cmp.Or(min(option, anyBacklog), defaultBacklog)
}
