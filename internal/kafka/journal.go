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
	"github.com/firstcome/firstcome/internal/gate"
	"github.com/firstcome/firstcome/internal/point"
)

// A Ledger is what a Journal asks of the ledger, beside its sink.
type Ledger interface {
	// Active returns the campaigns of the gate that are not retired.
	Active(ctx context.Context) ([]gate.Revision, error)
	// Whose returns the marker of a campaign, whichever gate decides it. firstcome.ErrNoCampaign and gate.ErrRetired say that nothing of it
	// is to be recorded any more.
	Whose(ctx context.Context, id firstcome.CampaignID) (marker string, err error)
}

// A Gate is a remote gate whose entries go through a topic: see redis.Journal.
type Gate interface {
	// Settle tells how far a campaign is drained, and of dead letters: see flow.Holes.
	Settle(ctx context.Context, id firstcome.CampaignID, marker string, drained flow.Drained, entries ...string) (before int64, err error)
	// Behind returns how far each of these campaigns is drained at the gate, and what is left in the gate's own journal.
	Behind(ctx context.Context, active []gate.Revision) ([]flow.Undrained, error)
	// Lag returns how far the ledger is behind: see flow.Source.
	Lag(ctx context.Context, active []gate.Revision) ([]flow.Lag, error)
}

// JournalOptions are what a Journal needs beside the URL of a topic. The zero value of a duration or a number means its default.
type JournalOptions struct {
	// Name tells this ledger and secret from others whose batches the topic may have: recorders of one name share the work.
	Name string
	// Secret makes the codes.
	Secret firstcome.Secret
	// Owns tells whether a marker is of this ledger and secret. It, Ledger and Gate are what a recorder needs.
	Owns   func(marker string) bool
	Ledger Ledger
	Gate   Gate
	// Coupons is how many are in a batch, unless a record has more; default 2,000.
	Coupons int
	// Sweep is how often campaigns of which the gate knows less than the ledger are looked for; default 1 s.
	Sweep time.Duration
	// Patience is how long numbers may be missing with nothing on its way, before they are taken for gone; default 10 s.
	Patience time.Duration
	// OnAlarm, if set, gets what an operator should know; the same alarm about once a minute.
	OnAlarm func(firstcome.CampaignID, error)
	// OnFound, if set, gets what an operator should know of the topic once it is found.
	OnFound func(warnings []string)
}

const (
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
	// leaving bounds how long a recorder takes to leave its group.
	leaving = 2 * time.Second
	// untoldFor is how long a gate that did not answer is told nothing, while coupons are recorded.
	untoldFor = time.Second
)

// A Journal is a private topic between a gate's own journal and the ledger: a relay appends batches to it, and recorders drain it. The
// batches of a campaign are in one partition, in the order in which relays appended them, each at least once. Make one with OpenJournal.
//
//	gate's journal → relay (a flow.Recorder into Record, Bury) → topic → recorder (a flow.Recorder from Next) → ledger, gate
//
// Recorders of a name and a topic's id are a consumer group: each partition is with one of them. A record is done when it is acknowledged. What is done is
// committed about twice a second, up to the first record that is not, so that after any death, and any rebalance, nothing is skipped.
type Journal struct {
	topic    *topic
	options  JournalOptions
	inspects bool                       // it is there to be read only
	producer atomic.Pointer[kgo.Client] // nil: the topic is not found yet
	alarms   flow.Alarms

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

// Watch reads records, and calls ready with their campaigns: see flow.Source. Whatever may be over soon, such as a broker's restart, does not end it
// once it has found the topic. One Watch at a time.
func (j *Journal) Watch(ctx context.Context, ready func(firstcome.CampaignID)) error {
	c, err := j.consume(ctx, ready)
	if err == nil {
		defer c.leave()
		all, ctx2 := errgroup.WithContext(ctx)
		all.Go(func() error { return c.read(ctx2) })
		all.Go(func() error { return c.sweep(ctx2) })
		err = all.Wait()
	}
	if ctx.Err() != nil {
		return nil
	}
	if err = j.topic.explain(fmt.Errorf("drain the topic %s: %w", j.topic.name, err)); !errors.Is(err, errRecreated) {
		j.alarms.Tell("", err)
	}
	return err
}

// Next returns a batch of a campaign's first records: see flow.Source. If the gate has to be told how far the campaign is drained, it is an empty one.
func (j *Journal) Next(ctx context.Context, id firstcome.CampaignID) (b flow.Batch, receipt any, err error) {
	q := j.queue(id)
	if j.takes(&q.gone) {
		return b, nil, errGone
	}
	if q.marker == "" {
		if err := j.ask(ctx, q); err != nil {
			return b, nil, err
		}
	}
	if q.marker != "" && time.Since(q.untold) > untoldFor && j.takes(&q.tell) {
		b = flow.Batch{Campaign: id, Marker: q.marker}
		return b, &share{Batch: b}, nil
	}
	one, err := j.share(ctx, q)
	if err != nil || len(one.records) == 0 {
		return b, nil, err
	}
	return one.Batch, one, nil
}

// Ack notes that records are recorded, and tells the gate so: see flow.Source. If the gate does not answer, it is told later: that holds up no
// recording.
func (j *Journal) Ack(ctx context.Context, receipt any, drained flow.Drained) (before int64, err error) {
	one := receipt.(*share)
	j.done(one.records)
	q := j.queue(one.Campaign)
	if len(one.Coupons) > 0 {
		point.Reach(point.Given)
	}
	if time.Since(q.untold) < untoldFor {
		j.notes(&q.tell)
		return 0, nil
	}
	before, err = j.options.Gate.Settle(ctx, q.id, one.Marker, drained)
	if err == nil || errors.As(err, new(*flow.ToldError)) {
		return before, err
	}
	q.untold = time.Now()
	j.notes(&q.tell)
	if !errors.Is(err, firstcome.ErrBusy) { // unverified, for one: who rebuilds the gate loads what the ledger has
		j.alarms.Tell(q.id, fmt.Errorf("the gate does not hear what is recorded: %w", err))
	}
	return 0, nil
}
