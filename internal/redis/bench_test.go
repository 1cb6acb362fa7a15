//go:build !check

package redis_test

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/redis"
	"github.com/firstcome/firstcome/test/services"
	"github.com/firstcome/firstcome/test/stage"
)

// BenchmarkClaim measures batches of claims that are issued. Its reference is a script that only counts and appends the same bytes. The difference is
// the cost of the rule, of the holders, and of reading the answer.
func BenchmarkClaim(b *testing.B) {
	for _, batch := range []int{64, 512} {
		b.Run(fmt.Sprintf("gate/batch=%d", batch), func(b *testing.B) {
			s := newShop(b, services.Redis.Server(b).URL(), firstcome.Unlimited)
			n := 0
			for b.Loop() {
				s.issue(n, batch)
				if n += batch; n%(1<<16) < batch {
					s.do("XTRIM", keysOf[2], "MAXLEN", "0")
				}
			}
			b.ReportMetric(float64(n)/b.Elapsed().Seconds(), "claims/s")
		})
		b.Run(fmt.Sprintf("reference/batch=%d", batch), func(b *testing.B) {
			client := connect(b, services.Redis.Server(b).URL())
			script := rueidis.NewLuaScript(`redis.call('INCRBY', KEYS[1], #ARGV) return redis.call('XADD', KEYS[2], 'MAXLEN', '~', '1000', '*', 'users', table.concat(ARGV, '\n'))`)
			n := 0
			for b.Loop() {
				users := make([]string, batch)
				for k := range users {
					users[k] = "user-" + strconv.Itoa(n+k)
				}
				stage.Must(b, script.Exec(b.Context(), client, []string{"n", "s"}, users).Error())
				n += batch
			}
			b.ReportMetric(float64(n)/b.Elapsed().Seconds(), "claims/s")
		})
	}
}

// BenchmarkNoticing measures what each batch pays for checking the server's run. It takes turns between the claim script and the same script without
// that check, at the same server and campaign. The ratio is that of the medians, because a disturbed batch says nothing.
func BenchmarkNoticing(b *testing.B) {
	for _, batch := range []int{1, 64, 256} {
		b.Run(fmt.Sprintf("batch=%d", batch), func(b *testing.B) {
			endless := func(o *redis.Options) { o.Backlog = -1 } // no limit, because no recorder runs
			s := newShop(b, services.Redis.Server(b).URL(), firstcome.Unlimited, endless)
			deaf := open(b, s.url, endless)
			deaf.Unnoticing()
			var took [2][]time.Duration
			n := 0
			for turn := 0; b.Loop(); turn++ {
				for k := range 2 {
					which := (turn + k) % 2
					users := crowd(n, batch)
					from := time.Now()
					decisions, err := []*node{s.gate, deaf}[which].Claim(b.Context(), "c", users)
					took[which] = append(took[which], time.Since(from))
					if err != nil || decisions[batch-1].Outcome != firstcome.Issued {
						b.Fatal(err)
					}
					if n += batch; n%(1<<16) < batch {
						s.do("XTRIM", keysOf[2], "MAXLEN", "0")
					}
				}
			}
			for _, all := range took {
				slices.Sort(all)
			}
			with, without := took[0][len(took[0])/2], took[1][len(took[1])/2]
			b.ReportMetric(float64(with.Nanoseconds())/1e3, "µs/batch")
			b.ReportMetric(float64(without.Nanoseconds())/1e3, "µs/batch-unnoticed")
			b.ReportMetric(float64(with)/float64(without), "ratio")
		})
	}
}

// BenchmarkHas asks for the coupons of a batch, as a Waiter does once for each claim that waits for the ledger.
func BenchmarkHas(b *testing.B) {
	const batch = 512
	s := newShop(b, services.Redis.Server(b).URL(), firstcome.Unlimited)
	var coupons []firstcome.Coupon
	for _, d := range s.issue(0, batch) {
		coupons = append(coupons, d.Coupon)
	}
	for b.Loop() {
		stage.Must(b, stage.Err(s.gate.Has(b.Context(), "c", coupons)))
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/batch, "ns/claim")
}

// BenchmarkHolder measures what a holder costs in Redis's memory, with ids of 8 bytes.
func BenchmarkHolder(b *testing.B) {
	s := newShop(b, services.Redis.Server(b, services.Redis.Fast()...).URL(), firstcome.Unlimited, func(o *redis.Options) { o.Backlog = -1 })
	const holders, batch = 1_000_000, 1000
	for b.Loop() {
		before := s.memory()
		for n := 0; n < holders; n += batch {
			users := make([]firstcome.UserID, batch)
			for k := range users {
				users[k] = firstcome.UserID(fmt.Sprintf("%08d", n+k))
			}
			stage.Must(b, stage.Err(s.gate.Claim(b.Context(), "c", users)))
		}
		s.do("XTRIM", keysOf[2], "MAXLEN", "0")
		b.ReportMetric(float64(s.memory()-before)/holders, "bytes/holder")
		s.do("DEL", keysOf[1])
		s.do("HSET", keysOf[0], "in_force", "0")
	}
}

// memory returns how many bytes Redis's data takes.
func (s *shop) memory() int64 {
	s.t.Helper()
	info, err := s.do("INFO", "memory").ToString()
	stage.Must(s.t, err)
	for line := range strings.Lines(info) {
		if text, ok := strings.CutPrefix(strings.TrimSpace(line), "used_memory_dataset:"); ok {
			n, err := strconv.ParseInt(text, 10, 64)
			stage.Must(s.t, err)
			return n
		}
	}
	s.t.Fatal("INFO does not say how much memory is used")
	return 0
}
