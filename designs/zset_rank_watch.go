package designs

import (
	"context"
	"strconv"
	"time"

	"github.com/redis/rueidis"

	"github.com/firstcome/firstcome/internal/point"
)

// zset-rank-watch: zset-rank, with the calls of Redis in a transaction that starts again if others changed the set.
//
//	request: SELECT the coupon's expiry
//	         WATCH usercoupon:issued:{c}; ZSCORE {u} (there: duplicate) |watched| MULTI ZADD ms {u}, ZRANK, EXPIREAT, EXEC
//	         (nil: again, at most 5 attempts, then conflict); rank at the limit or above: ZREM, sold out
//	         |ranked| SELECT the user's row, INSERT; after an error ZREM
//
// Keys: usercoupon:issued:{c}, a sorted set of users by the time at which they asked.
//
// Published: 5 attempts.
//
// Weak points: each request changes the set that all others watch, so under load most attempts fail, and users are told "conflict" while coupons
// are left. The scores are of the processes' clocks: a user who asks later at a process whose clock is behind gets a lower rank, and one coupon more
// than the limit is issued. A process that dies after EXEC leaves a place taken without a row.
//
// Left open: when the clock is read (after WATCH in each attempt, so that a process never writes a score that is older than another's change).
type zsetRankWatch struct{ inRequest }

var zsetRankWatchContestant = Contestant{
	Name: "zset-rank-watch", About: "zset-rank in WATCH, MULTI, EXEC; five attempts, then conflict",
	Points: []point.Point{zsetRankWatchWatched, zsetRankWatchRanked},
	New:    func(s *Shop) Design { return zsetRankWatch{inRequest{s}} },
}

const (
	zsetRankWatchWatched point.Point = "zset-rank-watch:watched" // the set is watched and not changed
	zsetRankWatchRanked  point.Point = "zset-rank-watch:ranked"  // the user has a rank below the limit, and no row
)

// zsetRankWatchAttempts is published.
const zsetRankWatchAttempts = 5

func (z zsetRankWatch) Apply(ctx context.Context, user string) (Answer, error) {
	s := z.shop
	set := s.key("usercoupon:issued:")
	expiry, err := s.Database.expiry(ctx, s.Coupon)
	if err != nil {
		return Answer{}, err
	}
	for range zsetRankWatchAttempts {
		rank, refused, err := z.attempt(ctx, set, user, expiry)
		switch {
		case err != nil:
			return Answer{}, err
		case refused == Conflict:
			continue
		case refused != "":
			return Answer{Outcome: refused}, nil
		case rank >= s.Limit:
			return Answer{Outcome: SoldOut}, s.do(ctx, "ZREM", set, user).Error()
		}
		s.reach(zsetRankWatchRanked)
		return s.storeRanked(ctx, set, user, rank)
	}
	return Answer{Outcome: Conflict}, nil
}

// attempt returns the user's new rank; or Duplicate; or Conflict, if the set changed while it was watched.
func (z zsetRankWatch) attempt(ctx context.Context, set, user string, expiry time.Time) (rank int64, refused Outcome, err error) {
	s := z.shop
	err = s.Redis.Dedicated(func(c rueidis.DedicatedClient) error {
		command := func(words ...string) rueidis.Completed { return c.B().Arbitrary(words...).Build() }
		if err := c.Do(ctx, command("WATCH", set)).Error(); err != nil {
			return err
		}
		switch err := c.Do(ctx, command("ZSCORE", set, user)).Error(); {
		case err == nil:
			refused = Duplicate
			return c.Do(ctx, command("UNWATCH")).Error()
		case !rueidis.IsRedisNil(err):
			return err
		}
		score := s.score()
		s.reach(zsetRankWatchWatched)
		answers := c.DoMulti(ctx,
			command("MULTI"),
			command("ZADD", set, score, user),
			command("ZRANK", set, user),
			command("EXPIREAT", set, strconv.FormatInt(expiry.Unix(), 10)),
			command("EXEC"))
		done, err := answers[4].ToArray()
		if rueidis.IsRedisNil(err) {
			refused = Conflict
			return nil
		}
		if err != nil {
			return err
		}
		rank, err = done[1].AsInt64()
		return err
	})
	return rank, refused, err
}
