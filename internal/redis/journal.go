package redis

import (
	"cmp"
	"context"
	"crypto/rand"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/redis/rueidis"
	"golang.org/x/sync/errgroup"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/flow"
)

// JournalOptions say how a Journal is drained. The zero value of a field means its default.
type JournalOptions struct {
	// Active returns the campaigns of this gate that may have something to drain; the
	// ledger knows them. Required.
	Active func(context.Context) ([]firstcome.CampaignID, error)
	// Workers is how many campaigns are drained side by side; default 4.
	Workers int
	// Coupons is how many are given to the sink at once, unless a single entry has more; default 2,000.
	Coupons int
	// Idle is how long an entry may be with a recorder that gives no sign of life, before
	// another takes it over; default 5 s.
	Idle time.Duration
	// Sweep is how often the active campaigns are looked at; default 1 s. What is issued
	// wakes the journal besides.
	Sweep time.Duration
	// OnAlarm, if set, is told what an operator should know: what was lost of a journal and
	// made again, and a campaign that cannot be drained, the same about once a minute. What
	// is about all campaigns names none.
	OnAlarm func(firstcome.CampaignID, error)
}

const (
	defaultWorkers = 4
	// 2,000 rows are a transaction of some 20 ms on a SQL server.
	defaultCoupons = 2000
	// A recorder says every third of it that it is at work, so a pause of garbage
	// collection or a slow network costs nothing.
	defaultIdle  = 5 * time.Second
	defaultSweep = time.Second
	// sweepPage bounds the commands of a sweep that are sent at once.
	sweepPage = 500
	// finishing is how long a batch that is under way when Drain has to end may go on:
	// a hundred times what it takes, and less than whoever waits for its coupons does.
	finishing = 2 * time.Second
	// maxEntries bounds what one reading of a stream brings.
	maxEntries = 2000
)

// A Journal drains what a Gate issued. Several, in one or many processes, share the
// work: each entry is with one of them, and what one leaves unfinished another takes
// over. Entries are deleted when the sink has taken them. Make one with Gate.Journal.
//
// While a sink takes long, the journal says that its entries are at work; if it cannot,
// another recorder gets them too, which is harmless because a sink takes a batch twice as once.
type Journal struct {
	gate     *Gate
	options  JournalOptions
	consumer string
	agenda   *agenda

	unknown chan struct{} // has room for one: a campaign that is not known issued something

	mu      sync.Mutex // guards what follows
	active  []firstcome.CampaignID
	streams map[firstcome.CampaignID]*stream
	// strangers are the campaigns that woke the journal since the last sweep and were not
	// active: those that are new, and those that another ledger has at the same Redis.
	strangers map[firstcome.CampaignID]bool
}

var _ flow.Source = (*Journal)(nil)

// Journal returns the gate's journal, as a new consumer of it.
func (g *Gate) Journal(options JournalOptions) *Journal {
	options.Workers = cmp.Or(options.Workers, defaultWorkers)
	options.Coupons = cmp.Or(options.Coupons, defaultCoupons)
	options.Idle = cmp.Or(options.Idle, defaultIdle)
	options.Sweep = cmp.Or(options.Sweep, defaultSweep)
	return &Journal{
		gate: g, options: options, consumer: rand.Text(), agenda: newAgenda(),
		unknown: make(chan struct{}, 1), streams: map[firstcome.CampaignID]*stream{}, strangers: map[firstcome.CampaignID]bool{},
	}
}

// Drain gives what was issued to a sink until ctx ends: see flow.Source. A batch that
// is under way then is finished, if that takes no more than two seconds: else those who
// wait for its coupons would wait until another recorder takes it over. An error
// is Redis's, or the sink's; what was not taken then comes again with the next Drain.
// One Drain at a time.
func (j *Journal) Drain(ctx context.Context, to flow.Sink) error {
	j.mu.Lock()
	clear(j.streams) // what an earlier Drain left unfinished is looked for
	j.agenda = newAgenda()
	j.mu.Unlock()
	all, ctx2 := errgroup.WithContext(ctx)
	all.Go(func() error { return j.listen(ctx2) })
	all.Go(func() error { return j.sweep(ctx2) })
	for range j.options.Workers {
		all.Go(func() error { return j.work(ctx2, to) })
	}
	err := all.Wait()
	if ctx.Err() != nil {
		return nil
	}
	return fmt.Errorf("drain the Redis journal: %w", err)
}

// sweep puts those of the active campaigns on the agenda that have something.
func (j *Journal) sweep(ctx context.Context) error {
	tick := time.NewTicker(j.options.Sweep)
	defer tick.Stop()
	for {
		// Without the ledger the last list is as good: nothing can be recorded now.
		if ids, err := j.options.Active(ctx); err == nil {
			j.setActive(ids)
		}
		ids := j.known()
		for len(ids) > 0 {
			page := ids[:min(len(ids), sweepPage)]
			ids = ids[len(page):]
			if err := j.sweepPage(ctx, page); err != nil {
				return err
			}
		}
		select {
		case <-tick.C:
			j.meet()
		case <-j.unknown:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// setActive replaces the list, and forgets what is known of other campaigns.
func (j *Journal) setActive(ids []firstcome.CampaignID) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.active = slices.Sorted(slices.Values(ids))
	streams := make(map[firstcome.CampaignID]*stream, len(ids))
	for _, id := range ids {
		if s, ok := j.streams[id]; ok {
			streams[id] = s
		}
	}
	j.streams = streams
}

func (j *Journal) known() []firstcome.CampaignID {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.active
}

// sweepPage looks at campaigns in one round trip: whether there are entries, and
// whether all that was issued is settled.
func (j *Journal) sweepPage(ctx context.Context, ids []firstcome.CampaignID) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	b := j.gate.client.B()
	commands := make(rueidis.Commands, 0, 2*len(ids))
	for _, id := range ids {
		commands = append(commands, b.Xlen().Key(journalKey(id)).Build(),
			b.Hmget().Key(campaignKey(id)).Field("last_number", "settled").Build())
	}
	answers := j.gate.client.DoMulti(ctx, commands...)
	for n, id := range ids {
		entries, err1 := answers[2*n].AsInt64()
		counters, err2 := answers[2*n+1].AsStrSlice()
		if err1 == nil {
			err1 = err2
		}
		if err1 != nil {
			if err := j.isolate(id, classify(err1)); err != nil {
				return err
			}
			continue
		}
		if entries > 0 || counters[0] != counters[1] {
			j.agenda.add(id)
		}
	}
	return nil
}

// work drains campaigns in turn, one batch of entries each.
func (j *Journal) work(ctx context.Context, to flow.Sink) error {
	for {
		id, ok := j.agenda.next(ctx)
		if !ok {
			return ctx.Err()
		}
		longer, cancel := outlasting(ctx, finishing)
		more, err := j.drain(longer, j.stream(id), to)
		cancel()
		if more {
			j.agenda.add(id)
		}
		j.agenda.done(id)
		if err := j.isolate(id, err); err != nil {
			return err
		}
	}
}

// outlasting returns a context that ends so much later than its parent.
func outlasting(parent context.Context, by time.Duration) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(parent))
	stop := context.AfterFunc(parent, func() { time.AfterFunc(by, cancel) })
	return ctx, func() {
		stop()
		cancel()
	}
}

func (j *Journal) stream(id firstcome.CampaignID) *stream {
	j.mu.Lock()
	defer j.mu.Unlock()
	s, ok := j.streams[id]
	if !ok {
		s = &stream{id: id, unfinished: true, perEntry: 1}
		j.streams[id] = s
	}
	return s
}
