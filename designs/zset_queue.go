package designs

import (
	"context"
	"strconv"
	"time"

	"github.com/redis/rueidis"

	"github.com/firstcome/firstcome/internal/point"
)

// zset-queue: a sorted set is the waiting list, and one user after the other is issued their coupon.
//
//	request:   EXISTS cpn:isu:{c}:{u}, SELECT the user's row (either: duplicate)
//	           ZADD cpn:wl:{c} nanoTime {u}; EXPIRE 7 d; ZRANK -> the rank is the answer
//	scheduler: ZRANGE 0 0 -> ZREM |removed| lock, count, INSERT |stored| SET cpn:isu:{c}:{u} EX 7 d; sleep 50 ms
//
// Keys: cpn:wl:{c}, a sorted set of users who wait; cpn:isu:{c}:{u}, a mark for a user who has a coupon.
//
// Published: a fixed delay of 50 ms, one user a turn.
//
// Weak points: 20 users a second for each process at most. Asking again moves a user to the end, since ZADD has no NX. A user who was removed and not
// stored when the process dies is forgotten. The scores are of the process's nanosecond clock, which means nothing on another machine.
//
// Left open: what a turn does when the coupon is gone (the user gets nothing, and the turn goes on), and after an error of the database (the same:
// the description has no way back into the list).
//
// zset-queue-fast is what the design can do at best: 500 users a turn, and no sleep while there is work.
type zsetQueue struct {
	shop  *Shop
	batch int           // users a turn
	delay time.Duration // after a turn; if 0, a turn follows at once while there is work
}

var zsetQueueContestant = Contestant{
	Name: "zset-queue", About: "a sorted set as waiting list; each process issues one coupon each 50 ms",
	Points: []point.Point{zsetRemoved, zsetStored},
	New:    func(s *Shop) Design { return &zsetQueue{s, 1, 50 * time.Millisecond} },
}

var zsetQueueFastContestant = Contestant{
	Name: "zset-queue-fast", About: "zset-queue with 500 users a turn, and no pause while there is work",
	Points: []point.Point{zsetRemoved, zsetStored},
	New:    func(s *Shop) Design { return &zsetQueue{s, 500, 0} },
}

const (
	zsetRemoved point.Point = "zset-queue:removed" // the user has left the list and is not in the database
	zsetStored  point.Point = "zset-queue:stored"  // the database has the coupon, its mark in Redis is missing
)

const week = 7 * 24 * time.Hour

func (z *zsetQueue) mark(user string) string { return z.shop.key("cpn:isu:") + ":" + user }

func (z *zsetQueue) Apply(ctx context.Context, user string) (Answer, error) {
	s := z.shop
	marked, err := s.do(ctx, "EXISTS", z.mark(user)).AsBool()
	if err != nil || marked {
		return Answer{Outcome: Duplicate}, err
	}
	if id, err := s.Database.find(ctx, s.Coupon, user); err != nil || id > 0 {
		return Answer{Outcome: Duplicate}, err
	}
	list := s.key("cpn:wl:")
	answers := s.Redis.DoMulti(ctx,
		s.Redis.B().Zadd().Key(list).ScoreMember().ScoreMember(float64(s.Clock.Nano()), user).Build(),
		s.Redis.B().Expire().Key(list).Seconds(int64(week.Seconds())).Build(),
		s.Redis.B().Zrank().Key(list).Member(user).Build())
	if err := answers[0].Error(); err != nil {
		return Answer{}, err
	}
	rank, err := answers[2].AsInt64()
	if rueidis.IsRedisNil(err) { // a scheduler has just removed the user
		rank, err = 0, nil
	}
	return Answer{Outcome: Queued, Waiting: rank + 1}, err
}

func (z *zsetQueue) Result(ctx context.Context, user string) (Answer, error) {
	return z.shop.result(ctx, user)
}

func (z *zsetQueue) Work(ctx context.Context) error {
	for ctx.Err() == nil {
		took := z.turn(ctx)
		if z.delay > 0 || !took {
			z.shop.pause(ctx, max(z.delay, idle))
		}
	}
	return nil
}

// turn issues to the first users of the list, and reports whether there was one.
func (z *zsetQueue) turn(ctx context.Context) (took bool) {
	s := z.shop
	users, err := s.do(ctx, "ZRANGE", s.key("cpn:wl:"), "0", strconv.Itoa(z.batch-1)).AsStrSlice()
	if err != nil {
		return false
	}
	for _, user := range users {
		if removed, err := s.do(ctx, "ZREM", s.key("cpn:wl:"), user).AsInt64(); err != nil || removed == 0 {
			continue // another process took the user
		}
		s.reach(zsetRemoved)
		outcome, err := s.Database.issueUnderLock(ctx, s.Coupon, user, s.Clock.Now())
		if err != nil || outcome != Issued {
			continue
		}
		s.reach(zsetStored)
		_ = s.do(ctx, "SET", z.mark(user), "1", "EX", strconv.Itoa(int(week.Seconds()))).Error()
	}
	return len(users) > 0
}
