package designs

import (
	"context"
	"database/sql"
	"time"

	"github.com/firstcome/firstcome/internal/point"
)

// row-lock: one transaction of the database, and the coupon's row is the lock.
//
//	request: BEGIN; SELECT quantity ... FOR UPDATE; SELECT the user's row (there: duplicate); SELECT COUNT(*) (at the quantity: sold out)
//	         INSERT; COMMIT |committed| answer
//
// Keys: none. It needs no Redis.
//
// Parameters: none.
//
// Weak points: one winner after the other, each with five round trips and a commit on disk while the others wait for the row, and each counts all
// rows. With more requests than connections, all connections of the pool wait for one row. A user whose process dies after COMMIT is told nothing,
// and "duplicate" if they ask again; their coupon is there.
//
// Left open: nothing. The form is ours.
type rowLock struct{ inRequest }

var rowLockContestant = Contestant{
	Name: "row-lock", About: "SELECT ... FOR UPDATE on the coupon, count, INSERT, in one transaction",
	Points:  []point.Point{rowLockCommitted},
	NoRedis: true,
	New:     func(s *Shop) Design { return rowLock{inRequest{s}} },
}

const rowLockCommitted point.Point = "row-lock:committed" // the user has a coupon and was told nothing

func (r rowLock) Apply(ctx context.Context, user string) (Answer, error) {
	s := r.shop
	outcome, err := s.Database.issueUnderLock(ctx, s.Coupon, user, s.Clock.Now())
	if err != nil {
		return Answer{}, err
	}
	if outcome == Issued {
		s.reach(rowLockCommitted)
	}
	return Answer{Outcome: outcome}, nil
}

// issueUnderLock is the transaction, which zset-queue has, too: lock the coupon's row, look for the user's row, count, insert. The outcome is Issued,
// Duplicate or SoldOut.
func (d *Database) issueUnderLock(ctx context.Context, coupon, user string, at time.Time) (outcome Outcome, err error) {
	err = d.in(ctx, func(tx *sql.Tx) error {
		quantity, err := d.lock(ctx, tx, coupon)
		if err != nil {
			return err
		}
		id, err := d.findIn(ctx, tx, coupon, user)
		if err != nil {
			return err
		}
		if id > 0 {
			outcome = Duplicate
			return nil
		}
		count, err := d.countIn(ctx, tx, coupon)
		if err != nil {
			return err
		}
		if count >= quantity {
			outcome = SoldOut
			return nil
		}
		outcome = Issued
		return d.insert(ctx, tx, coupon, user, at)
	})
	return outcome, err
}
