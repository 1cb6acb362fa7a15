package figures_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/figures"
	"github.com/firstcome/firstcome/internal/gate"
	"github.com/firstcome/firstcome/internal/ledger"
	"github.com/firstcome/firstcome/test/services"
	"github.com/firstcome/firstcome/test/stage"
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
	for _, why := range []error{firstcome.ErrTooMany, firstcome.ErrGateUnavailable, firstcome.ErrGateFull, firstcome.ErrLineFull, firstcome.ErrStopping, firstcome.ErrGateMismatch} {
		c.Undecided(t.Context(), "spring", fmt.Errorf("decide: %w", why))
	}
	c.Undecided(t.Context(), "spring", errors.New("no answer"))
	all := c.Counts()
	if len(all) != 1 {
		t.Errorf("counted %v", all)
	}
	for _, k := range figures.Kinds() {
		want := uint64(1)
		if slices.Contains(firstcome.Outcomes(), firstcome.Outcome(k)) {
			want = 0
		}
		if got := all["spring"].Claims[k]; got != want {
			t.Errorf("%v: %d, want %d", k, got, want)
		}
	}
}

// TestMadeUpCampaignsTakeNobodysPlace claims more invented campaigns than a node counts, while the ledger does not answer that they do not exist.
func TestMadeUpCampaignsTakeNobodysPlace(t *testing.T) {
	c := figures.NewCounter(nil)
	for n := range figures.Kept {
		c.Claimed(firstcome.CampaignID(fmt.Sprint("real-", n)), firstcome.Issued, time.Millisecond)
	}
	for n := range figures.Kept + 1 {
		c.Undecided(t.Context(), firstcome.CampaignID(fmt.Sprint("made-up-", n)), errors.New("the ledger does not answer"))
	}
	c.Undecided(t.Context(), "real-0", errors.New("the ledger does not answer"))
	all := c.Counts()
	for n := range figures.Kept {
		if id := firstcome.CampaignID(fmt.Sprint("real-", n)); all[id].Claims[firstcome.Issued] != 1 {
			t.Errorf("%s is no longer counted", id)
		}
	}
	if n := all["real-0"].Claims[figures.Unknown]; n != 1 {
		t.Errorf("%d claims of real-0 ended unknown", n)
	}
}

// A board is nodes and a ledger whose answers the test sets.
type board struct {
	nodes  []figures.Node
	deaf   error // nodes are those that are known all the same
	status ledger.Status
	fails  error
	reads  int
	given  []ledger.PrizeGiven
	asked  int // how often PrizesGiven was called
}

func (b *board) Nodes(context.Context) ([]figures.Node, error) { return b.nodes, b.deaf }
func (b *board) Decides(*ledger.Status) error                  { return nil }
func (b *board) PrizesGiven(context.Context, firstcome.CampaignID, *firstcome.Terms, int64) ([]ledger.PrizeGiven, error) {
	b.asked++
	return b.given, b.fails
}

func (b *board) Campaign(context.Context, firstcome.CampaignID) (ledger.Status, error) {
	b.reads++
	return b.status, b.fails
}

// node returns a node's report at a number of seconds, with a number of sold-out claims and their duration.
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
	// Rows are written every two seconds and read every second.
	if got := b.tick(t, w, samples, node("a", 12, 1200, 1), node("b", 12, 600, 1)); rate(got) != 150 || got.P95 == nil {
		t.Errorf("nothing new was said: %v a second, p95 %v", rate(got), got.P95)
	}
	// a was restarted. It counts from zero, and has taken over its row.
	again := func(at int, soldOut uint64) figures.Node {
		n := node("a", at, soldOut, 13)
		n.Before = node("a", 12, 1200, 1).Campaigns
		return n
	}
	if got := b.tick(t, w, samples, again(14, 40), node("b", 14, 600, 1)); rate(got) != 20 || got.Totals["sold_out"] != 1840 {
		t.Errorf("one restarted: %v, %v", rate(got), got.Totals)
	}
	// b no longer reports.
	gone := node("b", 14, 600, 1)
	gone.Now = gone.SeenAt.Add(7 * time.Second)
	got := b.tick(t, w, samples, again(16, 60), gone)
	if rate(got) != 10 || got.Totals["sold_out"] != 1860 || got.Nodes != 2 || got.NodesSeen != 1 || !slices.Equal(got.Gone, []string{gone.Key()}) || len(got.Marks) != 1 || got.Marks[0].Kind != "node_gone" {
		t.Errorf("one is gone: %+v", got)
	}
	if next := b.tick(t, w, samples, again(18, 60), gone); len(next.Marks) != 0 {
		t.Errorf("it is told once: %+v", next.Marks)
	}
}

