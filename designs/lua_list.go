package designs

import (
	"context"
	"strconv"

	"github.com/redis/rueidis"

	"github.com/firstcome/firstcome/internal/point"
)

// lua-list: one script decides and queues, a worker stores.
//
//	request: script: SISMEMBER coupon:issued:{c} {u} (there: duplicate); SCARD (at the limit: sold out); SADD; RPUSH coupon:queue:{c} {u}
//	         answer: issued, with the number
//	worker:  LPOP 500 coupon:queue:{c} |popped| INSERT all in one statement |stored|
//
// Keys: coupon:issued:{c}, the winners; coupon:queue:{c}, winners without a row.
//
// Parameters: 500 winners a statement.
//
// Weak points: winners popped when the process dies, or in a reply of LPOP that is lost, are lost: they were told "issued". So are the latest winners if
// the machine of Redis dies: its disk is up to a second behind.
//
// Left open: what becomes of popped winners whose statement fails (they go back to the front); the statement (it ignores rows that are there, so
// that a second try is no error). The form is ours.
type luaList struct{ inRequest }

var luaListContestant = Contestant{
	Name: "lua-list", About: "one Lua script decides and queues; a worker pops 500 and inserts them at once",
	Points: []point.Point{luaListPopped, luaListStored},
	New:    func(s *Shop) Design { return luaList{inRequest{s}} },
}

const (
	luaListPopped point.Point = "lua-list:popped" // the winners have left the list and are not in the database
	luaListStored point.Point = "lua-list:stored" // the database has them
)

const luaListBatch = "500"

// claimScript issues a coupon. A design adds the command that queues the winner, and the number.
//
// KEYS: the set of winners, the queue. ARGV: user, limit. Returns the winner's number; 0: sold out; -1: duplicate.
const claimScript = `
if redis.call('SISMEMBER', KEYS[1], ARGV[1]) == 1 then return -1 end
local issued = redis.call('SCARD', KEYS[1])
if issued >= tonumber(ARGV[2]) then return 0 end
redis.call('SADD', KEYS[1], ARGV[1])
`

var luaListScript = rueidis.NewLuaScript(claimScript + `
redis.call('RPUSH', KEYS[2], ARGV[1])
return issued + 1`)

func (l luaList) Apply(ctx context.Context, user string) (Answer, error) {
	return l.shop.claim(ctx, luaListScript, user, l.shop.key("coupon:queue:"))
}

// claim runs a script that issues a coupon and queues the winner.
func (s *Shop) claim(ctx context.Context, script *rueidis.Lua, user, queue string) (Answer, error) {
	number, err := script.Exec(ctx, s.Redis, []string{s.key("coupon:issued:"), queue}, []string{user, strconv.FormatInt(s.Limit, 10)}).AsInt64()
	switch {
	case err != nil:
		return Answer{}, err
	case number == -1:
		return Answer{Outcome: Duplicate}, nil
	case number == 0:
		return Answer{Outcome: SoldOut}, nil
	}
	return Answer{Outcome: Issued, Place: number}, nil
}

func (l luaList) Work(ctx context.Context) error {
	s := l.shop
	list := s.key("coupon:queue:")
	for ctx.Err() == nil {
		users, err := s.do(ctx, "LPOP", list, luaListBatch).AsStrSlice()
		if err != nil { // the list is empty, or Redis is away
			s.pause(ctx, idle)
			continue
		}
		s.reach(luaListPopped)
		if err := s.Database.insertAll(ctx, s.Coupon, users, s.Clock.Now()); err != nil {
			_ = s.putBack(ctx, list, users...) // if that fails, too, they are lost
			s.pause(ctx, failing)
			continue
		}
		s.reach(luaListStored)
	}
	return nil
}
