package campaign

import "time"

// DecidesAt returns the gate's time for a campaign, in whole microseconds. This is the clock's time, or the campaign's latest decision
// time if that is later.
func (r *Store) DecidesAt(s Row) time.Time { return s.At(r.ClockOf(s)) }

// At returns the gate's time for a campaign when the clock shows the given time.
func (s *Row) At(clock time.Time) time.Time {
	if clock.After(s.DecidedAt) {
		return clock
	}
	return s.DecidedAt
}

// ClockOf returns the server's time that was read with a campaign's row. On SQLite none is read with the row, so it returns the process's time.
func (r *Store) ClockOf(s Row) time.Time {
	if s.Clock.IsZero() {
		return r.DB.Clock().UTC().Truncate(time.Microsecond)
	}
	return s.Clock
}
