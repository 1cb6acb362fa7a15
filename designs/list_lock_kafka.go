package designs

import (
	"context"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/redis/rueidis"
	"golang.org/x/sync/errgroup"

	"github.com/firstcome/firstcome/internal/point"
)

// list-lock-kafka: a list is the queue, a lock and a script decide, Kafka carries the winners to the database.
//
//	request:  RPUSH coupon:queue:{c} {c}:{u}; answer: queued
//	worker:   each 2 s SMEMBERS coupon:active:ids; a thread for each {c} that has none:
//	          BLPOP coupon:queue:{c} (5 s) |popped| lock:coupon:{c} (waits 1 s, lease 3 s; not had: LPUSH, not counted)
//	          script: SISMEMBER coupon:issued:{c} {u}, GET coupon:count:{c} < limit, SADD, INCR |counted| produce; unlock
//	          an error: LPUSH, at most 3 times, counted in the process's memory
//	consumer: |consumed| INSERT
//
// Keys: coupon:queue:{c}, requests; coupon:active:ids, the coupons that are open; lock:coupon:{c}; coupon:issued:{c} and coupon:count:{c}, who has
// a coupon and how many have (both names ours).
//
// Published: 2 s, 5 s, 1 s, 3 s, 3 times.
//
// Weak points: a winner whose INSERT fails is lost, and the count stays: 99 of 100. So is one whose produce fails: the retry finds them in the
// set. A user popped when the process dies is lost; a process that dies forgets how often it tried. One user at a time, with a lock each. Two
// processes pop before they lock, so neighbours may change places.
//
// Left open: how a user learns the result (the row, or that the count is at the limit without them; in the description only Redis knows that); what the
// consumer does with a value whose INSERT fails (it tries 10 times in all without a pause, as Spring's Kafka does without settings, then goes on); how
// the lock waits (each 10 ms); when it commits (after the values of one poll).
type listLockKafka struct{ listed }

var listLockKafkaContestant = Contestant{
	Name: "list-lock-kafka", About: "a list, a lock and a script for each user; Kafka carries the winners to the database",
	Points: []point.Point{listLockPopped, listLockCounted, listLockConsumed},
	Kafka:  true,
	Open:   openList,
	New:    func(s *Shop) Design { return listLockKafka{listed{s}} },
}

const (
	listLockPopped   point.Point = "list-lock-kafka:popped"   // the user has left the list and is not counted
	listLockCounted  point.Point = "list-lock-kafka:counted"  // Redis counts the user, Kafka does not have them
	listLockConsumed point.Point = "list-lock-kafka:consumed" // Kafka gave the user, the database does not have them
)

const (
	listLockLook  = 2 * time.Second // published
	listLockBlock = 5 * time.Second // published
	listLockTries = 3               // published
)

func (l listLockKafka) Work(ctx context.Context) error {
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error { return l.shop.Kafka.consume(ctx, l.store) })
	g.Go(func() error { l.threads(ctx, l.serve); return nil })
	return g.Wait()
}

// serve is the thread of a coupon.
func (l listLockKafka) serve(ctx context.Context, coupon string) {
	s := l.shop
	list, tried := "coupon:queue:"+coupon, map[string]int{}
	for ctx.Err() == nil {
		popped, err := s.Redis.Do(ctx, s.Redis.B().Blpop().Key(list).Timeout(s.published(listLockBlock).Seconds()).Build()).AsStrSlice()
		if err != nil { // the list is empty, or Redis is away
			if !rueidis.IsRedisNil(err) {
				s.pause(ctx, failing)
			}
			continue
		}
		value := popped[1]
		s.reach(listLockPopped)
		held, err := s.underLock(ctx, "lock:coupon:"+coupon, func() error { return l.issue(ctx, coupon, value) })
		switch {
		case err == nil && held:
			delete(tried, value)
		case err == nil:
			_ = s.putBack(ctx, list, value) // if that fails, the user is lost
		case tried[value] < listLockTries:
			tried[value]++
			_ = s.putBack(ctx, list, value)
		default:
			delete(tried, value)
		}
	}
}

