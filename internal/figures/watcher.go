package figures

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"
	"golang.org/x/sync/errgroup"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/gate"
	"github.com/firstcome/firstcome/internal/ledger"
)

const (
	// every is how often a watched campaign is read.
	every = time.Second
	// remembered is how many samples of a campaign are kept: a quarter of an hour.
	remembered = 900
	// together is how many campaigns are read at the same time.
	together = 4
	// goneAfter is the greatest age of a running node's row.
	goneAfter = 6 * time.Second
	// patience is the time-out of one reading.
	patience = 3 * time.Second
)

// A Watcher reads the watched campaigns, each once a second, however many watch it. It needs Run.
type Watcher struct {
	Ledger Ledger
	Gate   gate.Counters // nil if the ledger decides
	Nodes  Nodes
	Clock  func() time.Time
	// Told returns when this node's API last told a campaign's state: see Counter.Told. It may be nil.
	Told func(firstcome.CampaignID) time.Time

	// dated has when the states of campaigns were last known.
	dated *lru.Cache[firstcome.CampaignID, time.Time]
	// ranOut has when the prizes of campaigns ran out, by the ledger.
	ranOut *lru.Cache[firstcome.CampaignID, []ledger.PrizeGiven]

	mu      sync.Mutex // guards what follows
	watches map[firstcome.CampaignID]*watch
}

// A watch is the data of one campaign that is or recently was watched.
type watch struct {
	ring     []Sample // oldest first
	watching map[chan Sample]bool
	idle     int // ticks since the last watcher left

	// from the previous sample
	nodes map[string]nodeCounts
	state string
	at    firstcome.Instants
	gone  []string
	heard int // Sample.Nodes
}

// nodeCounts are a node's counts of a campaign in its last report, and their growth since the report before.
type nodeCounts struct {
	started, seen time.Time
	counts        Counts
	rates         [kinds]float64
	took          Buckets
}

// NewWatcher returns a Watcher.
func NewWatcher(l Ledger, g gate.Counters, n Nodes) *Watcher {
	dated, err := lru.New[firstcome.CampaignID, time.Time](maxDated)
	if err != nil {
		panic(err) // only for a size below 1
	}
	ranOut, err := lru.New[firstcome.CampaignID, []ledger.PrizeGiven](maxDated)
	if err != nil {
		panic(err) // only for a size below 1
	}
	return &Watcher{Ledger: l, Gate: g, Nodes: n, Clock: time.Now, dated: dated, ranOut: ranOut, watches: map[firstcome.CampaignID]*watch{}}
}

// Watch sends each new sample of a campaign to samples until stop is called. A sample that the receiver has not taken yet is replaced by the next
// one.
func (w *Watcher) Watch(id firstcome.CampaignID) (samples <-chan Sample, stop func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	c := w.watches[id]
	if c == nil {
		c = &watch{watching: map[chan Sample]bool{}, nodes: map[string]nodeCounts{}}
		w.watches[id] = c
	}
	to := make(chan Sample, 1)
	c.watching[to], c.idle = true, 0
	return to, func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		delete(c.watching, to)
	}
}

// Ring returns the samples of the last quarter of an hour in which the campaign was watched, oldest first.
func (w *Watcher) Ring(id firstcome.CampaignID) []Sample {
	w.mu.Lock()
	defer w.mu.Unlock()
	if c := w.watches[id]; c != nil {
		return slices.Clone(c.ring)
	}
	return nil
}

// Watched reports whether a campaign is watched now.
func (w *Watcher) Watched(id firstcome.CampaignID) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	c := w.watches[id]
	return c != nil && len(c.watching) > 0
}

// Run reads until ctx ends.
func (w *Watcher) Run(ctx context.Context) error {
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
			w.Tick(ctx)
		}
	}
}

// Tick reads every watched campaign once.
func (w *Watcher) Tick(ctx context.Context) {
	watched := w.watched()
	if len(watched) == 0 {
		return
	}
	ctx, done := context.WithTimeout(ctx, patience)
	defer done()
	nodes, err := w.Nodes.Nodes(ctx)
	var readings errgroup.Group
	readings.SetLimit(together)
	for id, c := range watched {
		readings.Go(func() error {
			s, failed := w.read(ctx, id)
			if errors.Is(failed, firstcome.ErrNoCampaign) || ctx.Err() != nil && failed != nil {
				return nil
			}
			w.date(id, &s)
			w.mu.Lock()
			c.addCounts(&s, id, nodes, err != nil)
			c.mark(&s)
			s.SoldOutIn = c.soldOutIn(&s)
			w.mu.Unlock()
			s.text, _ = s.JSON() // once for all watchers; a later call of JSON returns the error
			w.mu.Lock()
			defer w.mu.Unlock()
			c.send(s)
			return nil
		})
	}
	_ = readings.Wait()
}

// watched returns the watched campaigns, and forgets those that have long been unwatched.
func (w *Watcher) watched() map[firstcome.CampaignID]*watch {
	w.mu.Lock()
	defer w.mu.Unlock()
	now := map[firstcome.CampaignID]*watch{}
	for id, c := range w.watches {
		if len(c.watching) > 0 {
			now[id] = c
			continue
		}
		if c.idle++; c.idle > remembered {
			delete(w.watches, id)
		}
	}
	return now
}

// send keeps a sample and sends it to all watchers.
func (c *watch) send(s Sample) {
	if len(c.ring) == remembered {
		c.ring = slices.Delete(c.ring, 0, 1)
	}
	c.ring = append(c.ring, s)
	for to := range c.watching {
		select {
		case <-to:
		default:
		}
		to <- s // does not block: only this goroutine sends
	}
}

