package figures_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/figures"
	"github.com/firstcome/firstcome/internal/ledger"
	"github.com/firstcome/firstcome/test/stage"
)

// boardOn returns a node's board on a ledger.
func boardOn(rows figures.Rows, host string) *figures.Board {
	return &figures.Board{
		Node: figures.Node{Host: host, Listen: "127.0.0.1:8080", Role: "all", Version: "test"}, Counter: figures.NewCounter(nil), Rows: rows,
		Warn: func(string, ...any) {},
	}
}

// A drawer keeps rows in memory, and counts the writes.
type drawer struct {
	mu     sync.Mutex // guards what follows
	writes int
	last   ledger.NodeRow
	fails  error
	torn   error // of reading
}

func (d *drawer) Clock(context.Context) (time.Time, error) { return time.Now(), nil }

func (d *drawer) WriteNode(_ context.Context, n ledger.NodeRow, _ bool) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	n.SeenAt = time.Now()
	d.writes, d.last = d.writes+1, n
	return d.fails
}

func (d *drawer) TakeNode(context.Context, ledger.NodeRow) ([]byte, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.last.Counts, nil
}

// written returns the number of writes so far, and makes later ones fail.
func (d *drawer) written(fails error) int {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.fails = fails
	return d.writes
}

func (d *drawer) Nodes(context.Context) ([]ledger.NodeRow, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.torn != nil {
		return nil, d.torn
	}
	row := d.last
	row.Now = time.Now()
	return []ledger.NodeRow{row}, nil
}

func TestANodeThatIsClaimedAtNoMoreIsHeardAndCountsNothingNew(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &drawer{}
		busy, other := boardOn(d, "busy"), boardOn(d, "other")
		ctx, stop := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- busy.Run(ctx) }()
		w := figures.NewWatcher(&board{}, nil, other)
		samples, leave := w.Watch("spring")
		defer leave()
		for second := range 90 {
			if second < 10 {
				busy.Counter.Claimed("spring", firstcome.SoldOut, time.Millisecond)
			}
			time.Sleep(time.Second)
			synctest.Wait()
			w.Tick(t.Context())
			s := <-samples
			if len(s.Gone) != 0 {
				t.Fatalf("after %d s nothing is heard of %v", second, s.Gone)
			}
			if second >= 15 && s.Rates["sold_out"] != 0 {
				t.Fatalf("after %d s %v claims a second", second, s.Rates["sold_out"])
			}
		}
		stop()
		stage.Must(t, <-done)
	})
}

// TestCouponsOfALineAreWrittenLikeClaims counts coupons issued to a line that no user joins any longer. Another node soon reads them.
func TestCouponsOfALineAreWrittenLikeClaims(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &drawer{}
		busy, other := boardOn(d, "busy"), boardOn(d, "other")
		ctx, stop := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- busy.Run(ctx) }()
		time.Sleep(time.Minute)
		for second := range uint64(5) {
			busy.Counter.Served("spring", 7)
			time.Sleep(2 * time.Second)
			synctest.Wait()
			nodes, err := other.Nodes(t.Context())
			stage.Must(t, err)
			if got := nodes[0].Campaigns["spring"].Served; nodes[0].Host != "busy" || got != 7*(second+1) {
				t.Fatalf("%s served %d coupons, and another node reads %d", nodes[0].Host, 7*(second+1), got)
			}
		}
		stop()
		stage.Must(t, <-done)
	})
}

// TestWhileNodesCannotBeReadThisOneIsHeard uses only the node's own counts while its ledger is down. They continue without a jump when it is back.
func TestWhileNodesCannotBeReadThisOneIsHeard(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		started := time.Now().Add(-time.Hour) // by the ledger's clock, which is another one
		d := &drawer{last: ledger.NodeRow{Host: "a", Listen: "127.0.0.1:8080", StartedAt: started}}
		own := boardOn(d, "a")
		own.StartedAt = time.Now()
		w := figures.NewWatcher(&board{}, nil, own)
		samples, leave := w.Watch("spring")
		defer leave()
		rate := func(torn error) float64 {
			t.Helper()
			d.torn = torn
			for range 5 {
				own.Counter.Claimed("spring", firstcome.SoldOut, time.Millisecond)
			}
			time.Sleep(time.Second)
			w.Tick(t.Context())
			s := <-samples
			if s.NodesSeen != 1 || s.Nodes != 1 {
				t.Errorf("%d of %d nodes are heard", s.NodesSeen, s.Nodes)
			}
			return s.Rates["sold_out"]
		}
		rate(nil)
		down := errors.New("no route to the database")
		for n, torn := range []error{nil, down, down, nil, nil} {
			if got := rate(torn); got != 5 {
				t.Errorf("reading %d (%v): %v claims a second, want 5", n, torn, got)
			}
		}
	})
}

func TestARowIsWrittenOftenWhileSomebodyClaimsAndElseSeldom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &drawer{}
		b := boardOn(d, "a")
		ctx, stop := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- b.Run(ctx) }()
		synctest.Wait()
		before := d.written(nil)
		time.Sleep(time.Minute + time.Second)
		if idle := d.written(nil) - before; idle != 2 {
			t.Errorf("%d writes in an idle minute", idle)
		}
		before = d.written(nil)
		for range 30 {
			b.Counter.Claimed("spring", firstcome.Issued, time.Millisecond)
			time.Sleep(2 * time.Second)
		}
		if busy := d.written(nil) - before; busy < 29 || busy > 31 {
			t.Errorf("%d writes in a busy minute", busy)
		}
		d.written(errors.New("no route to the database"))
		b.Counter.Claimed("spring", firstcome.Issued, time.Millisecond)
		time.Sleep(10 * time.Second)
		before = d.written(nil)
		time.Sleep(3 * time.Second)
		if d.written(nil) == before {
			t.Error("what could not be written is not written when it can be")
		}
		stop()
		stage.Must(t, <-done)
	})
}

func TestARowStaysShortHoweverMuchWasCounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &drawer{}
		for run := range 3 { // the later ones take over from those before
			b := boardOn(d, "a")
			for n := range figures.Kept {
				id := firstcome.CampaignID(fmt.Sprintf("campaign-%02d-of-%d-%s", n, run, strings.Repeat("with-a-long-name-", 8*(run+1))))
				for range n + 1 {
					for bucket := range len(figures.Buckets{}) {
						b.Counter.Claimed(id, firstcome.Issued, time.Duration(float64(figures.Bound(bucket))*math.Sqrt2*.7))
					}
				}
			}
			ctx, stop := context.WithCancel(t.Context())
			done := make(chan error, 1)
			go func() { done <- b.Run(ctx) }()
			synctest.Wait()
			text := string(d.last.Counts)
			if len(text) > 16<<10 {
				t.Errorf("the counts have %d bytes", len(text))
			}
			if n := strings.Count(text, fmt.Sprintf("-of-%d-", run)); n < figures.Kept && strings.Contains(text, fmt.Sprintf("-of-%d-", run-1)) {
				t.Errorf("what was taken over leaves room for %d campaigns only: %s", n, text)
			}
			stop()
			stage.Must(t, <-done)
		}
	})
}
