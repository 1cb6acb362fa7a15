package designs

import (
	"context"
	"strings"

	"golang.org/x/sync/errgroup"

	"github.com/firstcome/firstcome/internal/point"
)

// list-kafka-lua: list-lock-kafka as its author plans it: Kafka carries the requests, in their order, and the consumer decides.
//
//	request:  RPUSH coupon:queue:{c} {c}:{u}; answer: queued
//	worker:   a thread for each {c} of SMEMBERS coupon:active:ids:
//	          lock:coupon:{c}; LPOP 500 coupon:queue:{c} |popped| produce all in order to one partition (an error: LPUSH); unlock
//	consumer: script: SISMEMBER coupon:issued:{c} {u}, GET coupon:count:{c} < limit, SADD, INCR |counted| INSERT |inserted|
//
// Keys: those of list-lock-kafka.
//
// Published: no parameter. Ours: 500 requests at once.
//
// Weak points: requests popped when the process dies are lost. A produce that failed in part goes back as a whole, so requests may be in the
// topic twice (the set sorts that out). A winner whose INSERT fails for long enough is lost, and the count stays. One consumer, one user at a time:
// the partition is the limit.
//
// Left open: whether the worker locks (it does: two that pop and produce at once would change the order) and how many it moves at once; what the
// consumer does with a user who is in the set (it inserts: their first try may have died before INSERT, and the unique key refuses
// a second row); with a value whose INSERT fails (it tries 10 times in all without a pause, then goes on); how a user learns the result (as with
// list-lock-kafka).
type listKafkaLua struct{ listed }

var listKafkaLuaContestant = Contestant{
	Name: "list-kafka-lua", About: "a list, moved to Kafka in order; the consumer runs the script and inserts",
	Points: []point.Point{listKafkaPopped, listKafkaCounted, listKafkaInserted},
	Kafka:  true,
	Open:   openList,
	New:    func(s *Shop) Design { return listKafkaLua{listed{s}} },
}

const (
	listKafkaPopped   point.Point = "list-kafka-lua:popped"   // the requests have left the list and are not in Kafka
	listKafkaCounted  point.Point = "list-kafka-lua:counted"  // Redis counts the user, the database does not have them
	listKafkaInserted point.Point = "list-kafka-lua:inserted" // the database has the user, Kafka gives them again
)

const listKafkaBatch = "500"

func (l listKafkaLua) Work(ctx context.Context) error {
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error { return l.shop.Kafka.consume(ctx, l.store) })
	g.Go(func() error { l.threads(ctx, l.move); return nil })
	return g.Wait()
}

// move is the thread of a coupon.
func (l listKafkaLua) move(ctx context.Context, coupon string) {
	s := l.shop
	list := "coupon:queue:" + coupon
	for ctx.Err() == nil {
		var moved int
		_, err := s.underLock(ctx, "lock:coupon:"+coupon, func() error {
			values, err := s.do(ctx, "LPOP", list, listKafkaBatch).AsStrSlice()
			if err != nil {
				return nil // the list is empty, or Redis is away
			}
			s.reach(listKafkaPopped)
			if err := s.Kafka.produce(ctx, values...); err != nil {
				return s.putBack(ctx, list, values...)
			}
			moved = len(values)
			return nil
		})
		switch {
		case err != nil:
			s.pause(ctx, failing)
		case moved == 0:
			s.pause(ctx, idle)
		}
	}
}

// store is the consumer's.
func (l listKafkaLua) store(ctx context.Context, value string) error {
	s := l.shop
	number, err := countUser(ctx, s, s.Coupon, strings.TrimPrefix(value, s.Coupon+":"))
	if err != nil || number == 0 {
		return err
	}
	s.reach(listKafkaCounted)
	if err := l.insert(ctx, value); err != nil {
		return err
	}
	s.reach(listKafkaInserted)
	return nil
}
