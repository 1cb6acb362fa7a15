package designs

import (
	"context"
	"strconv"

	"github.com/redis/rueidis"

	"github.com/firstcome/firstcome/internal/point"
)

// zset-rank-lua: zset-rank, with the calls of Redis in one script.
//
//	request: SELECT the coupon's expiry; the process's ms
//	         script: ZSCORE usercoupon:issued:{c} {u} (there: duplicate); ZADD ms {u}; ZRANK (at the limit or above: ZREM, sold out); EXPIREAT
//	         |ranked| SELECT the user's row, INSERT; after an error ZREM
//
// Keys: usercoupon:issued:{c}, a sorted set of users by the time at which they asked.
//
// Published: the limit is the only parameter.
//
// Weak points: the script is atomic, its score is not of one clock. A user who asks later at a process whose clock is behind gets a lower rank than
// users who have their coupon, and more than the limit is issued; so it is, more rarely, if a request waits between the look at the clock and the
// script. A process that dies after the script leaves a place taken without a row.
//
// Left open: when the clock is read (at the last moment before the script is sent).
type zsetRankLua struct{ inRequest }

var zsetRankLuaContestant = Contestant{
	Name: "zset-rank-lua", About: "zset-rank in one Lua script; the score is of the process's clock",
	Points: []point.Point{zsetRankLuaRanked},
	New:    func(s *Shop) Design { return zsetRankLua{inRequest{s}} },
}

const zsetRankLuaRanked point.Point = "zset-rank-lua:ranked" // the user has a rank below the limit, and no row

// zsetRankScript ranks a user.
//
// KEYS: the set. ARGV: user, score, limit, when the set expires. Returns the rank from 0; -1: the user is there; -2: sold out.
var zsetRankScript = rueidis.NewLuaScript(`
if redis.call('ZSCORE', KEYS[1], ARGV[1]) then return -1 end
redis.call('ZADD', KEYS[1], ARGV[2], ARGV[1])
local rank = redis.call('ZRANK', KEYS[1], ARGV[1])
if rank >= tonumber(ARGV[3]) then
  redis.call('ZREM', KEYS[1], ARGV[1])
  return -2
end
redis.call('EXPIREAT', KEYS[1], ARGV[4])
return rank`)

func (z zsetRankLua) Apply(ctx context.Context, user string) (Answer, error) {
	s := z.shop
	set := s.key("usercoupon:issued:")
	expiry, err := s.Database.expiry(ctx, s.Coupon)
	if err != nil {
		return Answer{}, err
	}
	rank, err := zsetRankScript.Exec(ctx, s.Redis, []string{set},
		[]string{user, s.score(), strconv.FormatInt(s.Limit, 10), strconv.FormatInt(expiry.Unix(), 10)}).AsInt64()
	switch {
	case err != nil:
		return Answer{}, err
	case rank == -1:
		return Answer{Outcome: Duplicate}, nil
	case rank == -2:
		return Answer{Outcome: SoldOut}, nil
	}
	s.reach(zsetRankLuaRanked)
	return s.storeRanked(ctx, set, user, rank)
}
