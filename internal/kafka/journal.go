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
	"github.com/firstcome/firstcome/internal/gate"
	"github.com/firstcome/firstcome/internal/point"
	"github.com/firstcome/firstcome/internal/record"
)

// A Ledger is the part of a ledger that a Journal reads.
type Ledger interface {
	// Active returns the campaigns of the gate that are not retired.
	Active(ctx context.Context) ([]gate.Revision, error)
	// Whose returns the UID of a campaign, whichever gate decides it. firstcome.ErrNoCampaign and gate.ErrRetired mean that no more coupons of it may
	// be recorded.
	Whose(ctx context.Context, id firstcome.CampaignID) (uid string, err error)
}

// A Gate is the part of a remote gate that a Journal needs. redis.Journal implements it.
type Gate interface {
	// Settle reports to the gate how far a campaign is drained, and its dead letters: see record.Holes.
	Settle(ctx context.Context, id firstcome.CampaignID, uid string, drained record.Result, entries ...string) (before int64, err error)
	// Behind returns how far each of these campaigns is drained at the gate, and how many entries the gate's own journal has.
	Behind(ctx context.Context, active []gate.Revision) ([]record.Undrained, error)
	// Lag returns how far the ledger lags behind the gate: see record.Source.
	Lag(ctx context.Context, active []gate.Revision) ([]record.Lag, error)
}

// JournalOptions are the options of a Journal. The zero value of a duration or a number means its default.
type JournalOptions struct {
	// Name distinguishes this ledger and secret from others whose batches the topic may have. Recorders of one name share the work.
	Name string
	// Secret derives the coupons' codes.
	Secret firstcome.Secret
	// Owns reports whether a UID belongs to this ledger and secret. A recorder needs Owns, Ledger and Gate; a relay does not.
	Owns   func(uid string) bool
	Ledger Ledger
	Gate   Gate
	// Coupons is the most coupons of a batch, unless a record has more; default 2,000.
	Coupons int
	// Sweep is how often a recorder looks for campaigns whose gate is drained less far than the ledger; default 1 s.
	Sweep time.Duration
	// Patience is how long numbers may be missing, with no records on their way, before they count as lost by the topic; default 10 s.
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
	// commitEvery is how often offsets are committed. The next recorder of a partition reads records that were recorded since then again.
	commitEvery = 500 * time.Millisecond
	// pollTime is the longest wait of one poll for records.
	pollTime = 100 * time.Millisecond
	// inHand is the most bytes of records that a recorder has read and not recorded. A campaign that cannot be recorded holds up no other campaign
	// before its records reach this limit.
	inHand = 64 << 20
	// leaving is the time-out of leaving the consumer group.
	leaving = 2 * time.Second
	// reportPause is how long a recorder sends a gate no reports after the gate did not answer. It continues to record coupons.
	reportPause = time.Second
)

// A Journal is a private topic between a gate's own journal and the ledger: a relay appends batches to it, and recorders drain it. The batches of a
// campaign are in one partition, in the order in which relays appended them, each at least once. Make one with OpenJournal.
//
//	gate's journal → relay (a record.Recorder into Record, Bury) → topic → recorder (a record.Recorder from Next) → ledger, gate
//
// Recorders of one name and topic id form a consumer group, which gives each partition to one of them. A record is done when its batch is
// acknowledged. About twice a second a recorder commits the offset of each partition before its first record that is not done. So nothing is skipped
// after any crash or rebalance.
type Journal struct {
	topic    *topic
	options  JournalOptions
	inspects bool                       // it only reads
	producer atomic.Pointer[kgo.Client] // nil until the topic is found
	alarms   record.Alarms

	mu         sync.Mutex // guards what follows
	id         string     // of the topic; empty until it is found
	partitions map[int32]*partition
	queues     map[firstcome.CampaignID]*queue
	bytes      int // of the records in hand
}

var (
	_ record.Source = (*Journal)(nil)
	_ record.Keeper = (*Journal)(nil)
)

// OpenJournal returns the Journal on the topic of a URL. If no broker answers, it raises an alarm: then each call that needs the topic first tries to
// find it, and fails until it succeeds. Any other error is a mistake in the configuration, and says what to do: the topic is not suitable for a
// journal, or the user lacks a right.
func OpenJournal(ctx context.Context, url string, options JournalOptions) (*Journal, error) {
	j, err := newJournal(url, options)
	if err != nil {
		return nil, err
	}
	if err = j.Find(ctx); err != nil && !isAway(err) {
		return nil, err
	}
	if err != nil {
		j.alarms.Raise("", err)
	}
	return j, nil
}

