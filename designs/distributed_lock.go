package designs

import (
	"context"

	"github.com/firstcome/firstcome/internal/point"
)

// distributed-lock: a lock in Redis for the coupon, then read, check and write.
//
//	request: SET lock:coupon:{c} token NX PX 3000 (waits up to 1 s, then conflict)
//	         SELECT the user's row (there: duplicate); SELECT quantity; SELECT COUNT(*) (at the quantity: sold out)
//	         |checked| INSERT |inserted|; script: DEL lock:coupon:{c} if it still holds the token; answer
//
// Keys: lock:coupon:{c}, the token of the process that holds it.
//
// Parameters: wait 1 s, lease 3 s.
//
// Weak points: a holder that is stopped for longer than its lease goes on as if it had the lock, while another has it: both issue the last coupon.
// The unique key saves the user, not the quantity. A Redis that loses the lock lets two in, too. A holder that dies blocks all for the rest of its
// lease. One winner after the other, and under load most users wait for a second and are told "conflict".
//
// Left open: how it waits (it asks each 10 ms: with many waiters the lock is free for a fraction of that; nothing is queued); whether
// the lease is renewed (no: the lease would be no limit); whether there is a transaction (no: a single INSERT needs none).
type distributedLock struct{ inRequest }

var distributedLockContestant = Contestant{
	Name: "distributed-lock", About: "a lock in Redis with a lease of 3 s around read, check, write",
	Points: []point.Point{distributedLockChecked, distributedLockInserted},
	Last:   []point.Point{distributedLockChecked},
	New:    func(s *Shop) Design { return distributedLock{inRequest{s}} },
}

const (
	distributedLockChecked  point.Point = "distributed-lock:checked"  // a coupon is left, the user has none yet
	distributedLockInserted point.Point = "distributed-lock:inserted" // the user has it, the lock is held
)

func (d distributedLock) Apply(ctx context.Context, user string) (answer Answer, err error) {
	s := d.shop
	held, err := s.underLock(ctx, s.key("lock:coupon:"), func() (err error) {
		answer.Outcome, err = d.issue(ctx, user)
		return err
	})
	switch {
	case err != nil:
		return Answer{}, err
	case !held:
		return Answer{Outcome: Conflict}, nil
	}
	return answer, nil
}

// issue is for a caller that holds the lock.
func (d distributedLock) issue(ctx context.Context, user string) (Outcome, error) {
	s := d.shop
	if id, err := s.Database.find(ctx, s.Coupon, user); err != nil || id > 0 {
		return Duplicate, err
	}
	quantity, err := s.Database.quantity(ctx, s.Coupon)
	if err != nil {
		return "", err
	}
	if count, err := s.Database.count(ctx, s.Coupon); err != nil || count >= quantity {
		return SoldOut, err
	}
	s.reach(distributedLockChecked)
	switch err := s.Database.insert(ctx, s.Database, s.Coupon, user, s.Clock.Now()); {
	case isDuplicate(err):
		return Duplicate, nil
	case err != nil:
		return "", err
	}
	s.reach(distributedLockInserted)
	return Issued, nil
}
