package kafka

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"golang.org/x/sync/errgroup"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/flow"
	"github.com/firstcome/firstcome/internal/point"
	"github.com/firstcome/firstcome/internal/recovery"
)

// A Ledger is what a Journal asks of the ledger, beside its sink.
type Ledger interface {
	// Active returns the campaigns of the gate that are not retired.
	Active(ctx context.Context) ([]flow.Revision, error)
	// Whose returns the marker of a campaign, whichever gate decides it. firstcome.ErrNoCampaign and flow.ErrRetired say that nothing of it
	// is to be recorded any more.
	Whose(ctx context.Context, id firstcome.CampaignID) (marker string, err error)
}

// A Gate is a remote gate whose entries go through a topic: see redis.Gate.
type Gate interface {
	// Settle tells how far a campaign is drained, and of dead letters: see flow.Drained. The error may be a flow.ToldError.
	Settle(ctx context.Context, id firstcome.CampaignID, marker string, drained flow.Drained, entries ...string) (before int64, err error)
	// Behind returns how far each of these campaigns is drained at the gate, and what is left in the gate's own journal.
	Behind(ctx context.Context, active []flow.Revision) ([]flow.Undrained, error)
	// Stands returns flow.ErrUnverified if a campaign's holders may be those of an older state.
	Stands(ctx context.Context, r flow.Revision) error
	// Held calls each with the coupon in force of every holder of a campaign.
	Held(ctx context.Context, r recovery.Rebuild, each func(firstcome.Coupon) error) error
}

// JournalOptions are what a Journal needs beside the URL of a topic. The zero value of a duration or a number means its default.
type JournalOptions struct {
	// Name tells this ledger and secret from others whose batches the topic may have: recorders of one name share the work.
	Name string
	// Secret makes the codes.
	Secret firstcome.Secret
	// Owns tells whether a marker is of this ledger and secret. It, Ledger and Gate are what Drain needs.
	Owns   func(marker string) bool
	Ledger Ledger
	Gate   Gate
	// Workers is how many campaigns are drained side by side; default 4.
	Workers int
	// Coupons is how many are given to the sink at once, unless a record has more; default 2,000.
	Coupons int
	// Sweep is how often campaigns of which the gate knows less than the ledger are looked for; default 1 s.
	Sweep time.Duration
	// Patience is how long numbers may be missing, with nothing on its way, before they are taken for gone; default 10 s.
	Patience time.Duration
	// OnAlarm, if set, gets what an operator should know; the same alarm about once a minute.
	OnAlarm func(firstcome.CampaignID, error)
	// OnFound, if set, gets what an operator should know of the topic once it is found.
	OnFound func(warnings []string)
}

const (
	defaultWorkers  = 4
	defaultCoupons  = 2000
	defaultSweep    = time.Second
	defaultPatience = 10 * time.Second
	// commitEvery is how often offsets are committed: what was recorded since then is read again by whoever comes next.
	commitEvery = 500 * time.Millisecond
	// pollTime bounds how long one reading waits for records.
	pollTime = 100 * time.Millisecond
	// inHand bounds the bytes of records that are read and not recorded. A campaign that cannot be recorded holds up no other
	// campaign before its records are so many.
	inHand = 64 << 20
	// finishing is how long a batch under way may go on when Drain has to end.
	finishing = 2 * time.Second
	// untoldFor is how long a gate that did not answer is told nothing, while coupons are recorded.
	untoldFor = time.Second
)

// A Journal is a private topic between a gate's own journal and the ledger: a relay appends batches to it, and recorders drain it. The
// batches of a campaign are in one partition, in the order in which relays appended them, each at least once. Make one with OpenJournal.
//
//	gate's journal → relay (flow.Recorder into Record, Bury) → topic → recorder (flow.Recorder from Drain) → ledger, gate
//
// Recorders of a name and a topic's id are a consumer group: each partition is with one of them. A record is done when the sink has taken it. What is done is
// committed about twice a second, up to the first record that is not, so that after any death, and any rebalance, nothing is skipped.
type Journal struct {
	topic    *topic
	options  JournalOptions
	inspects bool                       // it is there to be read only
	producer atomic.Pointer[kgo.Client] // nil: the topic is not found yet
	alarms   flow.Alarms
	agenda   *flow.Agenda

	mu         sync.Mutex // guards what follows
	id         string     // of the topic; empty: it is not found yet
	partitions map[int32]*partition
	queues     map[firstcome.CampaignID]*queue
	bytes      int // of the records in hand
}

var (
	_ flow.Source = (*Journal)(nil)
	_ flow.Keeper = (*Journal)(nil)
)

// OpenJournal returns the Journal on the topic of a URL. That no broker answers is an alarm: then each call that needs the topic looks for it
// first, and fails until it is found. Any other error is a mistake in the set-up, and says what to do: the topic is not fit for a journal, or the
// user may not do all that it does.
func OpenJournal(ctx context.Context, url string, options JournalOptions) (*Journal, error) {
	j, err := newJournal(url, options)
	if err != nil {
		return nil, err
	}
	if err = j.Find(ctx); err != nil && !isAway(err) {
		return nil, err
	}
	if err != nil {
		j.alarms.Tell("", err)
	}
	return j, nil
}