// soldOutIn returns Sample.SoldOutIn.
func (c *watch) soldOutIn(s *Sample) *float64 {
	const window = 10 // samples, one a second
	if s.Quantity == nil || s.InForce == nil || s.State != firstcome.StateOpen || *s.InForce >= *s.Quantity {
		return nil
	}
	left, rate := float64(*s.Quantity-*s.InForce), 0.0
	if s.Waiting != nil && *s.Waiting > 0 {
		rate = s.pace
	}
	if rate == 0 { // the line is empty, or has no pace
		if len(c.ring) < window || left < float64(*s.Quantity)/10 {
			return nil
		}
		from := c.ring[len(c.ring)-window]
		if from.InForce == nil {
			return nil
		}
		rate = float64(*s.InForce-*from.InForce) / s.At.Sub(from.At).Seconds()
	}
	if rate <= 0 {
		return nil
	}
	in := left / rate
	return &in
}

// addCounts adds the nodes' counts since their last reports to a sample. If failed is true, the rows could not be read, and nodes has only this node.
func (c *watch) addCounts(s *Sample, id firstcome.CampaignID, nodes []Node, failed bool) {
	s.Gone = []string{}
	if failed {
		s.Gone = append(s.Gone, c.gone...) // those known so far
	}
	var rates [kinds]float64
	var took Buckets
	known := false
	for n := range nodes {
		node := &nodes[n]
		age := node.Now.Sub(node.SeenAt)
		if !node.StoppedAt.IsZero() {
			continue
		}
		s.Nodes++
		if node.Silent() {
			s.Gone = append(s.Gone, node.Key())
			continue
		}
		s.NodesSeen++
		s.NodesAge = max(s.NodesAge, age.Seconds())
		heard := c.counted(node, id)
		for k := range rates {
			rates[k] += heard.rates[k]
		}
		took.Add(heard.took)
		known = true
	}
	if failed {
		s.Nodes = max(s.Nodes, c.heard)
	}
	if c.heard = s.Nodes; !known {
		return
	}
	s.Rates, s.Totals = map[string]float64{}, claims(nodes, id)
	for _, k := range Kinds() {
		s.Rates[k.String()] = rates[k]
	}
	s.P50, s.P95, s.P99 = seconds(took.Percentile(.50)), seconds(took.Percentile(.95)), seconds(took.Percentile(.99))
}

// Claims returns lower bounds of a campaign's claims by Kind: the last reports of all nodes, including stopped and deleted ones, with the claims that
// they took over. They lack what a killed node counted after its last row, and campaigns that a node no longer keeps: see Kept. If the nodes cannot
// be read, Claims returns this node's counts.
func (w *Watcher) Claims(ctx context.Context, id firstcome.CampaignID) map[string]uint64 {
	ctx, done := context.WithTimeout(ctx, patience)
	defer done()
	nodes, _ := w.Nodes.Nodes(ctx)
	return claims(nodes, id)
}

// claims adds up the nodes' counts of a campaign, by Kind.
func claims(nodes []Node, id firstcome.CampaignID) map[string]uint64 {
	all := map[string]uint64{}
	for _, k := range Kinds() {
		n := uint64(0)
		for _, node := range nodes {
			n += node.Campaigns[id].Claims[k] + node.Before[id].Claims[k]
		}
		all[k.String()] = n
	}
	return all
}

// counted returns a node's counts between its last two reports: rows are read more often than they are written.
func (c *watch) counted(node *Node, id firstcome.CampaignID) nodeCounts {
	before, known := c.nodes[node.Key()]
	if known && before.seen.Equal(node.SeenAt) && before.started.Equal(node.StartedAt) {
		return before
	}
	now := nodeCounts{started: node.StartedAt, seen: node.SeenAt, counts: node.Campaigns[id]}
	from := before.counts
	if !before.started.Equal(now.started) || !from.Since.Equal(now.counts.Since) {
		from = Counts{} // it restarted, and counts from zero
	}
	if passed := now.seen.Sub(before.seen).Seconds(); known && passed > 0 {
		for k := range now.rates {
			now.rates[k] = float64(now.counts.Claims[k]-from.Claims[k]) / passed
		}
		for b := range now.took {
			now.took[b] = now.counts.Took[b] - from.Took[b]
		}
	}
	c.nodes[node.Key()] = now
	return now
}

// mark notes what happened since the sample before.
func (c *watch) mark(s *Sample) {
	s.Marks = []Mark{}
	add := func(kind string, at time.Time, text string) { s.Marks = append(s.Marks, Mark{at, kind, text}) }
	for _, name := range s.Gone {
		if !slices.Contains(c.gone, name) {
			add("node_gone", s.At, name)
		}
	}
	c.gone = s.Gone
	if s.State == "" {
		return
	}
	at := s.Instants
	news := func(before, now time.Time) bool { return !now.IsZero() && !now.Equal(before) }
	if news(c.at.OpenedAt, at.OpenedAt) {
		add("opened", at.OpenedAt, "")
	}
	if news(c.at.SoldOutAt, at.SoldOutAt) {
		add("sold_out", at.SoldOutAt, "")
	}
	if news(c.at.ClosedAt, at.ClosedAt) {
		add("closed", at.ClosedAt, "")
	}
	switch {
	case s.State == "paused" && c.state != "paused":
		add("paused", s.At, "")
	case s.State != "paused" && c.state == "paused":
		add("resumed", s.At, "")
	}
	c.state, c.at = s.State, at
}

func seconds(d *time.Duration) *float64 {
	if d == nil {
		return nil
	}
	s := d.Seconds()
	return &s
}
