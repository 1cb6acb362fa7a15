package designs

import (
	"context"
	"errors"
	"strconv"

	"github.com/redis/rueidis"

	"github.com/firstcome/firstcome/internal/point"
)

// zset-rank: a user has a coupon if their rank in a sorted set is below the limit.
//
//	request: ZSCORE usercoupon:issued:{c} {u} (there: duplicate)
//	         the process's ms |scored| ZADD ms {u}; ZRANK (at the limit or above: ZREM, sold out)
//	         |ranked| SELECT the coupon's expiry; EXPIREAT; SELECT the user's row, INSERT; after an error ZREM
//
// Keys: usercoupon:issued:{c}, a sorted set of users by the time at which they asked.
//
// Published: the limit is the only parameter.
//
// Weak points: a user whose score is lower than that of a user who was told that they have a coupon pushes that winner's rank up and gets a coupon,
// too. Between the look at the clock and ZADD others are ranked; requests of one millisecond are sorted by the user's id; each process scores by
// its own clock. A process that dies after ZADD leaves a place taken without a row. Two requests of one user may both pass ZSCORE: the second INSERT
// fails, and its ZREM gives the first's place away.
//
// Left open: nothing.
type zsetRank struct{ inRequest }

var zsetRankContestant = Contestant{
	Name: "zset-rank", About: "a user wins if their rank in a sorted set is below the limit; four calls of Redis",
	Points: []point.Point{zsetRankScored, zsetRankRanked},
	New:    func(s *Shop) Design { return zsetRank{inRequest{s}} },
}

const (
	zsetRankScored point.Point = "zset-rank:scored" // the user has a score, the set has not
	zsetRankRanked point.Point = "zset-rank:ranked" // the user has a rank below the limit, and no row
)

func (z zsetRank) Apply(ctx context.Context, user string) (Answer, error) {
	s := z.shop
	set := s.key("usercoupon:issued:")
	switch err := s.do(ctx, "ZSCORE", set, user).Error(); {
	case err == nil:
		return Answer{Outcome: Duplicate}, nil
	case !rueidis.IsRedisNil(err):
		return Answer{}, err
	}
	score := s.score()
	s.reach(zsetRankScored)
	if err := s.do(ctx, "ZADD", set, score, user).Error(); err != nil {
		return Answer{}, err
	}
	rank, err := s.do(ctx, "ZRANK", set, user).AsInt64()
	if err != nil {
		return Answer{}, err
	}
	if rank >= s.Limit {
		return Answer{Outcome: SoldOut}, s.do(ctx, "ZREM", set, user).Error()
	}
	s.reach(zsetRankRanked)
	expiry, err := s.Database.expiry(ctx, s.Coupon)
	if err == nil {
		err = s.do(ctx, "EXPIREAT", set, strconv.FormatInt(expiry.Unix(), 10)).Error()
	}
	if err != nil {
		return Answer{}, s.unrank(ctx, set, user, err)
	}
	return s.storeRanked(ctx, set, user, rank)
}

// score is what a process's clock says, in milliseconds.
func (s *Shop) score() string { return strconv.FormatInt(s.Clock.Now().UnixMilli(), 10) }

// storeRanked stores a winner by rank, as all three designs of that kind do. After an error it takes the user out of the set.
func (s *Shop) storeRanked(ctx context.Context, set, user string, rank int64) (Answer, error) {
	id, err := s.Database.find(ctx, s.Coupon, user)
	if err == nil && id > 0 {
		return Answer{Outcome: Duplicate}, nil
	}
	if err == nil {
		err = s.Database.insert(ctx, s.Database, s.Coupon, user, s.Clock.Now())
	}
	if err != nil {
		return Answer{}, s.unrank(ctx, set, user, err)
	}
	return Answer{Outcome: Issued, Place: rank + 1}, nil
}

// unrank takes a user out of the set after an error, and returns the error.
func (s *Shop) unrank(ctx context.Context, set, user string, after error) error {
	return errors.Join(after, s.do(context.WithoutCancel(ctx), "ZREM", set, user).Error())
}
