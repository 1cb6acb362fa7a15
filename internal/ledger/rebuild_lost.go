package ledger

import (
	"cmp"
	"slices"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/sqldb"
)

const (
	// defaultBacklog is the backlog if the option is 0. It must equal the gate's default.
	defaultBacklog = 1_000_000
	// anyBacklog stands for no limit. No gate assigns so many numbers.
	anyBacklog = 1 << 40
)

// grant returns the highest number that the gate may assign to a coupon of a campaign in the state s. Above the
// ledger's highest number, it allows as many numbers as there is stock left, and at most the backlog. The
// ceiling never falls. A voided coupon returns stock, so each change grants again. The ceiling bounds the
// numbers that a gate may have assigned, even if the gate is lost.
func (r *rows) grant(s *stock) int64 {
	if !r.remote() {
		return 0
	}
	return max(s.ceiling, max(s.lastNumber, s.drained)+min(r.backlog, s.Quantity-s.inForce))
}

// backlogOf returns how many numbers above the ledger's highest a gate may assign. option is negative for no
// limit, and 0 for the default.
func backlogOf(option int64) int64 {
	if option < 0 {
		return anyBacklog
	}
	return cmp.Or(min(option, anyBacklog), defaultBacklog)
}

// loseNumbers writes the lost numbers: those up to through that are neither coupons nor dead letters. It returns
// how many there are. next is the epoch that begins.
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

// leaveLost removes coupons of an earlier epoch from fresh if a rebuild marked their numbers as lost. It counts
// them, and writes their users to the audit log. Their gate was cut off or frozen when it was rebuilt elsewhere.
// The ledger never takes these coupons. They are not dead letters, because they hold no stock.
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

// CouponLost is the action in the audit log that names the user of a lost number. A gate whose epoch had ended
// may have answered the user with that number.
const CouponLost = "coupon.lost"

// noteLost writes the users of lost coupons to the audit log, one entry for each coupon.
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

// firstcomeItself is the actor in the audit log of actions that no person ordered.
const firstcomeItself = "firstcome"

type lostCoupon struct {
	number int64
	user   firstcome.UserID
}

// notedLost returns the lost coupons that are in the audit log already. It searches by user: see voidsOf.
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
