package ledger

import "cmp"

const (
	// defaultBacklog is that of the gate.
	defaultBacklog = 1_000_000
	// anyBacklog stands for no limit: more than a gate gives before somebody looks.
	anyBacklog = 1 << 40
)

// grant returns the highest number that the gate may give of a campaign in the state s: as many beyond the highest in the ledger as
// may be in force besides, and no more than the backlog. It never falls. A coupon that is voided makes room for one more, so each change
// grants anew. So what a gate may have given is known, whatever became of the gate.
func (l *Ledger) grant(s *stock) int64 {
	if !l.remote() {
		return 0
	}
	return max(s.ceiling, max(s.lastNumber, s.drained)+min(l.backlog, s.Quantity-s.inForce))
}

// backlogOf returns the numbers that a gate may give beyond the ledger's highest, given the option.
func backlogOf(option int64) int64 {
	if option < 0 {
		return anyBacklog
	}
	return cmp.Or(min(option, anyBacklog), defaultBacklog)
}

// lose writes the numbers up to one that are neither coupons nor dead letters, as lost before the next epoch, and counts them.
func (t *tx) lose(s stock, through int64) (lost int64, err error) {
	args := []any{string(s.ID), s.drained, through}
	rows, err := t.query(`SELECT number FROM coupons WHERE campaign_id = ? AND number > ? AND number <= ?
		UNION SELECT number FROM dead_letters WHERE campaign_id = ? AND number > ? AND number <= ? ORDER BY number`, append(args, args...)...)
	var gaps [][2]int64 // the first number and how many
	last := s.drained
	gap := func(before int64) {
		if n := before - last - 1; n > 0 {
			gaps = append(gaps, [2]int64{last + 1, n})
			lost += n
		}
		last = before
	}
	err = eachRow(rows, err, func(take scan) error {
		number, err := one[int64](take)
		if err == nil {
			gap(number)
		}
		return err
	})
	if err != nil {
		return 0, err
	}
	gap(through + 1)
	for _, g := range gaps {
		if _, err := t.change(`INSERT INTO lost (campaign_id, number, count, epoch) VALUES (?, ?, ?, ?)`, string(s.ID), g[0], g[1], s.epoch+1); err != nil {
			return 0, err
		}
	}
	return lost, nil
}

// leaveLost removes the coupons of an earlier epoch from fresh whose numbers a rebuild said to be lost, and counts them: their gate was
// cut off or frozen when it was rebuilt elsewhere. The ledger never takes them, and they are no dead letters, because their stock is
// not taken.
func (r *recording) leaveLost() error {
	if len(r.fresh) == 0 || r.epochGiven >= r.epoch {
		return nil
	}
	rows, err := r.query(`SELECT number, number + count - 1 FROM lost WHERE campaign_id = ? AND epoch > ? AND number <= ? ORDER BY number`,
		string(r.ID), r.epochGiven, r.fresh[len(r.fresh)-1].Number)
	kept := r.fresh[:0]
	n := 0
	err = eachRow(rows, err, func(take scan) error {
		var first, last int64
		if err := take(&first, &last); err != nil {
			return err
		}
		for ; n < len(r.fresh) && r.fresh[n].Number <= last; n++ {
			if r.fresh[n].Number < first {
				kept = append(kept, r.fresh[n])
				continue
			}
			r.Lost++
		}
		return nil
	})
	r.fresh = append(kept, r.fresh[n:]...)
	return err
}
