package figures_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/figures"
	"github.com/firstcome/firstcome/internal/ledger"
	"github.com/firstcome/firstcome/test/services"
)

func TestMain(m *testing.M) { services.Main(m) }

func TestAPercentileIsWithinItsBucket(t *testing.T) {
	var b figures.Buckets
	if got := b.Percentile(.5); got != nil {
		t.Errorf("of nothing: %v", *got)
	}
	c := figures.NewCounter(nil)
	for n := range 1000 {
		c.Claimed("spring", firstcome.Issued, time.Duration(n+1)*time.Millisecond)
	}
	b = c.Counts()["spring"].Took
	for _, share := range []float64{.01, .5, .95, .99, 1} {
		exact := time.Duration(share * 1000 * float64(time.Millisecond))
		if got := *b.Percentile(share); got < exact*3/4 || got > exact*4/3 {
			t.Errorf("%v: %v, exactly %v", share, got, exact)
		}
	}
	c.Claimed("winter", firstcome.Issued, time.Hour)
	long := c.Counts()["winter"].Took
	if got := *long.Percentile(.99); got < 5*time.Second {
		t.Errorf("longer than all bounds: %v", got)
	}
}

func TestANodeKeepsTheCampaignsThatWereClaimedLast(t *testing.T) {
	now := time.Unix(1_000, 0)
	c := figures.NewCounter(func() time.Time { return now })
	for n := range figures.Kept {
		c.Claimed(firstcome.CampaignID(fmt.Sprint("old-", n)), firstcome.SoldOut, 0)
		now = now.Add(time.Second)
		c.Counts()
	}
	c.Claimed("old-0", firstcome.SoldOut, 0) // again: old-1 is the oldest now
	c.Claimed("new", firstcome.Issued, 0)
	all := c.Counts()
	if _, ok := all["old-1"]; ok || len(all) != figures.Kept || all["old-0"].Claims[firstcome.SoldOut] != 2 || all["new"].Claims[firstcome.Issued] != 1 {
		t.Errorf("%d are kept, old-1: %v", len(all), ok)
	}
}

func TestWhatIsNoClaimOfACampaignIsNotCounted(t *testing.T) {
	c := figures.NewCounter(nil)
	gone, leave := context.WithCancel(t.Context())
	leave()
	c.Undecided(t.Context(), "none", firstcome.ErrNoCampaign)
	c.Undecided(gone, "left", context.Canceled)
	c.Undecided(t.Context(), "spring", firstcome.ErrBusy)
	c.Undecided(t.Context(), "spring", errors.New("no answer"))
	all := c.Counts()
	if len(all) != 1 {
		t.Errorf("counted %v", all)
	}
	for _, k := range figures.Kinds() {
		want := uint64(0)
		if s := k.String(); s == "shed" || s == "unknown" {
			want = 1
		}
		if got := all["spring"].Claims[k]; got != want {
			t.Errorf("%v: %d, want %d", k, got, want)
		}
	}
}

// A board is nodes and a ledger that say what the test has them say.
type board struct {
	nodes  []figures.Node
	deaf   error // nodes are those that are known all the same
	status ledger.Status
	fails  error
	reads  int
}

func (b *board) Nodes(context.Context) ([]figures.Node, error) { return b.nodes, b.deaf }
func (b *board) Decides(*ledger.Status) error                  { return nil }
func (b *board) Campaign(context.Context, firstcome.CampaignID) (ledger.Status, error) {
	b.reads++
	return b.status, b.fails
}

// node returns what a node says at so many seconds, of so many sold out and how long they took.
func node(name string, at int, soldOut uint64, since int) figures.Node {
	counts := figures.Counts{Since: time.Unix(int64(since), 0)}
	counts.Claims[firstcome.SoldOut], counts.Took[20] = soldOut, soldOut
	return figures.Node{
		Host: name, StartedAt: time.Unix(int64(since), 0), SeenAt: time.Unix(int64(at), 0), Now: time.Unix(int64(at), 0),
		Campaigns: map[firstcome.CampaignID]figures.Counts{"spring": counts},
	}
}

func (b *board) tick(t *testing.T, w *figures.Watcher, samples <-chan figures.Sample, nodes ...figures.Node) figures.Sample {
	t.Helper()
	b.nodes = nodes
	w.Tick(t.Context())
	select {
	case s := <-samples:
		return s
	default:
		t.Fatal("there is no sample")
	}
	return figures.Sample{}
}

func TestRatesAreWhatTheNodesCountedSinceTheyWereHeard(t *testing.T) {
	b := &board{}
	w := figures.NewWatcher(b, nil, b)
	samples, stop := w.Watch("spring")
	defer stop()
	rate := func(s figures.Sample) float64 { return s.Rates["sold_out"] }
	b.tick(t, w, samples, node("a", 10, 1000, 1), node("b", 10, 500, 1))
	if got := b.tick(t, w, samples, node("a", 12, 1200, 1), node("b", 12, 600, 1)); rate(got) != 150 || got.Totals["sold_out"] != 1800 || got.P50 == nil || got.NodesSeen != 2 {
		t.Errorf("both counted: %+v", got)
	}
	// Rows are written every two seconds and read each second.
	if got := b.tick(t, w, samples, node("a", 12, 1200, 1), node("b", 12, 600, 1)); rate(got) != 150 || got.P95 == nil {
		t.Errorf("nothing new was said: %v a second, p95 %v", rate(got), got.P95)
	}
	// a was restarted and counts from zero.
	if got := b.tick(t, w, samples, node("a", 14, 40, 13), node("b", 14, 600, 1)); rate(got) != 20 {
		t.Errorf("one restarted: %v", rate(got))
	}
	// b is not heard any more.
	gone := node("b", 14, 600, 1)
	gone.Now = gone.SeenAt.Add(7 * time.Second)
	got := b.tick(t, w, samples, node("a", 16, 60, 13), gone)
	if rate(got) != 10 || got.Nodes != 2 || got.NodesSeen != 1 || !slices.Equal(got.Gone, []string{gone.Key()}) || len(got.Marks) != 1 || got.Marks[0].Kind != "node_gone" {
		t.Errorf("one is gone: %+v", got)
	}
	if again := b.tick(t, w, samples, node("a", 18, 60, 13), gone); len(again.Marks) != 0 {
		t.Errorf("it is told once: %+v", again.Marks)
	}
}

