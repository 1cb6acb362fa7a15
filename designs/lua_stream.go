package designs

import (
	"context"
	"crypto/rand"
	"strconv"
	"time"

	"github.com/redis/rueidis"

	"github.com/firstcome/firstcome/internal/point"
)

// lua-stream-pipelined: lua-list with a stream and a consumer group instead of the list, and all requests of a process pipelined on one connection.
//
//	request: script: SISMEMBER coupon:issued:{c} {u} (there: duplicate); SCARD (at the limit: sold out); SADD; XADD coupon:stream:{c} * u {u}
//	         answer: issued, with the number
//	worker:  XREADGROUP COUNT 1,000 |read| INSERT all in one statement that ignores rows that are there |stored| XACK
//	         each second XAUTOCLAIM what another worker has read and not acknowledged for 5 s
//
// Keys: coupon:issued:{c}, the winners; coupon:stream:{c}, all winners in order, with the consumer group shop.
//
// Parameters: 1,000 entries a statement, claimed after 5 s.
//
// Weak points: the latest winners are lost if the machine of Redis dies, since its disk is up to a second behind: they were told "issued". The coupons
// that a dead worker has read come 5 s later. A user whose answer is lost is told "duplicate" if they ask again. The stream grows until it is removed.
//
// Left open: what a worker does whose statement fails (it tries the same entries again until it succeeds). The form is ours, and the strongest plain one.
type luaStream struct{ inRequest }

var luaStreamContestant = Contestant{
	Name: "lua-stream-pipelined", About: "one Lua script on one pipelined connection; a stream with a consumer group feeds the database",
	Points:    []point.Point{luaStreamRead, luaStreamStored},
	Pipelined: true,
	Open: func(ctx context.Context, s *Shop) error {
		return s.do(ctx, "XGROUP", "CREATE", s.key("coupon:stream:"), luaStreamGroup, "0", "MKSTREAM").Error()
	},
	New: func(s *Shop) Design { return luaStream{inRequest{s}} },
}

const (
	luaStreamRead   point.Point = "lua-stream-pipelined:read"   // the entries are this worker's and are not in the database
	luaStreamStored point.Point = "lua-stream-pipelined:stored" // the database has them, they are not acknowledged
)

const (
	luaStreamGroup = "shop"
	luaStreamBatch = 1000
	luaStreamBlock = time.Second
	luaStreamClaim = time.Second     // how often
	luaStreamIdle  = 5 * time.Second // given
)

var luaStreamScript = rueidis.NewLuaScript(claimScript + `
redis.call('XADD', KEYS[2], '*', 'u', ARGV[1])
return issued + 1`)

func (l luaStream) Apply(ctx context.Context, user string) (Answer, error) {
	return l.shop.claim(ctx, luaStreamScript, user, l.shop.key("coupon:stream:"))
}

func (l luaStream) Work(ctx context.Context) error {
	s := l.shop
	stream, worker := s.key("coupon:stream:"), rand.Text()
	var claimed time.Time
	for ctx.Err() == nil {
		if time.Since(claimed) >= s.published(luaStreamClaim) {
			claimed = time.Now()
			l.store(ctx, stream, l.left(ctx, stream, worker))
		}
		read, err := s.Redis.Do(ctx, s.Redis.B().Xreadgroup().Group(luaStreamGroup, worker).Count(luaStreamBatch).Block(s.published(luaStreamBlock).Milliseconds()).
			Streams().Key(stream).Id(">").Build()).AsXRead()
		if err != nil && !rueidis.IsRedisNil(err) {
			s.pause(ctx, failing)
		}
		l.store(ctx, stream, read[stream])
	}
	return nil
}

// left returns entries that a worker has left for too long. They are this worker's from then on.
func (l luaStream) left(ctx context.Context, stream, worker string) []rueidis.XRangeEntry {
	s := l.shop
	answer, err := s.Redis.Do(ctx, s.Redis.B().Xautoclaim().Key(stream).Group(luaStreamGroup).Consumer(worker).
		MinIdleTime(strconv.FormatInt(s.published(luaStreamIdle).Milliseconds(), 10)).Start("0").Count(luaStreamBatch).Build()).ToArray()
	if err != nil || len(answer) < 2 {
		return nil
	}
	entries, _ := answer[1].AsXRange() // an error: the next time
	return entries
}

// store stores entries and acknowledges them. It does not give up before ctx ends: until then they wait for a worker.
func (l luaStream) store(ctx context.Context, stream string, entries []rueidis.XRangeEntry) {
	if len(entries) == 0 {
		return
	}
	s := l.shop
	ids, users := make([]string, len(entries)), make([]string, len(entries))
	for n, entry := range entries {
		ids[n], users[n] = entry.ID, entry.FieldValues["u"]
	}
	s.reach(luaStreamRead)
	for s.Database.insertAll(ctx, s.Coupon, users, s.Clock.Now()) != nil {
		if s.pause(ctx, failing); ctx.Err() != nil {
			return
		}
	}
	s.reach(luaStreamStored)
	_ = s.Redis.Do(ctx, s.Redis.B().Xack().Key(stream).Group(luaStreamGroup).Id(ids...).Build()).Error() // otherwise they are stored again, and ignored
}
