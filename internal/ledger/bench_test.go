package ledger_test

import (
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/issue"
	"github.com/firstcome/firstcome/test/services"
	"github.com/firstcome/firstcome/test/stage"
)

// BenchmarkBatch issues coupons in batches of one size, synced; the time is a
// claim's, and ms/batch what a batch adds to the latency.
func BenchmarkBatch(b *testing.B) {
	for _, size := range []int{1, 32, 128, 512, 2048} {
		b.Run(fmt.Sprint(size), func(b *testing.B) {
			l := start(b, file(b), nil)
			create(b, l, "c", firstcome.Unlimited)
			users := make([]firstcome.UserID, size)
			batches := 0
			b.ResetTimer()
			for n := 0; n < b.N; n += size {
				for k := range users {
					users[k] = firstcome.UserID(fmt.Sprintf("user-%09d", n+k))
				}
				stage.Must(b, stage.Err(l.Gate.Claim(b.Context(), "c", users)))
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
				issueFrom(b, callers, campaigns)
			})
		}
	}
}

func issueFrom(b *testing.B, callers, campaigns int) {
	l := start(b, file(b), nil)
	ids := make([]firstcome.CampaignID, campaigns)
	for n := range ids {
		ids[n] = firstcome.CampaignID(fmt.Sprint("c", n))
		create(b, l, ids[n], firstcome.Unlimited)
	}
	i := issue.NewIssuer(l.Gate, issue.Options{})
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

// BenchmarkServers issues coupons in batches of one size on a durable server, and
// besides inserts the same rows with one plain statement a transaction: the
// reference. The time is a claim's.
func BenchmarkServers(b *testing.B) {
	for _, kind := range []services.Kind{services.MariaDB, services.PostgreSQL} {
		server := kind.Server(b)
		for _, size := range []int{64, 512} {
			name, err := server.Database(b.Context())
			stage.Must(b, err)
			l := start(b, name, nil)
			b.Run(fmt.Sprintf("%s/claims/%d", kind, size), func(b *testing.B) {
				id := firstcome.CampaignID(fmt.Sprint("c", b.N))
				create(b, l, id, firstcome.Unlimited)
				b.ResetTimer()
				inBatches(b, size, func(users []firstcome.UserID) error {
					_, err := l.Gate.Claim(b.Context(), id, users)
					return err
				})
			})
			db := services.Beside(b, name)
			b.Run(fmt.Sprintf("%s/rows/%d", kind, size), func(b *testing.B) {
				number := 0
				campaign := fmt.Sprint("r", b.N)
				inBatches(b, size, func(users []firstcome.UserID) error {
					query, args := rows(kind, campaign, number, users)
					number += len(users)
					_, err := db.Exec(query, args...)
					return err
				})
			})
		}
	}
}

// inBatches calls do with batches of new users, b.N users in all or a few more.
func inBatches(b *testing.B, size int, do func([]firstcome.UserID) error) {
	users := make([]firstcome.UserID, size)
	batches := 0
	for n := 0; n < b.N; n += size {
		for k := range users {
			users[k] = firstcome.UserID(fmt.Sprintf("user-%09d", n+k))
		}
		stage.Must(b, do(users))
		batches++
	}
	b.ReportMetric(b.Elapsed().Seconds()*1000/float64(batches), "ms/batch")
}

// rows returns the insert of coupons for users, as one would write it.
func rows(kind services.Kind, campaign string, number int, users []firstcome.UserID) (query string, args []any) {
	values := make([]string, len(users))
	for n, user := range users {
		values[n] = "(?, ?, ?, ?, 1, 1, 1, 1)"
		if kind == services.PostgreSQL {
			values[n] = fmt.Sprintf("($%d, $%d, $%d, $%d, 1, 1, 1, 1)", 4*n+1, 4*n+2, 4*n+3, 4*n+4)
		}
		args = append(args, campaign, number+n+1, string(user), "0123456789ABCDEF")
	}
	return `INSERT INTO coupons (campaign_id, number, user_id, code, terms_version, issued_at, recorded_at, position)
		VALUES ` + strings.Join(values, ", "), args
}
