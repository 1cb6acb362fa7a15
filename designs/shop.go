package designs

import (
	"context"
	"crypto/rand"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/redis/rueidis"
	"golang.org/x/sys/unix"

	"github.com/firstcome/firstcome/internal/point"
)

// A Shop is what a process of a design has, and which coupon it issues.
type Shop struct {
	Coupon   string
	Limit    int64 // the quantity
	Redis    rueidis.Client
	Database *Database
	Kafka    *Topic // nil unless the contestant needs one
	Clock    Clock
	// Haste divides the published intervals and time-outs, for tests; 1 leaves them as they are.
	Haste time.Duration
	// Passed is called at each point, for tests: what it does happens at that instant. Nil in a run.
	Passed func(point.Point)

	mu    sync.Mutex // guards what follows
	asked time.Time  // when the rows were counted last
	full  bool       // as many rows as coupons were there
}

// A Clock is that of a process's machine.
type Clock struct {
	Ahead time.Duration // of the true time
	// Origin is added to the nanosecond clock. Processes of one machine share its origin, those of two machines have nothing to do with each other.
	Origin time.Duration
}

// Now returns the time of the machine.
func (c Clock) Now() time.Time { return time.Now().Add(c.Ahead) }

// Nano returns what System.nanoTime does in Java on Linux: the machine's monotonic clock, in nanoseconds since an origin that means nothing.
func (c Clock) Nano() int64 {
	var now unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_MONOTONIC, &now) // cannot fail: every machine has this clock
	return now.Nano() + int64(c.Origin)
}

// published returns an interval of a description, for this run.
func (s *Shop) published(d time.Duration) time.Duration { return d / max(s.Haste, 1) }

// pause waits for a published interval, or until ctx ends.
func (s *Shop) pause(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(s.published(d))
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

// OpenRedis connects to the Redis of a URL with the driver's default pool. It pipelines the commands of all requests on one connection if
// the contestant is one that says so; otherwise those that are sent at the same time.
func OpenRedis(url string, contestant Contestant) (rueidis.Client, error) {
	options, err := rueidis.ParseURL(url)
	if err != nil {
		return nil, err
	}
	options.DisableCache = true
	if contestant.Pipelined {
		options.AlwaysPipelining, options.PipelineMultiplex = true, -1
	}
	return rueidis.NewClient(options)
}

// reach passes a point of the design.
func (s *Shop) reach(p point.Point) {
	point.Reach(p)
	if s.Passed != nil {
		s.Passed(p)
	}
}

// key returns a Redis key of the coupon.
func (s *Shop) key(prefix string) string { return prefix + s.Coupon }

// do sends a Redis command.
func (s *Shop) do(ctx context.Context, words ...string) rueidis.RedisResult {
	return s.Redis.Do(ctx, s.Redis.B().Arbitrary(words...).Build())
}

// putBack puts values back to the front of a list, in their order, also when the process is about to end.
func (s *Shop) putBack(ctx context.Context, list string, values ...string) error {
	values = slices.Clone(values)
	slices.Reverse(values)
	return s.do(context.WithoutCancel(ctx), append([]string{"LPUSH", list}, values...)...).Error()
}

const (
	lockWait  = time.Second            // published
	lockLease = 3 * time.Second        // published
	lockRetry = 10 * time.Millisecond  // ours
	idle      = 10 * time.Millisecond  // ours: a worker without work asks again
	failing   = 100 * time.Millisecond // ours: a worker whose Redis or database failed asks again
)

// release deletes a lock if it is still the caller's.
var release = rueidis.NewLuaScript("if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) end return 0")

// underLock does something while it holds a lock in Redis: SET NX PX with a token, and a script that compares and deletes. It reports whether it got
// the lock in time. Nothing renews the lease.
func (s *Shop) underLock(ctx context.Context, lock string, do func() error) (held bool, err error) {
	token, lease := rand.Text(), strconv.FormatInt(max(1, s.published(lockLease).Milliseconds()), 10)
	for deadline := time.Now().Add(s.published(lockWait)); ; s.pause(ctx, lockRetry) {
		err := s.do(ctx, "SET", lock, token, "NX", "PX", lease).Error()
		if err == nil {
			break
		}
		if !rueidis.IsRedisNil(err) {
			return false, err
		}
		if ctx.Err() != nil || time.Now().After(deadline) {
			return false, ctx.Err()
		}
	}
	err = do()
	_ = release.Exec(context.WithoutCancel(ctx), s.Redis, []string{lock}, []string{token}).Error() // otherwise the lease ends
	return true, err
}

// countEvery is how often Result counts rows at most: many users ask at once, and once a coupon is gone it stays gone.
const countEvery = 200 * time.Millisecond

// result is what a user finds who asks what became of them: their coupon; that all are gone; otherwise they still wait.
func (s *Shop) result(ctx context.Context, user string) (Answer, error) {
	full, err := s.isFull(ctx) // before the look for the row, which may be the last
	if err != nil {
		return Answer{}, err
	}
	switch id, err := s.Database.find(ctx, s.Coupon, user); {
	case err != nil:
		return Answer{}, err
	case id > 0:
		return Answer{Outcome: Issued}, nil
	case full:
		return Answer{Outcome: SoldOut}, nil
	}
	return Answer{Outcome: Queued}, nil
}

// isFull reports whether there were as many rows as coupons when they were counted last.
func (s *Shop) isFull(ctx context.Context) (bool, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.full && time.Since(s.asked) >= s.published(countEvery) {
		count, err := s.Database.count(ctx, s.Coupon)
		if err != nil {
			return false, err
		}
		s.asked, s.full = time.Now(), count >= s.Limit
	}
	return s.full, nil
}
