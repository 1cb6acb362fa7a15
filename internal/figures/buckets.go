package figures

import (
	"math"
	"time"
)

// Buckets count durations. Bucket n counts those above Bound(n-1) and up to Bound(n); the last bucket counts all longer ones.
type Buckets [36]uint64

// finest is the bound of the first bucket: half the duration of a claim that a node answers from memory.
const finest = 50 * time.Microsecond

// Bound returns the upper bound of a bucket. Each is √2 times the one before, so a percentile is exact to a fifth.
func Bound(n int) time.Duration {
	return time.Duration(float64(finest) * math.Pow(2, float64(n)/2))
}

// bounds has the bounds of all buckets but the last.
var bounds = func() (all [len(Buckets{}) - 1]time.Duration) {
	for n := range all {
		all[n] = Bound(n)
	}
	return all
}()

func bucketOf(d time.Duration) int {
	low, high := 0, len(bounds)
	for low < high {
		if middle := (low + high) / 2; d > bounds[middle] {
			low = middle + 1
		} else {
			high = middle
		}
	}
	return low
}

// Add adds the counts of others, bucket by bucket.
func (b *Buckets) Add(others Buckets) {
	for n := range b {
		b[n] += others[n]
	}
}

// Percentile returns the duration that a share (0 to 1) of all durations do not exceed, or nil if there are none. It takes durations as evenly spread
// within their bucket.
func (b *Buckets) Percentile(share float64) *time.Duration {
	all := uint64(0)
	for _, n := range b {
		all += n
	}
	if all == 0 {
		return nil
	}
	rank, below := share*float64(all), 0.0
	for n, count := range b {
		if count == 0 || below+float64(count) < rank {
			below += float64(count)
			continue
		}
		low := time.Duration(0)
		if n > 0 {
			low = Bound(n - 1)
		}
		at := low + time.Duration(float64(Bound(n)-low)*max(0, rank-below)/float64(count))
		return &at
	}
	last := Bound(len(b) - 1)
	return &last
}
