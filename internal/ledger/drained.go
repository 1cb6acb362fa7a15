package ledger

import (
	"context"
	"database/sql"
	"errors"
	"slices"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/campaign"
	"github.com/firstcome/firstcome/internal/gate"
	"github.com/firstcome/firstcome/internal/record"
	"github.com/firstcome/firstcome/internal/sqldb"
)

// count computes how far the campaign is drained now, and updates the campaign's row if a counter changed.
func (r *recording) count() error {
	after := r.Row
	for _, c := range r.fresh {
		after.InForce++
		after.Issued++
		after.LastNumber = max(after.LastNumber, c.Number)
		if after.DecidedAt.Before(c.IssuedAt) {
			after.DecidedAt = c.IssuedAt // later decisions of the ledger must not be earlier than this coupon
		}
	}
	for _, c := range r.Letters {
		after.LastNumber = max(after.LastNumber, c.Number)
	}
	after.Position += int64(len(r.fresh))
	var err error
	if after.DrainedThrough, err = r.through(after.LastNumber); err != nil {
		return err
	}
	after.Ceiling = r.store.Grant(&after)
	r.Through, r.Grant = after.DrainedThrough, record.Grant{Epoch: r.Epoch, Ceiling: after.Ceiling}
	if len(r.fresh) == 0 && after.DrainedThrough == r.DrainedThrough && after.LastNumber == r.LastNumber && after.Ceiling == r.Ceiling {
		return nil
	}
	_, err = r.Change(`UPDATE campaigns SET in_force = ?, issued = ?, last_number = ?, position = ?, drained_through = ?, ceiling = ?, decided_at = ? WHERE id = ?`,
		after.InForce, after.Issued, after.LastNumber, after.Position, after.DrainedThrough, after.Ceiling, after.DecidedAt.UnixMicro(), string(r.ID))
	return err
}

// through returns the number up to which every number is a coupon, a dead letter or lost. lastNumber is the highest number of a coupon
// or dead letter.
func (r *recording) through(lastNumber int64) (int64, error) {
	through := r.DrainedThrough
	for _, run := range runs(r.given) {
		if run[0].Number <= through+1 {
			through = max(through, run[len(run)-1].Number)
		}
	}
	for {
		before := through
		err := r.throughLost(&through)
		if err == nil && through < lastNumber {
			err = r.throughKnown(&through)
		}
		if err != nil || through == before {
			return through, err
		}
	}
}

// throughLost advances through past the lost numbers that directly follow it.
func (r *recording) throughLost(through *int64) error {
	if r.Epoch == campaign.FirstEpoch {
		return nil // numbers are lost only when an epoch ends
	}
	var end int64
	err := r.Tx.Row(`SELECT number + count - 1 FROM lost WHERE campaign_id = ? AND number <= ? ORDER BY number DESC LIMIT 1`,
		string(r.ID), *through+1).Scan(&end)
	if errors.Is(err, sql.ErrNoRows) {
		return nil
	}
	*through = max(*through, end)
	return err
}

// throughStep is how many numbers one query reads, some 10 kB.
const throughStep = 1000

