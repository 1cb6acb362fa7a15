package ledger_test

import (
	"fmt"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/flow"
)

// BenchmarkBatch issues coupons in batches of one size, synced; the time is a
// claim's, and ms/batch what a batch adds to the latency.
func BenchmarkBatch(b *testing.B) {
	for _, size := range []int{1, 32, 128, 512, 2048} {
		b.Run(fmt.Sprint(size), func(b *testing.B) {
			l := start(b, filepath.Join(b.TempDir(), "firstcome.db"), nil)
			create(b, l, "c", firstcome.Unlimited)
			users := make([]firstcome.UserID, size)
			batches := 0
			b.ResetTimer()
			for n := 0; n < b.N; n += size {
				for k := range users {
					users[k] = firstcome.UserID(fmt.Sprintf("user-%09d", n+k))
				}
				if _, err := l.Claim(b.Context(), "c", users); err != nil {
					b.Fatal(err)
				}
				batches++
			}
			b.ReportMetric(b.Elapsed().Seconds()*1000/float64(batches), "ms/batch")
		})
	}
}

// BenchmarkIssue issues coupons to concurrent callers of an Issuer, of one
// campaign and of many.
func BenchmarkIssue(b *testing.B) {
	for _, callers := range []int{64, 256} {
		for _, campaigns := range []int{1, 1000} {
			b.Run(fmt.Sprintf("%d callers/%d campaigns", callers, campaigns), func(b *testing.B) {
				issue(b, callers, campaigns)
			})
		}
	}
}

func issue(b *testing.B, callers, campaigns int) {
	l := start(b, filepath.Join(b.TempDir(), "firstcome.db"), nil)
	ids := make([]firstcome.CampaignID, campaigns)
	for n := range ids {
		ids[n] = firstcome.CampaignID(fmt.Sprint("c", n))
		create(b, l, ids[n], firstcome.Unlimited)
	}
	i := flow.NewIssuer(l, flow.Limits{})
	var asked atomic.Int64
	var all sync.WaitGroup
	b.ReportAllocs()
	b.ResetTimer()
	for range callers {
		all.Go(func() {
			for n := asked.Add(1); n <= int64(b.N); n = asked.Add(1) {
				d, err := i.Claim(b.Context(), ids[n%int64(campaigns)], firstcome.UserID(fmt.Sprintf("user-%09d", n)))
				if err != nil || d.Outcome != firstcome.Issued {
					b.Errorf("claim %d: %v, %v", n, d.Outcome, err)
					return
				}
			}
		})
	}
	all.Wait()
	b.ReportMetric(float64(b.N)/float64(i.Stats().Batches), "claims/batch")
}
