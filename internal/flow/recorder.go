package flow

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cenkalti/backoff/v5"
	"github.com/sony/gobreaker/v2"
	"golang.org/x/time/rate"

	"github.com/firstcome/firstcome"
)

// A Keeper is a ledger as a Recorder needs it. Both methods may be repeated: the
// same given again is the same as once.
type Keeper interface {
	// Record keeps coupons of a campaign, all or none. ErrRefused says that it never
	// takes all of these, ErrRowLocked that it did not; after any other error it is unknown whether it did.
	Record(ctx context.Context, id firstcome.CampaignID, coupons []firstcome.Coupon) (Settled, error)
	// Bury keeps what Record refuses, and what cannot be read, as dead letters.
	Bury(ctx context.Context, id firstcome.CampaignID, letters []DeadLetter) (Settled, error)
}

// RecorderLimits bound a Recorder. The zero value of a field means its default.
type RecorderLimits struct {
	Ledger   time.Duration // how long a call of the ledger may take; default 30s
	Wait     time.Duration // the longest wait between two calls that fail, half of it either way; default 2s
	Failures int           // in a row, that open the breaker; default 5
	Probe    time.Duration // how long an open breaker lets no call through; default 1s
	Rows     int           // coupons a second, for a database that others use too; default 0: no limit
	// OnRecord, if not nil, is told of each call of the ledger.
	OnRecord func(Recording)
}

const (
	// A call that takes this long is as good as lost: 512 coupons take milliseconds.
	// It is longer than a lock that a database waits for, so that its own answer comes first.
	defaultLedger = 30 * time.Second
	// The ledger is used again within three seconds of its return, and while it is
	// away each node knocks about once a second.
	defaultWait     = 2 * time.Second
	defaultFailures = 5
	defaultProbe    = time.Second
	firstWait       = 20 * time.Millisecond
)

// A Recorder drains what gates have issued into the ledger: it retries for ever,
// skips nothing, and buries the single coupon that the ledger never takes.
// Make one with NewRecorder.
type Recorder struct {
	source  Source
	keeper  Keeper
	limits  RecorderLimits
	breaker *gobreaker.CircuitBreaker[Settled]
	rows    *rate.Limiter // nil: no limit
	stats   struct {
		coupons, batches, retries, letters atomic.Int64
		failing                            atomic.Pointer[error]
	}

	mu   sync.Mutex                   // guards what follows
	paid map[firstcome.CampaignID]int // coupons that waited for their turn in vain: see throttle
}

// A Recording is one call of the ledger by a Recorder.
type Recording struct {
	Campaign firstcome.CampaignID
	Coupons  int
	Letters  int       // dead letters
	Oldest   time.Time // when the first of the coupons was issued, by the gate's time
	Took     time.Duration
	Err      error // nil, ErrRefused, or why it will be repeated
}

// RecorderStats are a Recorder's counters since its start, and how it fares now.
type RecorderStats struct {
	Coupons int64  // recorded or found recorded
	Batches int64  // settled
	Retries int64  // calls repeated
	Letters int64  // dead letters
	Breaker string // closed, half-open or open
	// Err is why the last call failed, or nil if it did not.
	Err error
}

// NewRecorder returns a Recorder of a source into a keeper.
func NewRecorder(source Source, keeper Keeper, limits RecorderLimits) *Recorder {
	limits.Ledger = cmp.Or(limits.Ledger, defaultLedger)
	limits.Wait = cmp.Or(limits.Wait, defaultWait)
	limits.Failures = cmp.Or(limits.Failures, defaultFailures)
	limits.Probe = cmp.Or(limits.Probe, defaultProbe)
	r := &Recorder{source: source, keeper: keeper, limits: limits, paid: map[firstcome.CampaignID]int{}}
	r.breaker = gobreaker.NewCircuitBreaker[Settled](gobreaker.Settings{
		Name: "ledger", MaxRequests: 1, Timeout: limits.Probe,
		ReadyToTrip:  func(c gobreaker.Counts) bool { return int(c.ConsecutiveFailures) >= limits.Failures },
		IsSuccessful: func(err error) bool { return err == nil || answers(err) },
		IsExcluded:   func(err error) bool { return errors.Is(err, context.Canceled) },
	})
	if limits.Rows > 0 {
		r.rows = rate.NewLimiter(rate.Limit(limits.Rows), limits.Rows)
	}
	return r
}

