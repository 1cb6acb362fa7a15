package designs

import (
	"context"
	"database/sql"
	"strconv"
	"strings"
	"time"

	"github.com/firstcome/firstcome/internal/point"
)

// zadd-decr-list: a sorted set knows who asked, a counter what is left, and a list feeds the database.
//
//	request:   ZADD NX coupon:issued:{c} ms {u} (0: duplicate)
//	           |marked| DECR coupon:stock:{c} (below 0: INCR, ZREM, sold out)
//	           |taken| RPUSH coupon:queue:{c} {u}; EXPIRE coupon:issued:{c} 30 d; answer: issued
//	scheduler: each 10 s SCAN coupon:queue:*; for each list LPOP 1,000 |popped| BEGIN; INSERT for each; COMMIT |committed|; again while there are any
//
// Keys: coupon:issued:{c}, a sorted set of users; coupon:stock:{c}, what is left; coupon:queue:{c}, winners without a row.
//
// Published: 10 s, 1,000 users (the text also says 100), 30 d.
//
// Weak points: users are told "issued" up to 10 s before the database has it, and longer under load. A process that dies between LPOP and COMMIT loses
// up to 1,000 winners. One that dies between ZADD and DECR leaves its user marked: they are told "duplicate" for 30 days and have no coupon. One that
// dies between DECR and RPUSH loses a coupon and its winner. A user who is in the list twice, after Redis lost
// the set's latest entries, has the whole transaction fail: up to 999 others are lost with them. While DECR is below 0 and INCR has not come,
// nothing is wrong.
//
// Left open: whether it pops 100 or 1,000 (1,000: faster); the first turn (at once); what becomes of popped users whose transaction fails (they go back
// to the front and are tried again in the next turn; if it fails because a row is there, they do not go back: it would fail each time); when EXPIRE is sent
// (with RPUSH, in one round trip).
type zaddDecrList struct{ inRequest }

var zaddDecrListContestant = Contestant{
	Name: "zadd-decr-list", About: "ZADD NX, DECR, RPUSH, answer; each 10 s the list goes into the database",
	Points: []point.Point{zaddDecrMarked, zaddDecrTaken, zaddDecrPopped, zaddDecrCommitted},
	Open: func(ctx context.Context, s *Shop) error {
		return s.do(ctx, "SET", s.key("coupon:stock:"), strconv.FormatInt(s.Limit, 10)).Error()
	},
	New: func(s *Shop) Design { return zaddDecrList{inRequest{s}} },
}

const (
	zaddDecrMarked    point.Point = "zadd-decr-list:marked"    // the user has asked, no coupon was taken for them
	zaddDecrTaken     point.Point = "zadd-decr-list:taken"     // a coupon was taken, the list has no user for it
	zaddDecrPopped    point.Point = "zadd-decr-list:popped"    // the users have left the list and are not in the database
	zaddDecrCommitted point.Point = "zadd-decr-list:committed" // the database has them
)

const (
	zaddDecrEvery = 10 * time.Second    // published
	zaddDecrBatch = "1000"              // published
	zaddDecrKept  = 30 * 24 * time.Hour // published
)

func (z zaddDecrList) Apply(ctx context.Context, user string) (Answer, error) {
	s := z.shop
	issued, stock := s.key("coupon:issued:"), s.key("coupon:stock:")
	added, err := s.do(ctx, "ZADD", issued, "NX", s.score(), user).AsInt64()
	if err != nil || added == 0 {
		return Answer{Outcome: Duplicate}, err
	}
	s.reach(zaddDecrMarked)
	left, err := s.do(ctx, "DECR", stock).AsInt64()
	if err != nil {
		return Answer{}, err
	}
	if left < 0 {
		if err := s.do(ctx, "INCR", stock).Error(); err != nil {
			return Answer{}, err
		}
		return Answer{Outcome: SoldOut}, s.do(ctx, "ZREM", issued, user).Error()
	}
	s.reach(zaddDecrTaken)
	answers := s.Redis.DoMulti(ctx,
		s.Redis.B().Rpush().Key(s.key("coupon:queue:")).Element(user).Build(),
		s.Redis.B().Expire().Key(issued).Seconds(int64(zaddDecrKept.Seconds())).Build())
	return Answer{Outcome: Issued}, answers[0].Error()
}

func (z zaddDecrList) Work(ctx context.Context) error {
	for ctx.Err() == nil {
		z.turn(ctx)
		z.shop.pause(ctx, zaddDecrEvery)
	}
	return nil
}

// turn empties the lists of all coupons.
func (z zaddDecrList) turn(ctx context.Context) {
	s := z.shop
	for cursor, last := uint64(0), false; !last; last = cursor == 0 {
		page, err := s.do(ctx, "SCAN", strconv.FormatUint(cursor, 10), "MATCH", "coupon:queue:*").AsScanEntry()
		if err != nil {
			return
		}
		for _, list := range page.Elements {
			for z.move(ctx, list) {
			}
		}
		cursor = page.Cursor
	}
}

// move stores the first users of a list, and reports whether there may be more.
func (z zaddDecrList) move(ctx context.Context, list string) bool {
	s := z.shop
	users, err := s.do(ctx, "LPOP", list, zaddDecrBatch).AsStrSlice()
	if err != nil { // the list is empty, or Redis is away
		return false
	}
	s.reach(zaddDecrPopped)
	err = s.Database.in(ctx, func(tx *sql.Tx) error {
		for _, user := range users {
			if err := s.Database.insert(ctx, tx, strings.TrimPrefix(list, "coupon:queue:"), user, s.Clock.Now()); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil && !isDuplicate(err) {
		_ = s.putBack(ctx, list, users...) // if that fails, too, they are lost
		return false
	}
	s.reach(zaddDecrCommitted)
	return true
}