func TestACampaignIsReadOnceHoweverManyWatchAndNeverIfNobodyDoes(t *testing.T) {
	b := &board{}
	w := figures.NewWatcher(b, nil, b)
	w.Tick(t.Context())
	if b.reads != 0 {
		t.Errorf("nobody watches: %d reads", b.reads)
	}
	one, stopOne := w.Watch("spring")
	two, stopTwo := w.Watch("spring")
	w.Tick(t.Context())
	if b.reads != 1 || len(one) != 1 || len(two) != 1 {
		t.Errorf("two watch: %d reads, %d and %d samples", b.reads, len(one), len(two))
	}
	w.Tick(t.Context()) // one has not taken its sample: the new one is in its place
	if len(one) != 1 || len(w.Ring("spring")) != 2 {
		t.Errorf("%d samples wait, %d are kept", len(one), len(w.Ring("spring")))
	}
	first, second := <-one, <-two
	text, err := first.JSON()
	same, err2 := second.JSON()
	if err != nil || err2 != nil || &text[0] != &same[0] {
		t.Errorf("a sample is made into JSON for each who watches: %v, %v", err, err2)
	}
	stopOne()
	stopTwo()
	w.Tick(t.Context())
	if b.reads != 2 {
		t.Errorf("all left: %d reads", b.reads)
	}
}

func TestWhileTheLedgerIsDownItsFiguresAreUnknownAndTheNodesAreNot(t *testing.T) {
	b := &board{}
	b.status.Issued = 5
	w := figures.NewWatcher(b, nil, b)
	samples, stop := w.Watch("spring")
	defer stop()
	b.tick(t, w, samples, node("a", 10, 100, 1))
	b.fails = errors.New("no route to the database")
	got := b.tick(t, w, samples, node("a", 11, 150, 1))
	if !got.LedgerDown || got.Issued != nil || got.Recorded != nil || got.State != "" || got.Rates["sold_out"] != 50 {
		t.Errorf("got %+v", got)
	}
}

func TestANodeThatIsGoneIsMarkedOnceAcrossAnOutage(t *testing.T) {
	b := &board{}
	w := figures.NewWatcher(b, nil, b)
	samples, stop := w.Watch("spring")
	defer stop()
	gone := node("b", 14, 600, 1)
	gone.Now = gone.SeenAt.Add(7 * time.Second)
	if got := b.tick(t, w, samples, node("a", 16, 60, 13), gone); len(got.Marks) != 1 {
		t.Fatalf("marks: %+v", got.Marks)
	}
	b.deaf = errors.New("no route to the database")
	if got := b.tick(t, w, samples, node("a", 17, 60, 13)); got.NodesSeen != 1 || got.Nodes != 2 {
		t.Errorf("during the outage %d of %d nodes are heard", got.NodesSeen, got.Nodes)
	}
	b.deaf = nil
	if got := b.tick(t, w, samples, node("a", 18, 60, 13), gone); len(got.Marks) != 0 {
		t.Errorf("it is told again: %+v", got.Marks)
	}
}

func TestWhatHappenedIsMarkedOnce(t *testing.T) {
	b := &board{}
	b.status.Quantity, b.status.Now = 10, time.Unix(100, 0)
	w := figures.NewWatcher(b, nil, b)
	samples, stop := w.Watch("spring")
	defer stop()
	var kinds []string
	step := func() {
		for _, m := range b.tick(t, w, samples).Marks {
			kinds = append(kinds, m.Kind)
		}
	}
	step()
	b.status.OpenedAt = time.Unix(90, 0)
	step()
	b.status.Paused = true
	step()
	step()
	b.status.Paused = false
	step()
	b.status.InForce, b.status.SoldOutAt = 10, time.Unix(95, 0)
	step()
	step()
	if want := []string{"opened", "paused", "resumed", "sold_out"}; !slices.Equal(kinds, want) {
		t.Errorf("got %v, want %v", kinds, want)
	}
}

func TestCountingAClaimAllocatesNothing(t *testing.T) {
	c := figures.NewCounter(nil)
	c.Claimed("spring", firstcome.SoldOut, time.Millisecond) // the campaign's first claim makes its totals
	if n := testing.AllocsPerRun(1000, func() { c.Claimed("spring", firstcome.SoldOut, time.Millisecond) }); n != 0 {
		t.Errorf("%v allocations a claim", n)
	}
}

func BenchmarkClaimed(b *testing.B) {
	c := figures.NewCounter(nil)
	b.ReportAllocs()
	for b.Loop() {
		c.Claimed("spring", firstcome.SoldOut, 300*time.Microsecond)
	}
}
