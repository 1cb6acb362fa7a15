package ledger

import (
	"database/sql"
	"errors"
	"slices"

	"github.com/firstcome/firstcome/internal/flow"
)

// settle finds how far the campaign is settled now and writes its row, if
// anything changed.
func (r *recording) settle() (flow.Settled, error) {
	after := r.stock
	for _, c := range r.fresh {
		after.inForce++
		after.issued++
		after.lastNumber = max(after.lastNumber, c.Number)
		if after.decidedAt.Before(c.IssuedAt) {
			after.decidedAt = c.IssuedAt // what the ledger decides of it comes later
		}
	}
	after.position += int64(len(r.fresh))
	var err error
	if after.settled, err = r.through(after.lastNumber); err != nil {
		return flow.Settled{}, err
	}
	if len(r.fresh) > 0 || after.settled != r.settled {
		_, err = r.change(`UPDATE campaigns SET in_force = ?, issued = ?, last_number = ?, position = ?, settled = ?, decided_at = ? WHERE id = ?`,
			after.inForce, after.issued, after.lastNumber, after.position, after.settled, after.decidedAt.UnixMicro(), string(r.ID))
		if err != nil {
			return flow.Settled{}, err
		}
	}
	return r.unrecorded(after.settled), nil
}

// through returns the number up to which each is a coupon, a dead letter or lost,
// while lastNumber is the highest of the coupons.
func (r *recording) through(lastNumber int64) (int64, error) {
	through := r.settled
	for _, run := range runs(r.given) {
		if run[0].Number <= through+1 {
			through = max(through, run[len(run)-1].Number)
		}
	}
	for {
		before := through
		for r.letters[through+1] != 0 {
			through++
		}
		err := r.throughLost(&through)
		if err == nil && through < lastNumber {
			err = r.throughCoupons(&through)
		}
		if err != nil || through == before {
			return through, err
		}
	}
}

// throughLost moves through to the end of the lost numbers that begin behind it.
func (r *recording) throughLost(through *int64) error {
	if r.epoch == firstEpoch {
		return nil // numbers are lost between epochs only
	}
	var end int64
	err := r.row(`SELECT number + count - 1 FROM lost WHERE campaign_id = ? AND number <= ? ORDER BY number DESC LIMIT 1`,
		string(r.ID), *through+1).Scan(&end)
	if errors.Is(err, sql.ErrNoRows) {
		return nil
	}
	*through = max(*through, end)
	return err
}

// throughStep is how many numbers are read at once: some 10 kB.
const throughStep = 1000

// throughCoupons moves through to the end of the coupons that begin behind it:
// those were recorded before the numbers below them.
func (r *recording) throughCoupons(through *int64) error {
	for {
		rows, err := r.query(`SELECT number FROM coupons WHERE campaign_id = ? AND number > ? AND number <= ? ORDER BY number`,
			string(r.ID), *through, *through+throughStep)
		if err != nil {
			return err
		}
		from := *through
		for rows.Next() {
			var number int64
			if err = rows.Scan(&number); err != nil || number != *through+1 {
				break
			}
			*through = number
		}
		err = errors.Join(err, rows.Err(), rows.Close())
		if err != nil || *through < from+throughStep {
			return err
		}
	}
}

// unrecorded returns what is settled through a number: see Record.
func (r *recording) unrecorded(through int64) flow.Settled {
	s := flow.Settled{Through: through, Epoch: r.epoch}
	for number, fate := range r.letters {
		if number <= through && fate&couponToo == 0 {
			s.Unrecorded = append(s.Unrecorded, number)
		}
	}
	slices.Sort(s.Unrecorded)
	return s
}
