package redis

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strconv"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/gate"
	"github.com/firstcome/firstcome/internal/record"
)

// ConsumerOptions say how a Consumer drains the journals. The zero value of a field means its default.
type ConsumerOptions struct {
	// Active returns the campaigns of this gate that may have something to drain, as the
	// ledger knows them. Required.
	Active func(context.Context) ([]gate.Revision, error)
	// Relay means that the entries go to a topic, and not to the ledger. The topic's recorders then tell the gate how far it is drained, and the
	// journal does not. An entry that is gone from the journal is no hole.
	Relay bool
	// Coupons is how many are in a batch, unless a single entry has more; default 2,000.
	Coupons int
	// Idle is how long an entry may be with a recorder that does not claim it again, before
	// another recorder takes it over; default 5 s.
	Idle time.Duration
	// Sweep is how often the active campaigns are polled; default 1 s. Issued coupons also
	// wake the journal.
	Sweep time.Duration
	// Slow is how often a closed and fully recorded campaign is polled while its revision is
	// the same; default 1 min.
	Slow time.Duration
	// OnAlarm, if set, gets what an operator should know: campaigns that cannot be looked at, and entries of a newer release; the
	// same alarm about once a minute. The id is empty if it is about no single campaign, such as when nothing wakes the journal.
	OnAlarm func(firstcome.CampaignID, error)
}

const (
	// 2,000 rows are a transaction of some 20 ms on a SQL server.
	defaultCoupons = 2000
	// A recorder claims its entries again each third of this time, so a pause of garbage
	// collection or a slow network costs nothing.
	defaultIdle  = 5 * time.Second
	defaultSweep = time.Second
	// A closed campaign may issue again, after its window was extended or the gate's clock went back. Its coupons
	// wait at most so long if a message is lost and the ledger has no new revision.
	defaultSlow = time.Minute
	// maxEntries is the most entries of a campaign in work at once. pageEntries is the most that one command
	// reads. A page of entries of 512 claims is some 50,000 coupons, or 20 MB. Two thousand entries of one
	// coupon take twenty commands, about a millisecond.
	maxEntries  = 2000
	pageEntries = 100
)

// A Consumer hands out the coupons that a Gate issued. Several, in one or many processes, share the
// work: each entry is with one Consumer, and another takes over the entries that it leaves
// unfinished. Entries are deleted when they are acknowledged. Make one with Journal.Consumer.
//
// While a recorder works on a batch, the journal keeps claiming all entries that it has read. If it cannot, another recorder gets
// them too. That does no harm: recording a batch twice is the same as once.
type Consumer struct {
	journal  *Journal
	options  ConsumerOptions
	consumer string
	schedule schedule
	alarms   record.Alarms
	actives  actives
}

var _ record.Source = (*Consumer)(nil)

// Consumer returns a new consumer of the journals.
func (j *Journal) Consumer(options ConsumerOptions) *Consumer {
	options.Coupons = cmp.Or(options.Coupons, defaultCoupons)
	options.Idle = cmp.Or(options.Idle, defaultIdle)
	options.Sweep = cmp.Or(options.Sweep, defaultSweep)
	options.Slow = cmp.Or(options.Slow, defaultSlow)
	return &Consumer{
		journal: j, options: options, consumer: rand.Text(), schedule: schedule{slow: options.Slow},
		alarms: record.Alarms{On: options.OnAlarm}, actives: actives{unknown: make(chan struct{}, 1)},
	}
}

// Watch calls ready with campaigns of which something was issued: when a message says so, and when a sweep finds it. An error is Redis's.
func (c *Consumer) Watch(ctx context.Context, ready func(firstcome.CampaignID)) error {
	c.actives.set(nil) // what was left unfinished is looked for
	all, ctx2 := errgroup.WithContext(ctx)
	all.Go(func() error { return c.listen(ctx2, ready) })
	all.Go(func() error { return c.sweep(ctx2, ready) })
	err := all.Wait()
	if ctx.Err() != nil {
		return nil
	}
	return fmt.Errorf("watch the Redis journal: %w", err)
}