// InspectJournal returns a Journal for reading only, of the recorders of a name and with the secret that derives codes: see Unrecorded.
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
		topic: t, options: options, alarms: record.Alarms{On: options.OnAlarm}, partitions: map[int32]*partition{}, queues: map[firstcome.CampaignID]*queue{},
	}, nil
}

// Find finds the topic, unless it is already found. The error says what to do.
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

// connects replaces the journal's client and topic id, if the id is still was. It returns false if another call was faster.
func (j *Journal) connects(client *kgo.Client, was, id string) bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.id != was {
		return false
	}
	j.id = id
	if before := j.producer.Swap(client); before != nil {
		before.Close() // batches on their way come again
	}
	return true
}

// client returns the client of the topic. It finds the topic first if necessary.
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

// Topic returns the topic's name and id. A recreated topic has another id. The id is empty until the topic is found.
func (j *Journal) Topic() (name, id string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.topic.name, j.id
}

// errRecreated means that the topic was deleted and created again.
var errRecreated = errors.New("the topic was recreated: coupons that it had and that were not recorded are recorded from the gate's holders")

// refresh checks whether the topic was recreated, and then connects again, because a client keeps using the topic that it knows.
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

// groupOf returns the consumer group of the recorders of a name at the topic of an id. A recreated topic has another group, so that offsets committed
// for the old topic, even late, do not count for the new one.
func groupOf(name, id string) string {
	sum := sha256.Sum256([]byte(name + " " + id))
	return groupPrefix + hex.EncodeToString(sum[:6])
}

// Record appends a batch to the topic: see record.Keeper. The batch is durable when Record returns nil. How far the campaign is drained is not
// returned.
func (j *Journal) Record(ctx context.Context, b record.Batch) (record.Result, error) {
	client, err := j.client(ctx)
	if err == nil {
		_, err = j.topic.produceSplit(ctx, client, func(limit int) ([]*kgo.Record, error) { return recordsOf(b, limit) })
	}
	if err != nil {
		_ = j.refresh(ctx) // the next try may find a recreated topic
		return record.Result{}, j.topic.explain(fmt.Errorf("append %d coupons of %s to the topic %s: %w", len(b.Coupons), b.Campaign, j.topic.name, err))
	}
	return record.Result{}, nil
}

// Bury appends a batch's garbage to the topic. A recorder makes it dead letters.
func (j *Journal) Bury(ctx context.Context, b record.Batch, _ string) (record.Result, error) {
	return j.Record(ctx, b)
}

// JournalStats are the records that a Journal has read and not recorded.
type JournalStats struct {
	InHand int           // number of records that are read and not recorded
	Oldest time.Duration // time since the oldest of these records was appended
}

// Stats returns the state of the records in hand.
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

// Watch reads records, and calls ready with their campaigns: see record.Source. Once it has found the topic, temporary errors, such as a broker's
// restart, do not end it. Only one Watch may run at a time.
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
		j.alarms.Raise("", err)
	}
	return err
}

// Next returns a batch of a campaign's first records: see record.Source. The batch is empty if the gate must be told how far the campaign is drained.
func (j *Journal) Next(ctx context.Context, id firstcome.CampaignID) (b record.Batch, receipt any, err error) {
	q := j.queue(id)
	if j.takes(&q.gone) {
		return b, nil, errGone
	}
	if q.campaignUID == "" {
		if err := j.ask(ctx, q); err != nil {
			return b, nil, err
		}
	}
	if q.campaignUID != "" && time.Since(q.unreported) > reportPause && j.takes(&q.tell) {
		b = record.Batch{Campaign: id, CampaignUID: q.campaignUID}
		return b, &share{Batch: b}, nil
	}
	one, err := j.share(ctx, q)
	if err != nil || len(one.records) == 0 {
		return b, nil, err
	}
	return one.Batch, one, nil
}

// Ack notes that records are recorded, and reports that to the gate: see record.Source. If the gate does not answer, it gets the report later, and
// recording continues.
func (j *Journal) Ack(ctx context.Context, receipt any, drained record.Result) (before int64, err error) {
	one := receipt.(*share)
	j.done(one.records)
	q := j.queue(one.Campaign)
	if len(one.Coupons) > 0 {
		point.Reach(point.Given)
	}
	if time.Since(q.unreported) < reportPause {
		j.notes(&q.tell)
		return 0, nil
	}
	before, err = j.options.Gate.Settle(ctx, q.id, one.CampaignUID, drained)
	if err == nil || errors.As(err, new(*record.MissedLettersError)) {
		return before, err
	}
	q.unreported = time.Now()
	j.notes(&q.tell)
	if !errors.Is(err, firstcome.ErrBusy) { // ErrBusy includes an unverified gate: its rebuild will load the ledger
		j.alarms.Raise(q.id, fmt.Errorf("the gate could not be told which coupons are recorded: %w", err))
	}
	return 0, nil
}