// answers tells whether an error is the ledger's own answer: then it is well.
func answers(err error) bool {
	return errors.Is(err, ErrRefused) || errors.Is(err, ErrRowLocked) || errors.Is(err, firstcome.ErrGateMismatch)
}

// Run records until ctx ends. A batch that is under way then comes again, here or
// at another node.
func (r *Recorder) Run(ctx context.Context) error {
	wait := r.backOff()
	for {
		started := time.Now()
		err := r.source.Drain(ctx, r.settle)
		if ctx.Err() != nil {
			return nil
		}
		r.failed(fmt.Errorf("drain the journal: %w", cmp.Or(err, errEnded)))
		if time.Since(started) > r.limits.Wait {
			wait.Reset()
		}
		r.stats.retries.Add(1)
		select {
		case <-time.After(wait.NextBackOff()):
		case <-ctx.Done():
			return nil
		}
	}
}

var errEnded = errors.New("it ended")

// Stats returns the counters.
func (r *Recorder) Stats() RecorderStats {
	s := RecorderStats{
		Coupons: r.stats.coupons.Load(), Batches: r.stats.batches.Load(),
		Retries: r.stats.retries.Load(), Letters: r.stats.letters.Load(), Breaker: r.breaker.State().String(),
	}
	if err := r.stats.failing.Load(); err != nil {
		s.Err = *err
	}
	return s
}

func (r *Recorder) failed(err error) { r.stats.failing.Store(&err) }

// backOff returns the waits between calls that fail: from 20 ms to the longest,
// twice as long each time, half of it either way so that nodes do not keep step.
func (r *Recorder) backOff() *backoff.ExponentialBackOff {
	return &backoff.ExponentialBackOff{
		InitialInterval: firstWait, MaxInterval: r.limits.Wait, Multiplier: 2, RandomizationFactor: 0.5,
	}
}

// settle is the Sink: it returns nil when all of the batch is durable.
func (r *Recorder) settle(ctx context.Context, b Batch) (Settled, error) {
	var settled Settled
	letters := make([]DeadLetter, len(b.Garbage))
	for n, g := range b.Garbage {
		letters[n] = DeadLetter{Garbage: g, Cause: g.Cause}
	}
	if len(letters) > 0 {
		s, err := r.bury(ctx, b.Campaign, letters)
		if err != nil {
			return Settled{}, err
		}
		settled = s
	}
	if len(b.Coupons) > 0 || len(letters) == 0 {
		if err := r.throttle(ctx, b.Campaign, len(b.Coupons)); err != nil {
			return Settled{}, err
		}
		s, err := r.record(ctx, b.Campaign, b.Coupons)
		if err != nil {
			r.credit(b.Campaign, len(b.Coupons))
			return Settled{}, err
		}
		settled = settled.and(s)
	}
	r.stats.batches.Add(1)
	return settled, nil
}

// and returns what is settled when b was after s, with what changed in both. If
// something changed in between, b is all that can be told, and its Since says so.
func (s Settled) and(b Settled) Settled {
	b.Twice = slices.Concat(s.Twice, b.Twice)
	switch {
	case b.Through < s.Through: // it is about nothing
		s.Twice = b.Twice
		return s
	case b.Since > s.Order:
		return b
	}
	b.Unrecorded, b.Recorded = append(without(s.Unrecorded, b.Recorded), b.Unrecorded...), append(without(s.Recorded, b.Unrecorded), b.Recorded...)
	b.Since = s.Since
	return b
}

// without returns those of numbers that are not among others, in a slice of its own.
func without(numbers, others []int64) []int64 {
	if len(others) == 0 {
		return slices.Clone(numbers)
	}
	out := make(map[int64]bool, len(others))
	for _, n := range others {
		out[n] = true
	}
	return slices.DeleteFunc(slices.Clone(numbers), func(n int64) bool { return out[n] })
}

