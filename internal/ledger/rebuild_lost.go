package ledger

import (
	"cmp"
	"slices"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/sqldb"
)

const (
	// defaultBacklog is that of the gate.
	defaultBacklog = 1_000_000
	// anyBacklog stands for no limit: more than a gate gives before somebody looks.
	anyBacklog = 1 << 40
)

// grant returns the highest number that the gate may give of a campaign in the state s: as many beyond the highest in the ledger as
// may be in force besides, and no more than the backlog. It never falls. A coupon that is voided makes room for one more, so each change
// grants anew. So what a gate may have given is known, whatever became of the gate.
func (r *rows) grant(s *stock) int64 {
	if !r.remote() {
		return 0
	}
	return max(s.ceiling, max(s.lastNumber, s.drained)+min(r.backlog, s.Quantity-s.inForce))
}

// backlogOf returns the numbers that a gate may give beyond the ledger's highest, given the option.
func backlogOf(option int64) int64 {
	if option < 0 {
		return anyBacklog
	}
	return cmp.Or(min(option, anyBacklog), defaultBacklog)
}

// loseNumbers writes the numbers up to one that are neither coupons nor dead letters, as lost before the next epoch, and counts them.
func loseNumbers(t *sqldb.Tx, s stock, through, next int64) (lost int64, err error) {
	args := []any{string(s.ID), s.drained, through}
	rows, err := t.Query(`SELECT number FROM coupons WHERE campaign_id = ? AND number > ? AND number <= ?
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
	err = sqldb.EachRow(rows, err, func(take sqldb.Scan) error {
		number, err := sqldb.One[int64](take)
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
		if _, err := t.Change(`INSERT INTO lost (campaign_id, number, count, epoch) VALUES (?, ?, ?, ?)`, string(s.ID), g[0], g[1], next); err != nil {
			return 0, err
		}
	}
	return lost, nil
}

// leaveLost removes the coupons of an earlier epoch from fresh whose numbers a rebuild said to be lost, counts them, and notes whose they were:
// their gate was cut off or frozen when it was rebuilt elsewhere. The ledger never takes them, and they are no dead letters, because their stock
// is not taken.
func (r *recording) leaveLost() error {
	if len(r.fresh) == 0 || r.epochGiven >= r.epoch {
		return nil
	}
	rows, err := r.Query(`SELECT number, number + count - 1 FROM lost WHERE campaign_id = ? AND epoch > ? AND number <= ? ORDER BY number`,
		string(r.ID), r.epochGiven, r.fresh[len(r.fresh)-1].Number)
	var kept, lost []firstcome.Coupon
	n := 0
	err = sqldb.EachRow(rows, err, func(take sqldb.Scan) error {
		var first, last int64
		if err := take(&first, &last); err != nil {
			return err
		}
		for ; n < len(r.fresh) && r.fresh[n].Number <= last; n++ {
			if r.fresh[n].Number < first {
				kept = append(kept, r.fresh[n])
			} else {
				lost = append(lost, r.fresh[n])
			}
		}
		return nil
	})
	r.fresh, r.Lost = append(kept, r.fresh[n:]...), int64(len(lost))
	if err != nil {
		return err
	}
	return inChunks(lost, r.noteLost)
}

// CouponLost is the action of a line of the audit log that says whose a lost number was: somebody may have been answered it, by a gate whose
// epoch had ended.
const CouponLost = "coupon.lost"

// noteLost notes whose lost coupons were, once of each.
func (r *recording) noteLost(coupons []firstcome.Coupon) error {
	noted, err := r.notedLost(coupons)
	if err != nil {
		return err
	}
	coupons = slices.DeleteFunc(slices.Clone(coupons), func(c firstcome.Coupon) bool { return noted[lostCoupon{c.Number, c.User}] })
	if len(coupons) == 0 {
		return nil
	}
	at, err := r.rows.db.Now(r.Tx)
	if err != nil {
		return err
	}
	var args []any
	for _, c := range coupons {
		detail := textOf(map[string]any{"epoch": r.epochGiven, "code": c.Code, "issued_at": c.IssuedAt.UnixMicro()})
		args = append(args, at.UnixMicro(), firstcomeItself, CouponLost, string(r.ID), string(c.User), c.Number, detail)
	}
	_, err = r.Change(repeated(`INSERT INTO audit_log (at, actor, action, campaign_id, user_id, number, detail) VALUES %s`, `(?, ?, ?, ?, ?, ?, ?)`, len(coupons)), args...)
	return err
}

// firstcomeItself is who does what nobody asked for, in the audit log.
const firstcomeItself = "firstcome"

type lostCoupon struct {
	number int64
	user   firstcome.UserID
}

// notedLost returns which of lost coupons the audit log has. It looks by their users: see voidsOf.
func (r *recording) notedLost(coupons []firstcome.Coupon) (map[lostCoupon]bool, error) {
	args := []any{string(r.ID)}
	for _, c := range coupons {
		args = append(args, string(c.User))
	}
	rows, err := r.Query(repeated(`SELECT number, user_id FROM audit_log WHERE COALESCE(campaign_id, '') = ? AND action = '`+CouponLost+`' AND user_id IN (%s)`, `?`, len(coupons)), args...)
	noted := map[lostCoupon]bool{}
	err = sqldb.EachRow(rows, err, func(take sqldb.Scan) error {
		var one lostCoupon
		err := take(&one.number, &one.user)
		noted[one] = true
		return err
	})
	return noted, err
}
