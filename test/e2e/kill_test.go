//go:build linux

package e2e_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/firstcome/firstcome/client"
	"github.com/firstcome/firstcome/test/seed"
)

// A place is where clients find the server that is up now.
type place struct {
	mu    sync.Mutex // guards what follows
	calls *client.Client
	moved chan struct{} // closed when another server is up
}

func newPlace(p *process) *place { return &place{calls: p.calls, moved: make(chan struct{})} }

func (l *place) now() (calls *client.Client, moved <-chan struct{}) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.calls, l.moved
}

func (l *place) move(p *process) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.calls = p.calls
	close(l.moved)
	l.moved = make(chan struct{})
}

// insist has new users claim until ctx ends. Who gets no answer asks the next
// server, until there is one; and now and then somebody asks who has been answered.
func (c *crowd) insist(ctx context.Context, l *place) {
	for ctx.Err() == nil {
		user := c.user()
		for {
			calls, moved := l.now()
			_, err := c.claim(context.WithoutCancel(ctx), calls, user)
			if err == nil {
				break
			}
			if isProblem(err) != nil {
				continue // it is up
			}
			<-moved
		}
		c.mu.Lock()
		before := c.holders[c.random.IntN(len(c.holders))]
		c.mu.Unlock()
		calls, _ := l.now()
		_, _ = c.claim(context.WithoutCancel(ctx), calls, before) // the verdict judges it
	}
}

// TestF21F55AServerKilledInMidCommitKeepsWhatItAnswered kills the server again
// and again while it issues. A kill counts if a coupon was answered within the
// 50 ms before it and stock was left after it.
func TestF21F55AServerKilledInMidCommitKeepsWhatItAnswered(t *testing.T) {
	const clients, fresh = 16, 50 * time.Millisecond
	kills, random := rounds(20, 200), seed.Rand(t)
	p := serve(t, launch{})
	p.create("spring", 10_000_000)
	crowd, at := newCrowd("spring"), newPlace(p)
	claiming, stop := context.WithCancel(t.Context())
	defer stop()
	var all sync.WaitGroup
	for range clients {
		all.Go(func() { crowd.insist(claiming, at) })
	}
	counted, tried := 0, 0
	for ; counted < kills && tried < 3*kills; tried++ {
		crowd.awaitAnswers(t, 100+random.IntN(900))
		// Commits take some milliseconds: any instant of one is as good.
		<-time.After(time.Duration(random.IntN(5000)) * time.Microsecond)
		_, last, _ := crowd.answered()
		if time.Since(last) < fresh {
			counted++
		}
		p.kill()
		p = serve(t, launch{dir: p.dir})
		at.move(p)
		if left := remaining(t, p, "spring"); left == 0 {
			t.Fatal("no stock is left, so the kill does not count")
		}
	}
	stop()
	all.Wait()
	if counted < kills {
		t.Errorf("of %d kills only %d came while coupons were issued, want %d", tried, counted, kills)
	}
	crowd.findAgain(p)
	crowd.verdict(p)
	p.stop()
}

// campaign returns what a server says of a campaign.
func (p *process) campaign(id string) (campaign client.Campaign) {
	p.t.Helper()
	err := insist(p.t, func() (err error) {
		campaign, err = p.calls.Campaign(p.t.Context(), id)
		return err
	})
	if err != nil {
		p.t.Fatal(err)
	}
	return campaign
}

func remaining(t *testing.T, p *process, id string) int64 {
	t.Helper()
	return *p.campaign(id).Remaining
}