// throttle waits until the ledger may be given so many coupons of a campaign. Those that
// waited and were not recorded do not wait again: else a campaign that somebody holds would
// take the turns of all others.
func (r *Recorder) throttle(ctx context.Context, id firstcome.CampaignID, coupons int) error {
	if r.rows == nil {
		return nil
	}
	r.mu.Lock()
	coupons -= r.paid[id]
	delete(r.paid, id)
	r.mu.Unlock()
	for coupons > 0 {
		some := min(coupons, r.rows.Burst())
		if err := r.rows.WaitN(ctx, some); err != nil {
			return err
		}
		coupons -= some
	}
	return nil
}

// credit notes that coupons waited for their turn and were not recorded.
func (r *Recorder) credit(id firstcome.CampaignID, coupons int) {
	if r.rows != nil {
		r.mu.Lock()
		r.paid[id] = coupons
		r.mu.Unlock()
	}
}

// record records coupons in their order. What the ledger refuses is halved until
// the one that it refuses is alone, which is buried.
func (r *Recorder) record(ctx context.Context, id firstcome.CampaignID, coupons []firstcome.Coupon) (Settled, error) {
	about := Recording{Campaign: id, Coupons: len(coupons)}
	if len(coupons) > 0 {
		about.Oldest = coupons[0].IssuedAt
	}
	settled, err := r.keep(ctx, about, func(ctx context.Context) (Settled, error) {
		return r.keeper.Record(ctx, id, coupons)
	})
	switch {
	case err == nil:
		r.stats.coupons.Add(int64(len(coupons)))
		return settled, nil
	case !errors.Is(err, ErrRefused) || len(coupons) == 0:
		return Settled{}, err
	case len(coupons) == 1:
		return r.bury(ctx, id, []DeadLetter{{Coupon: coupons[0], Cause: err.Error()}})
	}
	half := len(coupons) / 2
	first, err := r.record(ctx, id, coupons[:half])
	if err != nil {
		return Settled{}, err
	}
	second, err := r.record(ctx, id, coupons[half:])
	return first.and(second), err
}

func (r *Recorder) bury(ctx context.Context, id firstcome.CampaignID, letters []DeadLetter) (Settled, error) {
	settled, err := r.keep(ctx, Recording{Campaign: id, Letters: len(letters)}, func(ctx context.Context) (Settled, error) {
		return r.keeper.Bury(ctx, id, letters)
	})
	if err == nil {
		r.stats.letters.Add(int64(len(letters)))
	}
	return settled, err
}

// keep calls the ledger until it answers, however long that is, or ctx ends. That
// another node has to record the campaign, or that nobody can at present, is an answer too.
func (r *Recorder) keep(ctx context.Context, about Recording, call func(context.Context) (Settled, error)) (Settled, error) {
	attempt := func() (Settled, error) {
		settled, err := r.breaker.Execute(func() (Settled, error) { return r.try(ctx, about, call) })
		if answers(err) {
			err = backoff.Permanent(err)
		}
		return settled, err
	}
	return backoff.Retry(ctx, attempt, backoff.WithBackOff(r.backOff()), backoff.WithMaxElapsedTime(0),
		backoff.WithNotify(func(err error, _ time.Duration) {
			if !errors.Is(err, gobreaker.ErrOpenState) && !errors.Is(err, gobreaker.ErrTooManyRequests) {
				r.stats.retries.Add(1)
			}
		}))
}

// try calls the ledger once.
func (r *Recorder) try(ctx context.Context, about Recording, call func(context.Context) (Settled, error)) (Settled, error) {
	ctx, cancel := context.WithTimeout(ctx, r.limits.Ledger)
	defer cancel()
	started := time.Now()
	settled, err := call(ctx)
	about.Took, about.Err = time.Since(started), err
	if r.limits.OnRecord != nil {
		r.limits.OnRecord(about)
	}
	if err == nil || errors.Is(err, ErrRefused) {
		r.stats.failing.Store(nil)
	} else {
		r.failed(err)
	}
	if errors.Is(err, ErrRowLocked) {
		r.stats.retries.Add(1) // the source gives it again
	}
	return settled, err
}