// InspectJournal returns a Journal to read, of the recorders of a name and with the secret that makes codes: see Unrecorded.
func InspectJournal(ctx context.Context, url, name string, secret firstcome.Secret) (*Journal, error) {
	j, err := newJournal(url, JournalOptions{Name: name, Secret: secret})
	if err != nil {
		return nil, err
	}
	j.inspects = true
	if err := j.Find(ctx); err != nil {
		return nil, err
	}
	return j, nil
}

func newJournal(url string, options JournalOptions) (*Journal, error) {
	t, err := readURL(url)
	if err != nil {
		return nil, err
	}
	options.Workers = cmp.Or(options.Workers, defaultWorkers)
	options.Coupons = cmp.Or(options.Coupons, defaultCoupons)
	options.Sweep = cmp.Or(options.Sweep, defaultSweep)
	options.Patience = cmp.Or(options.Patience, defaultPatience)
	return &Journal{
		topic: t, options: options, alarms: flow.Alarms{On: options.OnAlarm}, partitions: map[int32]*partition{}, queues: map[firstcome.CampaignID]*queue{},
	}, nil
}

// Find finds the topic, if it is not found yet. The error says what to do.
func (j *Journal) Find(ctx context.Context) error {
	if j.producer.Load() != nil {
		return nil
	}
	client, err := j.topic.connect(ctx, producing(j.topic)...)
	if err != nil {
		return err
	}
	is, err := j.topic.look(ctx, client)
	var warnings []string
	if err == nil && !j.inspects {
		warnings, err = j.topic.fits(ctx, client, Waits, is, groupOf(j.options.Name, is.id))
	}
	if err != nil || !j.connects(client, "", is.id) {
		client.Close()
		return err
	}
	if j.options.OnFound != nil {
		j.options.OnFound(warnings)
	}
	return nil
}

// connects has the journal use a client of a topic in place of that of another id. It returns false if another call was faster.
func (j *Journal) connects(client *kgo.Client, was, id string) bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.id != was {
		return false
	}
	j.id = id
	if before := j.producer.Swap(client); before != nil {
		before.Close() // what is under way there comes again
	}
	return true
}

// client returns the client of the topic, which it finds first.
func (j *Journal) client(ctx context.Context) (*kgo.Client, error) {
	err := j.Find(ctx)
	return j.producer.Load(), err
}

// Close ends the connections.
func (j *Journal) Close() {
	if client := j.producer.Load(); client != nil {
		client.Close()
	}
}

// Topic returns the topic's name and its id, which another topic of the name does not have. The id is empty if the topic is not found yet.
func (j *Journal) Topic() (name, id string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.topic.name, j.id
}

// errRecreated says that a topic is not the one that it was.
var errRecreated = errors.New("the topic was recreated: what it had and nobody recorded is recorded from the gate's holders")

// refresh looks whether the topic is the one that it was. If it was recreated, it connects anew, because a client goes on with the one
// that it knows.
func (j *Journal) refresh(ctx context.Context) error {
	client, err := j.client(ctx)
	if err != nil {
		return err
	}
	_, was := j.Topic()
	is, err := j.topic.look(ctx, client)
	if err != nil || is.id == was {
		return err
	}
	if client, err = j.topic.connect(ctx, producing(j.topic)...); err != nil {
		return err
	}
	if !j.connects(client, was, is.id) {
		client.Close()
		return nil
	}
	j.alarms.Now("", fmt.Errorf("%s: %w", j.topic.name, errRecreated))
	return nil
}

// groupPrefix begins the names of recorders' groups.
const groupPrefix = "firstcome-recorders-"

// groupOf returns the consumer group of the recorders of a name at the topic of an id. A topic that is recreated has another group: what
// was committed before, or is committed late, says nothing of its records.
func groupOf(name, id string) string {
	sum := sha256.Sum256([]byte(name + " " + id))
	return groupPrefix + hex.EncodeToString(sum[:6])
}

// Record appends a batch to the topic: see flow.Keeper. It is durable when Record returns nil; how far the campaign is drained is not known.
func (j *Journal) Record(ctx context.Context, b flow.Batch) (flow.Drained, error) {
	records, err := recordsOf(b)
	var client *kgo.Client
	if err == nil {
		client, err = j.client(ctx)
	}
	if err == nil {
		err = client.ProduceSync(ctx, records...).FirstErr()
	}
	if err != nil {
		_ = j.refresh(ctx) // the next try may find another topic
		return flow.Drained{}, j.topic.explain(fmt.Errorf("append %d coupons of %s to the topic %s: %w", len(b.Coupons), b.Campaign, j.topic.name, err))
	}
	return flow.Drained{}, nil
}

