package ledger_test

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/ledger"
)

// TestATransactionWaitsForWhomTheOneBeforeAnswered has a crowd claim at ten campaigns,
// again within a millisecond, and then one of them alone. The clock stands still but when
// all wait, so what a transaction waits for is all that it shows.
func TestATransactionWaitsForWhomTheOneBeforeAnswered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var watched atomic.Bool
		committed, goOn := make(chan int), make(chan struct{})
		onCommit := func(jobs int, _ time.Duration, _ error) {
			if watched.Load() {
				committed <- jobs
				<-goOn
			}
		}
		l, _ := serve(t, file(t), ledger.Options{OnCommit: onCommit})
		const crowd = 10
		for n := range crowd {
			create(t, l, firstcome.CampaignID(fmt.Sprint("c", n)), firstcome.Unlimited)
		}
		watched.Store(true)
		var claims sync.WaitGroup
		asks := func(n, round int, after time.Duration) {
			claims.Go(func() {
				time.Sleep(after)
				if _, err := l.Gate.Claim(context.Background(), firstcome.CampaignID(fmt.Sprint("c", n)), []firstcome.UserID{firstcome.UserID(fmt.Sprint(round))}); err != nil {
					t.Error(err)
				}
			})
		}
		came := time.Now()
		wantCommit := func(jobs int, waited time.Duration) {
			t.Helper()
			if got := <-committed; got != jobs || time.Since(came) != waited {
				t.Errorf("a transaction of %d jobs after %v, want %d after %v", got, time.Since(came), jobs, waited)
			}
		}

		asks(0, 0, 0)
		wantCommit(1, 0)
		for n := range crowd {
			asks(n, 1, 0)
		}
		synctest.Wait() // all of them wait for the writer
		goOn <- struct{}{}
		wantCommit(crowd, 0)

		for n := range crowd {
			asks(n, 2, time.Duration(n)*100*time.Microsecond)
		}
		goOn <- struct{}{}
		wantCommit(crowd-1, 800*time.Microsecond)
		goOn <- struct{}{}
		wantCommit(1, 1900*time.Microsecond) // the last came at 900 µs, and a crowd was waited for in vain

		came = time.Now()
		asks(0, 3, 0)
		goOn <- struct{}{}
		wantCommit(1, 0)
		watched.Store(false)
		goOn <- struct{}{}
		claims.Wait()
	})
}