// TestPercentilesAreOverTheClaimsOfAllNodes has nine of ten claims on a fast node, and the others on a slow one.
func TestPercentilesAreOverTheClaimsOfAllNodes(t *testing.T) {
	b := &board{}
	w := figures.NewWatcher(b, nil, b)
	samples, stop := w.Watch("spring")
	defer stop()
	at := func(second int, claims uint64) figures.Sample {
		t.Helper()
		fast, slow := node("fast", second, 9*claims, 1), node("slow", second, claims, 1)
		counts := slow.Campaigns["spring"]
		counts.Took[20], counts.Took[30] = 0, claims
		slow.Campaigns["spring"] = counts
		return b.tick(t, w, samples, fast, slow)
	}
	at(10, 100)
	s := at(11, 200)
	if s.P50 == nil || s.P95 == nil || s.P99 == nil {
		t.Fatalf("there are no times: %+v", s)
	}
	fast, slow := figures.Bound(20).Seconds(), figures.Bound(29).Seconds()
	if *s.P50 > fast || *s.P95 < slow || *s.P99 < slow {
		t.Errorf("p50 is %v s, p95 %v s, p99 %v s: the fast node takes %v at most, the slow one %v at least", *s.P50, *s.P95, *s.P99, fast, slow)
	}
}

// soldOut fails unless a sample's SoldOutIn is a number of seconds, or nil if that is negative.
func soldOut(t *testing.T, when string, s figures.Sample, want float64) {
	t.Helper()
	got := -1.0
	if s.SoldOutIn != nil {
		got = *s.SoldOutIn
	}
	if got != want {
		t.Errorf("%s, state %q: it is sold out in %v s, and should be in %v", when, s.State, got, want)
	}
}

// TestAPacedCampaignIsSoldOutByItsPaceWhileItIsOpen also checks that there is no estimate otherwise.
func TestAPacedCampaignIsSoldOutByItsPaceWhileItIsOpen(t *testing.T) {
	now := time.Unix(100, 0)
	for when, test := range map[string]struct {
		change func(*board)
		want   float64
	}{
		"open":        {func(*board) {}, 6},
		"no line":     {func(b *board) { b.status.Line.Waiting = 0 }, -1},
		"one is left": {func(b *board) { b.status.InForce = 99 }, 0.1},
		"sold out":    {func(b *board) { b.status.InForce = 100 }, -1},
		"waitlist":    {func(b *board) { b.status.InForce, b.status.Waitlist = 100, true }, -1}, // and still open
		"lowered":     {func(b *board) { b.status.InForce, b.status.Waitlist = 101, true }, -1},
		"unlimited":   {func(b *board) { b.status.Quantity = firstcome.Unlimited }, -1},
		"paused":      {func(b *board) { b.status.Paused = true }, -1},
		"closed":      {func(b *board) { b.status.Closed = true }, -1},
		"not open":    {func(b *board) { b.status.OpensAt = now.Add(time.Second) }, -1},
		"no ledger":   {func(b *board) { b.fails = errors.New("no route to the database") }, -1},
		"creating":    {func(b *board) { b.status.Gate = "redis:test" }, -1},
		"no gate":     {func(b *board) { b.status.Gate, b.status.Applied = "redis:test", 1 }, -1},
	} {
		b := &board{}
		b.status.Quantity, b.status.InForce, b.status.Now, b.status.Pace, b.status.Gate = 100, 40, now, &firstcome.Pace{PerSecond: 10}, "ledger"
		b.status.Line.Waiting = 5
		test.change(b)
		w := figures.NewWatcher(b, noGate{}, b)
		samples, stop := w.Watch("spring")
		soldOut(t, when, b.tick(t, w, samples), test.want)
		stop()
	}
}

// A noGate does not answer.
type noGate struct{}

func (noGate) State(context.Context, firstcome.CampaignID) (gate.State, error) {
	return gate.State{}, errors.New("no route to the gate")
}

// TestACampaignWithoutAPaceIsSoldOutByItsLastTenSeconds has an estimate while at least a tenth is left.
func TestACampaignWithoutAPaceIsSoldOutByItsLastTenSeconds(t *testing.T) {
	b := &board{}
	w := figures.NewWatcher(b, nil, b)
	now := time.Unix(100, 0)
	w.Clock = func() time.Time { return now }
	samples, stop := w.Watch("spring")
	defer stop()
	b.status.Quantity, b.status.Now = 200, now
	step := func(inForce int64) figures.Sample {
		t.Helper()
		now = now.Add(time.Second)
		b.status.InForce = inForce
		return b.tick(t, w, samples)
	}
	for n := range int64(10) {
		soldOut(t, fmt.Sprint("with ", n, " samples before"), step(10*n), -1)
	}
	for n := int64(10); n <= 18; n++ {
		soldOut(t, "ten a second", step(10*n), float64(20-n))
	}
	soldOut(t, "less than a tenth is left", step(181), -1)
	for range 9 {
		step(100)
	}
	soldOut(t, "some were taken back", step(100), -1)
	soldOut(t, "nobody claims", step(100), -1)
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

// TestCountsAreKeptByWord reads counts that another version wrote, which has an outcome that this one does not know.
func TestCountsAreKeptByWord(t *testing.T) {
	var counts figures.Counts
	counts.Claims[firstcome.SoldOut], counts.Claims[figures.Unknown] = 3, 2
	text, err := json.Marshal(counts)
	stage.Must(t, err)
	if !strings.Contains(string(text), `"claims":{"sold_out":3,"unknown":2}`) {
		t.Errorf("counts are written as %s", text)
	}
	var read figures.Counts
	stage.Must(t, json.Unmarshal([]byte(`{"claims":{"sold_out":3,"of_another_version":7,"unknown":2}}`), &read))
	stage.Same(t, "claims", counts.Claims, read.Claims)
}