// throughKnown advances through past the coupons and dead letters that directly follow it. They were recorded earlier than lower
// numbers.
func (r *recording) throughKnown(through *int64) error {
	for {
		from := *through
		args := []any{string(r.ID), from, from + throughStep}
		rows, err := r.Query(`SELECT number FROM coupons WHERE campaign_id = ? AND number > ? AND number <= ?
			UNION SELECT number FROM dead_letters WHERE campaign_id = ? AND number > ? AND number <= ? ORDER BY number`, append(args, args...)...)
		if err != nil {
			return err
		}
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

// DrainedThrough returns the number up to which every number of a campaign is a coupon in the ledger, a dead
// letter or lost.
func (rc *Recorder) DrainedThrough(ctx context.Context, id firstcome.CampaignID) (through int64, err error) {
	err = rc.db.Conclude.QueryRowContext(ctx, `SELECT drained_through FROM campaigns WHERE id = ?`, string(id)).Scan(&through)
	if errors.Is(err, sql.ErrNoRows) {
		err = firstcome.ErrNoCampaign
	}
	return through, sqldb.Wrap(err, "read how far %s is drained", id)
}

// Has reports for each coupon whether the ledger has it, voided or not. The ledger's coupon must have the same number, user, time of
// issue and version of the terms.
func (rc *Recorder) Has(ctx context.Context, id firstcome.CampaignID, coupons []firstcome.Coupon) ([]bool, error) {
	numbers := make([]int64, len(coupons))
	for n, c := range coupons {
		numbers[n] = c.Number
	}
	found, err := rc.store.CouponsAt(ctx, id, numbers)
	known := make(map[int64]firstcome.Coupon, len(found))
	for _, c := range found {
		known[c.Number] = c
	}
	has := make([]bool, len(coupons))
	for n, c := range coupons {
		c.Code = known[c.Number].Code // it follows from the number
		has[n] = c.Number > 0 && sameCoupon(c, known[c.Number])
	}
	return has, sqldb.Wrap(err, "look for %d coupons of %s", len(coupons), id)
}

// Active returns the campaigns that recorders must check, in the order of their ids: the campaigns of this node's gate and secret
// that are not retired. A campaign that is created or retired during the call may be included or not.
func (rc *Recorder) Active(ctx context.Context) ([]gate.Revision, error) {
	all, err := rc.store.AtGate(ctx, `c.retired_at IS NULL`)
	return all, sqldb.Wrap(err, "read the active campaigns")
}

// Lined returns the campaigns that may have users in line at this node's remote gate: the campaigns with a pace, and those with users
// in line by the gate's last report.
func (rc *Recorder) Lined(ctx context.Context) ([]gate.Revision, error) {
	all, err := rc.store.AtGate(ctx, campaign.MayBeInLine)
	return all, sqldb.Wrap(err, "read which campaigns may have people in line")
}

// Lost returns the lost numbers of a campaign: numbers that its gate may have assigned before it was rebuilt, and that no coupon or dead
// letter has.
func (rd *Reads) Lost(ctx context.Context, id firstcome.CampaignID) ([]firstcome.Range, error) {
	rows, err := rd.db.Read.QueryContext(ctx, `SELECT number, count FROM lost WHERE campaign_id = ? ORDER BY number`, string(id))
	all, err := sqldb.AllRows(rows, err, func(take sqldb.Scan) (r firstcome.Range, err error) {
		err = take(&r.First, &r.Count)
		return r, err
	})
	return all, sqldb.Wrap(err, "read the lost numbers of %s", id)
}

// leaveLost removes coupons of an earlier epoch from fresh if a rebuild marked their numbers as lost. It counts
// them, and writes their users to the audit log. Their gate was cut off or frozen when it was rebuilt elsewhere.
// The ledger never takes these coupons. They are not dead letters, because they hold no stock.
func (r *recording) leaveLost() error {
	if len(r.fresh) == 0 || r.epochGiven >= r.Epoch {
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
	return sqldb.InChunks(lost, r.noteLost)
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
	at, err := r.store.DB.Now(r.Tx)
	if err != nil {
		return err
	}
	var args []any
	for _, c := range coupons {
		detail := campaign.JSON(map[string]any{"epoch": r.epochGiven, "code": c.Code, "issued_at": c.IssuedAt.UnixMicro()})
		args = append(args, at.UnixMicro(), firstcomeItself, CouponLost, string(r.ID), string(c.User), c.Number, detail)
	}
	_, err = r.Change(sqldb.Repeated(`INSERT INTO audit_log (at, actor, action, campaign_id, user_id, number, detail) VALUES %s`, `(?, ?, ?, ?, ?, ?, ?)`, len(coupons)), args...)
	return err
}

// firstcomeItself is the actor in the audit log of actions that no person ordered.
const firstcomeItself = "firstcome"

type lostCoupon struct {
	number int64
	user   firstcome.UserID
}

// notedLost returns the lost coupons that are in the audit log already. It searches by user: see VoidsOf.
func (r *recording) notedLost(coupons []firstcome.Coupon) (map[lostCoupon]bool, error) {
	args := []any{string(r.ID)}
	for _, c := range coupons {
		args = append(args, string(c.User))
	}
	rows, err := r.Query(sqldb.Repeated(`SELECT number, user_id FROM audit_log WHERE COALESCE(campaign_id, '') = ? AND action = '`+CouponLost+`' AND user_id IN (%s)`, `?`, len(coupons)), args...)
	noted := map[lostCoupon]bool{}
	err = sqldb.EachRow(rows, err, func(take sqldb.Scan) error {
		var one lostCoupon
		err := take(&one.number, &one.user)
		noted[one] = true
		return err
	})
	return noted, err
}
