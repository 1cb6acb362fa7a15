package record

import (
	"cmp"
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sony/gobreaker/v2"
	"golang.org/x/time/rate"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/gate"
)

// A Keeper is the part of a ledger that a Recorder needs. Both methods may be repeated with the same batch, which changes nothing more.
type Keeper interface {
	// Record keeps the coupons of a batch, all or none. ErrRefused means that the ledger never takes all of them, and ErrRowLocked that it took none.
	// After any other error it is unknown whether it took them.
	Record(ctx context.Context, b Batch) (Result, error)
	// Bury keeps coupons that Record refuses, with the cause, and garbage, as dead letters.
	Bury(ctx context.Context, b Batch, cause string) (Result, error)
}

// Options bound a Recorder. The zero value of a field means its default.
type Options struct {
	Ledger   time.Duration // time-out of a call of the ledger; default 30s
	Wait     time.Duration // the longest rest of a campaign that failed, plus or minus half of it; default 2s
	Failures int           // failures in a row that open the breaker; default 5
	Probe    time.Duration // how long an open breaker lets no call through; default 1s
	Rows     int           // the most coupons a second, for a database that other programs use too; 0 means no limit
	Workers  int           // campaigns drained at the same time; default 4. As many again drain campaigns that failed, and one drains campaigns whose row was locked
	Patience time.Duration // how long numbers below recorded numbers may be missing before they count as lost by the source; default 10s
	// Holes, if not nil, returns coupons that the source has lost. A relay has no Holes, because its coupons may be anywhere on their way to the
	// ledger.
	Holes Holes
	// OnAlarm, if not nil, gets what an operator should know: campaigns that cannot be drained, and coupons that were recorded from the gate's
	// holders. The same alarm comes about once a minute.
	OnAlarm func(firstcome.CampaignID, error)
	// OnCall, if not nil, is called after each call of the ledger.
	OnCall func(LedgerCall)
	// OnRecorded, if not nil, gets the coupons of a batch that are all in the ledger now: see Waiter.Recorded. It is not called for a batch of which
	// only some are.
	OnRecorded func(firstcome.CampaignID, []firstcome.Coupon)
}

const (
	// A batch of 2,000 coupons takes some 20 ms (see internal/redis/consumer.go), so a call that takes this long has failed. A database's own lock time-out is
	// shorter, so its error comes first.
	defaultLedger = 30 * time.Second
	// With these, each node probes a ledger that is down about once a second.
	defaultFailures = 5
	defaultProbe    = time.Second
)

// A Recorder drains coupons from a Source into the ledger. It retries forever, skips no coupon, and buries the single coupon that the ledger never
// takes. Make one with NewRecorder.
type Recorder struct {
	source  Source
	keeper  Keeper
	again   *retries
	alarms  Alarms
	options Options
	breaker *gobreaker.CircuitBreaker[Result]
	rows    *rate.Limiter // nil if there is no limit
	stats   struct{ coupons, batches, retries, letters, late atomic.Int64 }

	mu        sync.Mutex                   // guards what follows
	paid      map[firstcome.CampaignID]int // coupons that passed throttle and were not recorded
	campaigns map[firstcome.CampaignID]*campaignState
}

// A LedgerCall is one call of the ledger by a Recorder.
type LedgerCall struct {
	Campaign firstcome.CampaignID
	Coupons  int
	Letters  int       // dead letters
	Late     int64     // coupons whose numbers were already lost: see Result.Lost
	Oldest   time.Time // when the first of the coupons was issued, by the gate's clock
	Took     time.Duration
	Err      error // nil, ErrRefused, or why the call will be repeated
}

// Stats are a Recorder's counters since its start, and its current state.
type Stats struct {
	Coupons int64  // coupons recorded, or found recorded
	Batches int64  // batches drained
	Retries int64  // calls repeated
	Letters int64  // dead letters
	Late    int64  // coupons whose numbers were already lost, counted at each try: see Result.Lost
	Breaker string // "closed", "half-open" or "open"
}

// NewRecorder returns a Recorder of a source into a keeper.
func NewRecorder(source Source, keeper Keeper, limits Options) *Recorder {
	limits.Ledger = cmp.Or(limits.Ledger, defaultLedger)
	limits.Wait = cmp.Or(limits.Wait, defaultWait)
	limits.Failures = cmp.Or(limits.Failures, defaultFailures)
	limits.Probe = cmp.Or(limits.Probe, defaultProbe)
	limits.Workers = cmp.Or(limits.Workers, defaultWorkers)
	limits.Patience = cmp.Or(limits.Patience, defaultPatience)
	r := &Recorder{
		source: source, keeper: keeper, again: newRetries(limits.Wait), alarms: Alarms{On: limits.OnAlarm}, options: limits,
		paid: map[firstcome.CampaignID]int{}, campaigns: map[firstcome.CampaignID]*campaignState{},
	}
	r.breaker = gobreaker.NewCircuitBreaker[Result](gobreaker.Settings{
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

// answers reports whether an error is the ledger's own answer, which means that the ledger is well.
func answers(err error) bool {
	return errors.Is(err, ErrRefused) || errors.Is(err, ErrRowLocked) || errors.Is(err, ErrRebuilding) || errors.Is(err, gate.ErrLedgerRolledBack) || errors.Is(err, firstcome.ErrGateMismatch)
}

// Stats returns the counters.
func (r *Recorder) Stats() Stats {
	return Stats{
		Coupons: r.stats.coupons.Load(), Batches: r.stats.batches.Load(),
		Retries: r.stats.retries.Load(), Letters: r.stats.letters.Load(), Late: r.stats.late.Load(), Breaker: r.breaker.State().String(),
	}
}