// Bury appends a batch's garbage to the topic. A recorder buries it.
func (j *Journal) Bury(ctx context.Context, b flow.Batch, _ string) (flow.Drained, error) {
	return j.Record(ctx, b)
}

// JournalStats are what a Journal has in hand.
type JournalStats struct {
	InHand int           // records that were read and are not recorded
	Oldest time.Duration // how long ago the oldest of them was appended
}

// Stats returns what is in hand.
func (j *Journal) Stats() (s JournalStats) {
	j.mu.Lock()
	defer j.mu.Unlock()
	for _, p := range j.partitions {
		for _, one := range p.pending {
			if !one.over {
				s.InHand++
				s.Oldest = max(s.Oldest, time.Since(one.record.Timestamp))
			}
		}
	}
	return s
}

// Drain gives batches to a sink until ctx ends: see flow.Source. One Drain at a time.
func (j *Journal) Drain(ctx context.Context, to flow.Sink, again *flow.Retries) error {
	to = flow.Marked(to)
	j.agenda = flow.NewAgenda(again.Locked)
	c, err := j.consume(ctx)
	if err != nil {
		return j.ends(ctx, err)
	}
	defer c.leave()
	all, ctx2 := errgroup.WithContext(ctx)
	all.Go(func() error { return c.read(ctx2) })
	all.Go(func() error { return c.sweep(ctx2) })
	for range j.options.Workers {
		all.Go(func() error { return j.work(ctx2, to, again, flow.Free) })
	}
	all.Go(func() error { return j.work(ctx2, to, again, flow.Locked) })
	return j.ends(ctx, all.Wait())
}

// ends says why a Drain ends; nil: it was to. Nobody else tells an operator.
func (j *Journal) ends(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return nil
	}
	if err = j.topic.explain(fmt.Errorf("drain the topic %s: %w", j.topic.name, err)); !errors.Is(err, errRecreated) {
		j.alarms.Tell("", err)
	}
	return err
}

// work drains campaigns in turn. One that fails rests.
func (j *Journal) work(ctx context.Context, to flow.Sink, again *flow.Retries, of flow.Shelf) error {
	for {
		id, ok := j.agenda.Next(ctx, of)
		if !ok {
			return ctx.Err()
		}
		longer, cancel := flow.Outlasting(ctx, finishing)
		more, err := j.drain(longer, j.queue(id), to)
		cancel()
		if err == nil {
			again.Drained(id)
			j.agenda.Done(id, more)
			continue
		}
		if !flow.ToldBySink(err) {
			j.alarms.Tell(id, err)
		}
		j.agenda.Rest(id, again.Failed(id, err))
	}
}

// drain gives some of a campaign's records to the sink. more tells that there are others. That the gate cannot be asked what is missing holds up
// nothing that is here.
func (j *Journal) drain(ctx context.Context, q *queue, to flow.Sink) (more bool, err error) {
	unhealed := j.heal(ctx, q, to)
	if q.marker == "" {
		if err := j.ask(ctx, q); err != nil {
			return false, err
		}
	}
	if q.marker != "" && j.tells(q, false) {
		if err := j.give(ctx, q, to, flow.Batch{Campaign: q.id, Marker: q.marker}); err != nil {
			return false, err
		}
	}
	parts, err := j.parts(ctx, q)
	if err != nil {
		return false, err
	}
	for _, p := range parts {
		if err := j.give(ctx, q, to, p.Batch); err != nil {
			return false, err
		}
		j.done(p.records)
	}
	_, more = j.next(q)
	return more, unhealed
}

// give gives a batch to the sink, and tells the gate what the ledger said. The ledger has the batch then: if the gate does not answer, it
// is told later.
func (j *Journal) give(ctx context.Context, q *queue, to flow.Sink, b flow.Batch) error {
	if b.Told = q.told; len(b.Coupons) > 0 {
		point.Reach(point.Taken)
	}
	drained, err := to(ctx, b)
	if err != nil {
		return fmt.Errorf("record %d coupons of %s: %w", len(b.Coupons), q.id, err)
	}
	if len(b.Coupons) > 0 {
		j.follow(q, b.Coupons[0].Number, drained.Through)
		point.Reach(point.Given)
	}
	if drained.Twice {
		j.alarms.Tell(q.id, flow.ErrTwice)
	}
	if time.Since(q.untold) < untoldFor {
		j.tells(q, true)
		return nil
	}
	err = flow.Settle(ctx, b, drained, to, &q.told, func(d flow.Drained) error {
		_, err := j.options.Gate.Settle(ctx, q.id, b.Marker, d)
		return err
	})
	if err != nil {
		q.untold = time.Now()
		j.tells(q, true)
		if !errors.Is(err, firstcome.ErrBusy) { // unverified, for one: who rebuilds the gate loads what the ledger has
			j.alarms.Tell(q.id, fmt.Errorf("the gate does not hear what is recorded: %w", err))
		}
		return nil
	}
	if len(b.Coupons) > 0 {
		point.Reach(point.Settled)
	}
	return nil
}
