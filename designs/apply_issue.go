package designs

import (
	"context"
	"strconv"
	"time"

	"github.com/redis/rueidis"

	"github.com/firstcome/firstcome/internal/point"
)

// apply-issue: asking and issuing apart, with a sorted set of requests between them.
//
//	request: SADD coupon:{c}:mark:{u} (there: duplicate), EXPIRE 3 s; INCR coupon:{c}:seq
//	         ZADD coupon:{c}:req ms*1,000 + seq mod 1,000 {u}; answer: accepted
//	worker:  each 200 ms, for each {c} of SMEMBERS coupon:active:
//	         INCRBY coupon:{c}:remain -500 (below 0: put back what is too much) |reserved| ZPOPMIN as many as were reserved |popped|; put back what was not popped
//	         for each user: SADD coupon:{c}:issued (0: remain +1, next) |marked| INSERT |stored|
//	           the row is there: SREM, remain +1
//	           any other error:  SREM, remain +1, ZADD score + 5,000 ms; the turn ends
//	         three errors in a row: the coupon pauses for 5 s
//
// Keys: coupon:active, the coupons that are open; coupon:{c}:mark:{u}, a user who has just asked; coupon:{c}:seq, a counter; coupon:{c}:req, requests by
// score; coupon:{c}:remain, what is left; coupon:{c}:issued, users who have a coupon.
//
// Published: 200 ms, 5,000 ms. Ours: 500 users a turn, a mark of 3 s, a pause of 5 s after three errors.
//
// Weak points: a user whose INSERT fails once goes 5 s back, behind others who asked later. Users popped in the same turn are gone, and so are the
// coupons that were reserved for them; that happens when the process dies there, too. The scores are of the processes' clocks. seq mod 1,000 starts again at 0
// within a millisecond. Users who get nothing are never told so while a coupon is reserved that nobody gets.
//
// Left open: what an error of Redis does (the turn ends); what a user who has a coupon is told who asks again (accepted: the worker's SADD finds them).
type applyIssue struct{ shop *Shop }

var applyIssueContestant = Contestant{
	Name: "apply-issue", About: "requests in a sorted set; a worker reserves, pops and inserts each 200 ms",
	Points: []point.Point{applyIssueReserved, applyIssuePopped, applyIssueMarked, applyIssueStored},
	Open: func(ctx context.Context, s *Shop) error {
		if err := s.do(ctx, "SET", "coupon:"+s.Coupon+":remain", strconv.FormatInt(s.Limit, 10)).Error(); err != nil {
			return err
		}
		return s.do(ctx, "SADD", "coupon:active", s.Coupon).Error()
	},
	New: func(s *Shop) Design { return applyIssue{s} },
}

const (
	applyIssueReserved point.Point = "apply-issue:reserved" // coupons are taken for nobody yet
	applyIssuePopped   point.Point = "apply-issue:popped"   // the requests are in no other place
	applyIssueMarked   point.Point = "apply-issue:marked"   // the user counts as issued, the database has no row
	applyIssueStored   point.Point = "apply-issue:stored"   // the database has the row
)

const (
	applyIssueEvery  = 200 * time.Millisecond // published
	applyIssueWant   = 500
	applyIssueMark   = 3 // seconds
	applyIssueLater  = 5_000 * 1_000
	applyIssueErrors = 3
	applyIssuePause  = 5 * time.Second
)

func (a applyIssue) Apply(ctx context.Context, user string) (Answer, error) {
	s := a.shop
	key := "coupon:" + s.Coupon
	mark := key + ":mark:" + user
	answers := s.Redis.DoMulti(ctx,
		s.Redis.B().Sadd().Key(mark).Member("1").Build(),
		s.Redis.B().Expire().Key(mark).Seconds(applyIssueMark).Nx().Build())
	if added, err := answers[0].AsInt64(); err != nil || added == 0 {
		return Answer{Outcome: Duplicate}, err
	}
	seq, err := s.do(ctx, "INCR", key+":seq").AsInt64()
	if err != nil {
		return Answer{}, err
	}
	score := s.Clock.Now().UnixMilli()*1_000 + seq%1_000
	return Answer{Outcome: Queued}, s.do(ctx, "ZADD", key+":req", strconv.FormatInt(score, 10), user).Error()
}

func (a applyIssue) Result(ctx context.Context, user string) (Answer, error) {
	return a.shop.result(ctx, user)
}

func (a applyIssue) Work(ctx context.Context) error {
	s := a.shop
	inRow, until := map[string]int{}, map[string]time.Time{} // by coupon: errors, and the end of the pause
	for ; ctx.Err() == nil; s.pause(ctx, applyIssueEvery) {
		coupons, _ := s.do(ctx, "SMEMBERS", "coupon:active").AsStrSlice()
		for _, coupon := range coupons {
			if time.Now().Before(until[coupon]) {
				continue
			}
			stored, failed := a.turn(ctx, coupon)
			if stored {
				inRow[coupon] = 0
			}
			if !failed {
				continue
			}
			if inRow[coupon]++; inRow[coupon] >= applyIssueErrors {
				inRow[coupon], until[coupon] = 0, time.Now().Add(s.published(applyIssuePause))
			}
		}
	}
	return nil
}

// turn issues to the first users, and reports whether it stored any and whether it ended by an error that may pass.
func (a applyIssue) turn(ctx context.Context, coupon string) (stored, failed bool) {
	s := a.shop
	key := "coupon:" + coupon
	// remain puts coupons back.
	remain := func(n int64) error { return s.do(ctx, "INCRBY", key+":remain", strconv.FormatInt(n, 10)).Error() }
	left, err := s.do(ctx, "INCRBY", key+":remain", strconv.Itoa(-applyIssueWant)).AsInt64()
	if err != nil {
		return false, false
	}
	excess := min(max(0, -left), applyIssueWant)
	if excess > 0 && remain(excess) != nil || excess == applyIssueWant {
		return false, false
	}
	s.reach(applyIssueReserved)
	reserved := applyIssueWant - excess
	popped, err := s.do(ctx, "ZPOPMIN", key+":req", strconv.FormatInt(reserved, 10)).AsZScores()
	if err != nil {
		return false, false
	}
	s.reach(applyIssuePopped)
	if unused := reserved - int64(len(popped)); unused > 0 && remain(unused) != nil {
		return false, false
	}
	for _, request := range popped {
		added, err := s.do(ctx, "SADD", key+":issued", request.Member).AsInt64()
		if err != nil {
			return stored, false
		}
		if added == 0 {
			if remain(1) != nil {
				return stored, false
			}
			continue
		}
		s.reach(applyIssueMarked)
		err = s.Database.insert(ctx, s.Database, coupon, request.Member, s.Clock.Now())
		if err == nil {
			stored = true
			s.reach(applyIssueStored)
			continue
		}
		retryable := !isDuplicate(err)
		if a.undo(ctx, key, request, retryable) != nil || retryable {
			return stored, retryable
		}
	}
	return stored, false
}

// undo takes back what a turn did for a user whose INSERT failed, and has them wait again if that may pass.
func (a applyIssue) undo(ctx context.Context, key string, request rueidis.ZScore, again bool) error {
	s := a.shop
	ctx = context.WithoutCancel(ctx)
	if err := s.do(ctx, "SREM", key+":issued", request.Member).Error(); err != nil {
		return err
	}
	if err := s.do(ctx, "INCR", key+":remain").Error(); err != nil || !again {
		return err
	}
	return s.do(ctx, "ZADD", key+":req", strconv.FormatInt(int64(request.Score)+applyIssueLater, 10), request.Member).Error()
}
