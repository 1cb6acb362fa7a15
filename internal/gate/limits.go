package gate

import "time"

// MaxBatch is the most coupons that one call of a gate issues. So a larger entry of a journal was not written by a gate: it is
// garbage, and becomes one dead letter.
const MaxBatch = 10_000

const (
	// DefaultBatch is the default of the most users in one call. From BenchmarkBatch of internal/ledger: a batch of 512 takes 2.4 ms. A batch of
	// 2,048 costs a quarter less a claim, but every claim in it waits 7 ms.
	DefaultBatch = 512
	// DefaultTimeout is the default time-out of one call.
	DefaultTimeout = 5 * time.Second
)
