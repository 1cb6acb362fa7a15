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
//	request: ZSCORE usercoupon:issued:{c} {u} (there: duplicate); ZADD ms {u}; ZRANK (at the limit or above: ZREM, sold out)
//	         |ranked| SELECT the coupon's expiry; EXPIREAT; SELECT the user's row, INSERT; after an error ZREM
//
// Published: the limit is the only parameter.
//
// Weak points: a user whose score is lower than that of somebody who was told that they have one pushes that winner's rank up and is issued, too:
// requests of one millisecond are sorted by the user's id, and each process scores by its own clock. A process that dies after ZADD leaves a place
// taken without a row.
type zsetRank struct{ inRequest }

var zsetRankContestant = Contestant{
	Name: "zset-rank", About: "a user wins if their rank in a sorted set is below the limit; four calls of Redis",
	Points: []point.Point{zsetRanked},
	New:    func(s *Shop) Design { return zsetRank{inRequest{s}} },
}

const zsetRanked point.Point = "zset-rank:ranked" // the user has a rank below the limit, and no row

func (z zsetRank) Apply(ctx context.Context, user string) (Answer, error) {
	s := z.shop
	set := s.key("usercoupon:issued:")
	switch err := s.do(ctx, "ZSCORE", set, user).Error(); {
	case err == nil:
		return Answer{Outcome: Duplicate}, nil
	case !rueidis.IsRedisNil(err):
		return Answer{}, err
	}
	if err := s.do(ctx, "ZADD", set, strconv.FormatInt(s.Clock.Now().UnixMilli(), 10), user).Error(); err != nil {
		return Answer{}, err
	}
	rank, err := s.do(ctx, "ZRANK", set, user).AsInt64()
	if err != nil {
		return Answer{}, err
	}
	if rank >= s.Limit {
		return Answer{Outcome: SoldOut}, s.do(ctx, "ZREM", set, user).Error()
	}
	point.Reach(zsetRanked)
	return s.storeRanked(ctx, set, user, rank)
}

// storeRanked stores a winner by rank, as all three designs of that kind do. After an error it takes the user out of the set.
func (s *Shop) storeRanked(ctx context.Context, set, user string, rank int64) (Answer, error) {
	expiry, err := s.Database.expiry(ctx, s.Coupon)
	if err == nil {
		err = s.do(ctx, "EXPIREAT", set, strconv.FormatInt(expiry.Unix(), 10)).Error()
	}
	var id int64
	if err == nil {
		id, err = s.Database.find(ctx, s.Coupon, user)
	}
	if err == nil && id > 0 {
		return Answer{Outcome: Duplicate}, nil
	}
	if err == nil {
		err = s.Database.insert(ctx, s.Database, s.Coupon, user, s.Clock.Now())
	}
	if err != nil {
		return Answer{}, errors.Join(err, s.do(context.WithoutCancel(ctx), "ZREM", set, user).Error())
	}
	return Answer{Outcome: Issued, Place: rank + 1}, nil
}
