package ledger

import (
	"database/sql"
	"errors"

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
	if len(r.unrecorded)+len(r.recorded) > 0 {
		after.letters++
		if err := r.orderLetters(after.letters); err != nil {
			return flow.Settled{}, err
		}
	}
	if len(r.fresh) > 0 || after.settled != r.settled || after.letters != r.letters {
		_, err = r.change(`UPDATE campaigns SET in_force = ?, issued = ?, last_number = ?, position = ?, settled = ?, letters_order = ?, decided_at = ? WHERE id = ?`,
			after.inForce, after.issued, after.lastNumber, after.position, after.settled, after.letters, after.decidedAt.UnixMicro(), string(r.ID))
		if err != nil {
			return flow.Settled{}, err
		}
	}
	return flow.Settled{
		Through: after.settled, Epoch: r.epoch, Order: after.letters, Since: r.letters, Unrecorded: r.unrecorded, Recorded: r.recorded, Twice: r.twice,
	}, nil
}

// orderLetters gives the dead letters whose numbers become coupons their order. Those
// that are new have it.
func (r *recording) orderLetters(order int64) error {
	for _, number := range r.recorded {
		_, err := r.change(`UPDATE dead_letters SET letters_order = ? WHERE campaign_id = ? AND number = ?`, order, string(r.ID), number)
		if err != nil {
			return err
		}
	}
	return nil
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
	letters := r.letters > 0 || len(r.unrecorded) > 0
	for {
		before := through
		err := r.throughLost(&through)
		if err == nil && (letters || through < lastNumber) {
			err = r.throughKnown(&through, letters)
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

// throughKnown moves through to the end of the coupons, and dead letters if there are
// any, that begin behind it: those were recorded before the numbers below them.
func (r *recording) throughKnown(through *int64, letters bool) error {
	query := `SELECT number FROM coupons WHERE campaign_id = ? AND number > ? AND number <= ?`
	if letters {
		query += ` UNION SELECT number FROM dead_letters WHERE campaign_id = ? AND number > ? AND number <= ?`
	}
	for {
		args := []any{string(r.ID), *through, *through + throughStep}
		if letters {
			args = append(args, args...)
		}
		rows, err := r.query(query+` ORDER BY number`, args...)
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
