package redis

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/flow"
)

// JournalOptions say how a Journal is drained. The zero value of a field means its default.
type JournalOptions struct {
	// Active returns the campaigns of this gate that may have something to drain, as the
	// ledger knows them. Required.
	Active func(context.Context) ([]flow.Revision, error)
	// Relay tells that the sink is a topic, and not the ledger: what it has taken may be anywhere on its way. Then the journal tells the
	// gate nothing of what is drained, and an entry that is gone means nothing.
	Relay bool
	// Workers is how many campaigns are drained side by side; default 4. One more drains
	// those that somebody kept locked in the ledger when they were drained last.
	Workers int
	// Coupons is how many are given to the sink at once, unless a single entry has more; default 2,000.
	Coupons int
	// Idle is how long an entry may be with a recorder that gives no sign of life, before
	// another takes it over; default 5 s.
	Idle time.Duration
	// Sweep is how often the active campaigns are looked at; default 1 s. What is issued
	// wakes the journal besides.
	Sweep time.Duration
	// Slow is how often a closed and fully recorded campaign is looked at while its revision is
	// the same; default 1 min.
	Slow time.Duration
	// OnAlarm, if set, gets what an operator should know: what a journal lost and got back,
	// and campaigns that cannot be drained; the same alarm about once a minute. The id is
	// empty if it is about no single campaign, such as when nothing wakes the journal.
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
	// A closed campaign may issue again, after its window was extended or the gate's clock went back. Its coupons
	// wait at most so long if neither a message nor the ledger tells.
	defaultSlow = time.Minute
	// finishing is how long a batch under way may go on when Drain has to end: a hundred times
	// what a batch takes, and less than callers wait for its coupons.
	finishing = 2 * time.Second
	// maxEntries bounds the entries in work at once, pageEntries those that one command reads: at 512 claims
	// each, a page is some 50,000 coupons, or 20 MB. Two thousand entries of single coupons take twenty
	// commands, about a millisecond.
	maxEntries  = 2000
	pageEntries = 100
)

// A Journal drains what a Gate issued. Several, in one or many processes, share the
// work: each entry is with one of them, and what one leaves unfinished another takes
// over. Entries are deleted when the sink has taken them. Make one with Gate.Journal.
//
// While a sink takes long, the journal keeps claiming its entries. If it cannot, another recorder gets
// them too. That does no harm: giving a sink a batch twice is the same as once.
type Journal struct {
	gate     *Gate
	options  JournalOptions
	consumer string
	agenda   *flow.Agenda
	schedule schedule
	alarms   flow.Alarms
	actives  actives
}

var _ flow.Source = (*Journal)(nil)

// Journal returns the gate's journal, as a new consumer of it.
func (g *Gate) Journal(options JournalOptions) *Journal {
	options.Workers = cmp.Or(options.Workers, defaultWorkers)
	options.Coupons = cmp.Or(options.Coupons, defaultCoupons)
	options.Idle = cmp.Or(options.Idle, defaultIdle)
	options.Sweep = cmp.Or(options.Sweep, defaultSweep)
	options.Slow = cmp.Or(options.Slow, defaultSlow)
	j := &Journal{
		gate: g, options: options, consumer: rand.Text(), schedule: schedule{slow: options.Slow},
		alarms: flow.Alarms{On: options.OnAlarm}, actives: actives{unknown: make(chan struct{}, 1)},
	}
	return j
}

// Drain gives what was issued to a sink until ctx ends: see flow.Source. A batch that
// is under way then is finished, if that takes no more than two seconds: else those who
// wait for its coupons would wait until another recorder takes it over. An error
// is Redis's; what was not taken then comes again with the next Drain.
// One Drain at a time.
func (j *Journal) Drain(ctx context.Context, to flow.Sink, again *flow.Retries) error {
	to = flow.Marked(to)
	j.actives.set(nil) // what an earlier Drain left unfinished is looked for
	j.agenda = flow.NewAgenda(again.Locked)
	all, ctx2 := errgroup.WithContext(ctx)
	all.Go(func() error { return j.listen(ctx2) })
	all.Go(func() error { return j.sweep(ctx2) })
	for range j.options.Workers {
		all.Go(func() error { return j.work(ctx2, to, again, flow.Free) })
	}
	all.Go(func() error { return j.work(ctx2, to, again, flow.Locked) })
	err := all.Wait()
	if ctx.Err() != nil {
		return nil
	}
	return fmt.Errorf("drain the Redis journal: %w", err)
}

// sweep puts the active campaigns that have something to drain on the agenda.
func (j *Journal) sweep(ctx context.Context) error {
	tick := time.NewTicker(j.options.Sweep)
	defer tick.Stop()
	for {
		// Without the ledger the last list will do: nothing can be recorded now.
		active, err := j.options.Active(ctx)
		if err == nil {
			j.actives.set(active)
		}
		if err := j.look(ctx); err != nil {
			return err
		}
		select {
		case <-tick.C:
			j.actives.tick()
		case <-j.actives.unknown:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// look puts due campaigns on the agenda if their journals have entries, or if they are not drained through their last number.
func (j *Journal) look(ctx context.Context) error {
	return j.gate.survey(ctx, &j.schedule, j.actives.list(), func(r flow.Revision, s survey) error {
		if s.err != nil {
			return j.isolate(r.Campaign, s.err)
		}
		if s.entries > 0 || !j.options.Relay && (j.differs(r, s) || !s.idle()) {
			j.agenda.Add(r.Campaign)
		}
		return nil
	})
}

// isolate keeps one campaign's error from the others: it tells an operator of it and returns nil. It returns
// any other error.
func (j *Journal) isolate(id firstcome.CampaignID, err error) error {
	if !ofOne(err) {
		return err
	}
	j.schedule.soon(id)
	if errors.Is(err, firstcome.ErrGateMismatch) {
		j.gate.keyring.Remove(id) // the ledger may have been replaced under this node
	}
	if !flow.ToldBySink(err) {
		j.alarms.Tell(id, err)
	}
	return nil
}

// work drains campaigns of a lane in turn, one batch of entries each. One that fails rests.
func (j *Journal) work(ctx context.Context, to flow.Sink, again *flow.Retries, of flow.Shelf) error {
	for {
		id, ok := j.agenda.Next(ctx, of)
		if !ok {
			return ctx.Err()
		}
		longer, cancel := flow.Outlasting(ctx, finishing)
		more, err := j.drain(longer, j.stream(id), to)
		cancel()
		if err == nil {
			again.Drained(id)
			j.agenda.Done(id, more)
			continue
		}
		if err := j.isolate(id, err); err != nil {
			return err
		}
		j.agenda.Rest(id, again.Failed(id, err))
	}
}

func (j *Journal) stream(id firstcome.CampaignID) *stream {
	return j.actives.stream(id, func() *stream {
		return &stream{id: id, reader: reader{gate: j.gate, options: &j.options, consumer: j.consumer, unfinished: true, perEntry: 1}}
	})
}
