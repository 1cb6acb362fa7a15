package designs

import (
	"context"
	"sync"
	"time"

	"github.com/redis/rueidis"
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

// Nano returns what System.nanoTime stands for in Java: nanoseconds since an origin that means nothing.
func (c Clock) Nano() int64 { return time.Now().UnixNano() + int64(c.Origin) }

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

// key returns a Redis key of the coupon.
func (s *Shop) key(prefix string) string { return prefix + s.Coupon }

// do sends a Redis command.
func (s *Shop) do(ctx context.Context, words ...string) rueidis.RedisResult {
	return s.Redis.Do(ctx, s.Redis.B().Arbitrary(words...).Build())
}

// countEvery is how often Result counts rows at most: many users ask at once, and once a coupon is gone it stays gone.
const countEvery = 200 * time.Millisecond

// result is what a user finds who asks what became of them: their coupon; that all are gone; else they still wait.
func (s *Shop) result(ctx context.Context, user string) (Answer, error) {
	switch id, err := s.Database.find(ctx, s.Coupon, user); {
	case err != nil:
		return Answer{}, err
	case id > 0:
		return Answer{Outcome: Issued}, nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.full && time.Since(s.asked) >= countEvery {
		count, err := s.Database.count(ctx, s.Coupon)
		if err != nil {
			return Answer{}, err
		}
		s.asked, s.full = time.Now(), count >= s.Limit
	}
	if s.full {
		return Answer{Outcome: SoldOut}, nil
	}
	return Answer{Outcome: Queued}, nil
}