// sweep calls ready with the active campaigns that have something to drain.
func (c *Consumer) sweep(ctx context.Context, ready func(firstcome.CampaignID)) error {
	tick := time.NewTicker(c.options.Sweep)
	defer tick.Stop()
	for {
		// Without the ledger the last list will do: nothing can be recorded now.
		active, err := c.options.Active(ctx)
		if err == nil {
			c.actives.set(active)
		}
		if err := c.look(ctx, ready); err != nil {
			return err
		}
		select {
		case <-tick.C:
			c.actives.tick()
		case <-c.actives.unknown:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// look calls ready with due campaigns if their journals have entries, or if they are not drained through their last number. One that cannot
// be looked at keeps no other from it.
func (c *Consumer) look(ctx context.Context, ready func(firstcome.CampaignID)) error {
	return c.journal.pollAll(ctx, &c.schedule, c.actives.list(), func(r gate.Revision, s polled) error {
		switch {
		case s.err != nil && !ofOne(s.err):
			return s.err
		case s.err != nil:
			c.schedule.soon(r.Campaign)
			c.alarms.Raise(r.Campaign, s.err)
		case s.entries > 0 || !c.options.Relay && (c.differs(r, s) || !s.idle()):
			ready(r.Campaign)
		}
		return nil
	})
}

// differs notes that gate and ledger disagree on how far a campaign is drained, though its journal is empty. Then the gate
// was not told, the ledger is an older copy, or the campaign went on between the two readings. Even with entries in the
// journal, it notes that the ledger has numbers that the gate never gave. A gate in an epoch that has ended is told nothing.
func (c *Consumer) differs(r gate.Revision, s polled) bool {
	if r.CampaignUID == "" || s.fields[1] == strconv.FormatInt(r.Drained, 10) {
		return false
	}
	if epoch, err := strconv.ParseInt(s.fields[3], 10, 64); err == nil && epoch < r.Epoch {
		return false
	}
	if s.absent() && s.entries == 0 && r.Drained == 0 { // it is being made
		return false
	}
	if last, err := strconv.ParseInt(s.fields[0], 10, 64); s.entries > 0 && (err != nil || last >= r.Drained) {
		return false
	}
	c.stream(r.Campaign).differs.Store(true)
	return true
}

func (c *Consumer) stream(id firstcome.CampaignID) *stream {
	return c.actives.stream(id, func() *stream {
		return &stream{id: id, reader: reader{conn: c.journal.conn, options: &c.options, consumer: c.consumer, unfinished: true, perEntry: 1}}
	})
}

// Lag returns how far the ledger is behind: see Journal.Lag.
func (c *Consumer) Lag(ctx context.Context, active []gate.Revision) ([]record.Lag, error) {
	return c.journal.Lag(ctx, active)
}

// ofSource marks an error that is no single campaign's.
func ofSource(err error) error {
	if err == nil || ofOne(err) {
		return err
	}
	return fmt.Errorf("%w: %w", record.ErrSource, err)
}

// listen calls ready with campaigns as soon as something is issued, until ctx ends.
// Nobody has to hear it: the sweep finds the same, later.
func (c *Consumer) listen(ctx context.Context, ready func(firstcome.CampaignID)) error {
	told := false
	for {
		err := c.journal.conn.subscribe(ctx, c.journal.conn.wakeChannel(), func() { told = false }, func(message string) {
			if id, err := firstcome.ParseCampaignID(message); err == nil {
				c.wake(id, ready)
			}
		})
		if e := (*Error)(nil); errors.As(err, &e) && e.Fatal() && !told {
			told = true
			c.alarms.Now("", fmt.Errorf("nothing wakes the journal, which looks by itself every %s: %w", c.options.Sweep, err))
		}
		pause := time.NewTimer(c.options.Sweep)
		select {
		case <-pause.C:
		case <-ctx.Done():
			pause.Stop()
			return ctx.Err()
		}
	}
}

// wake calls ready with a campaign, if it is active.
func (c *Consumer) wake(id firstcome.CampaignID, ready func(firstcome.CampaignID)) {
	if _, active := c.actives.revision(id); !active {
		c.actives.ask()
		return
	}
	c.schedule.soon(id)
	ready(id)
}
