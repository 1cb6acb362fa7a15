package designs

import (
	"context"
	"database/sql"

	"github.com/firstcome/firstcome/internal/point"
)

// atomic-update: the database counts, in the statement that checks.
//
//	request: BEGIN; UPDATE coupons SET issued = issued + 1 WHERE coupon = {c} AND issued < quantity (no row: sold out)
//	         INSERT (there: ROLLBACK, duplicate); COMMIT |committed| answer
//
// Keys: none. It needs no Redis.
//
// Parameters: none.
//
// Weak points: UPDATE locks the coupon's row until COMMIT, so there is one winner after the other, each with a commit on disk. A user whose process
// dies after COMMIT is told nothing, and "duplicate" if they ask again; their coupon is there.
//
// Left open: what a winner is told who asks again when the coupon is gone (sold out, since UPDATE finds no row; a look for the user's row
// would cost each request a round trip). The form is ours.
type atomicUpdate struct{ inRequest }

var atomicUpdateContestant = Contestant{
	Name: "atomic-update", About: "UPDATE ... WHERE issued < quantity, then INSERT, in one transaction",
	Points:  []point.Point{atomicUpdateCommitted},
	NoRedis: true,
	New:     func(s *Shop) Design { return atomicUpdate{inRequest{s}} },
}

const atomicUpdateCommitted point.Point = "atomic-update:committed" // the user has a coupon and was told nothing

func (a atomicUpdate) Apply(ctx context.Context, user string) (Answer, error) {
	s := a.shop
	outcome := Issued
	err := s.Database.in(ctx, func(tx *sql.Tx) error {
		taken, err := s.Database.take(ctx, tx, s.Coupon)
		if err != nil {
			return err
		}
		if !taken {
			outcome = SoldOut
			return nil
		}
		return s.Database.insert(ctx, tx, s.Coupon, user, s.Clock.Now())
	})
	switch {
	case isDuplicate(err):
		return Answer{Outcome: Duplicate}, nil
	case err != nil:
		return Answer{}, err
	}
	if outcome == Issued {
		s.reach(atomicUpdateCommitted)
	}
	return Answer{Outcome: outcome}, nil
}