// issue is for a caller that holds the lock.
func (l listLockKafka) issue(ctx context.Context, coupon, value string) error {
	number, err := countUser(ctx, l.shop, coupon, strings.TrimPrefix(value, coupon+":"))
	if err != nil || number <= 0 {
		return err
	}
	l.shop.reach(listLockCounted)
	return l.shop.Kafka.produce(ctx, value)
}

// store is the consumer's.
func (l listLockKafka) store(ctx context.Context, value string) error {
	l.shop.reach(listLockConsumed)
	return l.insert(ctx, value)
}

// listed is what list-lock-kafka and list-kafka-lua share: the list, and how a user learns the result.
type listed struct{ shop *Shop }

func openList(ctx context.Context, s *Shop) error {
	return s.do(ctx, "SADD", "coupon:active:ids", s.Coupon).Error()
}

func (l listed) Apply(ctx context.Context, user string) (Answer, error) {
	return Answer{Outcome: Queued}, l.shop.do(ctx, "RPUSH", l.shop.key("coupon:queue:"), l.shop.Coupon+":"+user).Error()
}

func (l listed) Result(ctx context.Context, user string) (Answer, error) {
	s := l.shop
	counted, err := s.do(ctx, "GET", s.key("coupon:count:")).AsInt64()
	if err != nil && !rueidis.IsRedisNil(err) {
		return Answer{}, err
	}
	member, err := s.do(ctx, "SISMEMBER", s.key("coupon:issued:"), user).AsBool()
	if err != nil {
		return Answer{}, err
	}
	switch id, err := s.Database.find(ctx, s.Coupon, user); {
	case err != nil:
		return Answer{}, err
	case id > 0:
		return Answer{Outcome: Issued}, nil
	case counted >= s.Limit && !member:
		return Answer{Outcome: SoldOut}, nil
	}
	return Answer{Outcome: Queued}, nil
}

// threads starts a thread for each open coupon, and returns when all have ended.
func (l listed) threads(ctx context.Context, serve func(ctx context.Context, coupon string)) {
	var all sync.WaitGroup
	defer all.Wait()
	started := map[string]bool{}
	for ; ctx.Err() == nil; l.shop.pause(ctx, listLockLook) {
		coupons, _ := l.shop.do(ctx, "SMEMBERS", "coupon:active:ids").AsStrSlice()
		for _, coupon := range coupons {
			if !started[coupon] {
				started[coupon] = true
				all.Go(func() { serve(ctx, coupon) })
			}
		}
	}
}

// insert stores the winner of a value. A row that is there is of an earlier try.
func (l listed) insert(ctx context.Context, value string) error {
	s := l.shop
	err := s.Database.insert(ctx, s.Database, s.Coupon, strings.TrimPrefix(value, s.Coupon+":"), s.Clock.Now())
	if isDuplicate(err) {
		return nil
	}
	return err
}

// countScript counts a user as a winner.
//
// KEYS: the set of winners, their count. ARGV: user, limit. Returns the user's number; 0: sold out; -1: the user is in the set.
var countScript = rueidis.NewLuaScript(`
if redis.call('SISMEMBER', KEYS[1], ARGV[1]) == 1 then return -1 end
if tonumber(redis.call('GET', KEYS[2]) or '0') >= tonumber(ARGV[2]) then return 0 end
redis.call('SADD', KEYS[1], ARGV[1])
return redis.call('INCR', KEYS[2])`)

func countUser(ctx context.Context, s *Shop, coupon, user string) (number int64, err error) {
	return countScript.Exec(ctx, s.Redis, []string{"coupon:issued:" + coupon, "coupon:count:" + coupon}, []string{user, strconv.FormatInt(s.Limit, 10)}).AsInt64()
}
