package kafka

import (
	"context"
	"fmt"
	"hash/fnv"
	"slices"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/flow"
)

// LoggedLines lists the lines that have a log.
type LoggedLines interface {
	// LineLogs calls each with the campaigns of this node's gate whose lines have a log, from the first offset on that counts, unless they are
	// closed for good.
	LineLogs(ctx context.Context, each func(firstcome.CampaignID, firstcome.LineLog)) error
}

// LineLogOptions are what a LineLog needs beside the URL of a topic.
type LineLogOptions struct {
	// Lines is what Run looks after.
	Lines LoggedLines
	// OnAlarm, if set, gets what an operator should know; the same alarm about once a minute.
	OnAlarm func(firstcome.CampaignID, error)
	// OnFound, if set, gets what an operator should know of the topic once it is found.
	OnFound func(warnings []string)
}

// A LineLog is a topic that has a copy of the places in waiting lines, which only a recovery reads:
//
//	gate: a ticket → Append, acks=all → flow.Teller: does the epoch still decide? → told
//	recovery: freeze the gate → End → Read up to there → recovery.Fold → load the gate
//
// A campaign's records are in one partition, which it shares with others: the key of each is the campaign. Run looks whether the topic still has
// what was appended, and nothing is appended to a log that lacks some of it.
//
// Make one with OpenLineLog. While the topic is not found yet, Run looks for it, and each other method looks for it once or returns
// firstcome.ErrLineLogAway.
type LineLog struct {
	topic   *topic
	options LineLogOptions
	alarms  flow.Alarms

	mu     sync.Mutex  // guards what follows
	id     string      // of the topic; empty if it is not found yet
	client *kgo.Client // nil likewise
	lost   map[firstcome.CampaignID]error
	rests  map[int32]appendRest // by partition
}

var _ flow.LineLog = (*LineLog)(nil)

// An appendRest keeps others from waiting for a partition that just took no records.
type appendRest struct {
	until time.Time
	why   error
}

// OpenLineLog returns the LineLog on the topic of a URL. That no broker answers is an alarm, and Run goes on looking for the topic. Any other
// error is a mistake in the set-up, and says what to do.
func OpenLineLog(ctx context.Context, url string, options LineLogOptions) (*LineLog, error) {
	t, err := readURL(url)
	if err != nil {
		return nil, err
	}
	l := &LineLog{topic: t, options: options, alarms: flow.Alarms{On: options.OnAlarm}, rests: map[int32]appendRest{}}
	_, err = l.look(ctx)
	if err != nil && !isAway(err) {
		return nil, err
	}
	if err != nil {
		l.alarms.Tell("", err)
	}
	return l, nil
}

// Close ends the connections.
func (l *LineLog) Close() {
	if client, _ := l.connection(); client != nil {
		client.Close()
	}
}

// Topic returns the topic's name and its id, which another topic of the name does not have. The id is empty if the topic is not found yet.
func (l *LineLog) Topic() (name, id string) {
	_, id = l.connection()
	return l.topic.name, id
}

// connection returns the client and the id of the topic that it appends to, or nil.
func (l *LineLog) connection() (*kgo.Client, string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.client, l.id
}

// connects replaces the client and the id of a topic. It returns false if another call was faster.
func (l *LineLog) connects(client *kgo.Client, id, was string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.id != was {
		return false
	}
	if l.client != nil {
		l.client.Close()
	}
	l.client, l.id = client, id
	return true
}

// look asks how the topic is. If it is not found yet, or was made again, it connects again, because a client goes on with the topic that it knows.
func (l *LineLog) look(ctx context.Context) (found, error) {
	if client, was := l.connection(); client != nil {
		is, err := l.topic.look(ctx, client)
		if err != nil || is.id == was {
			return is, err
		}
		l.connects(nil, "", was) // nothing is appended to the new one before it is found to be fit
	}
	client, err := l.topic.connect(ctx, appending(l.topic)...)
	if err != nil {
		return found{}, err
	}
	is, err := l.topic.look(ctx, client)
	var warnings []string
	if err == nil {
		warnings, err = l.topic.fits(ctx, client, Lines, is, "")
	}
	if err != nil || !l.connects(client, is.id, "") {
		client.Close()
		return is, err
	}
	if l.options.OnFound != nil {
		l.options.OnFound(warnings)
	}
	return is, nil
}

// Run looks every two seconds, until ctx ends, whether the topic is there and has all that was appended. If it does not, that is an alarm of each
// campaign that lacks some, and nothing is appended for it.
func (l *LineLog) Run(ctx context.Context) error {
	for ctx.Err() == nil {
		if err := l.check(ctx); err != nil && ctx.Err() == nil {
			l.alarms.Tell("", err)
		}
		wait(ctx, topicEvery)
	}
	return nil
}

// check finds out which logs lack something. The topic is asked after the list: a log that begins where the topic ends now is whole.
func (l *LineLog) check(ctx context.Context) error {
	logs := map[firstcome.CampaignID]firstcome.LineLog{}
	err := l.options.Lines.LineLogs(ctx, func(id firstcome.CampaignID, log firstcome.LineLog) { logs[id] = log })
	if err != nil {
		return fmt.Errorf("list the lines that have a log: %w", err)
	}
	is, err := l.look(ctx)
	if err != nil {
		return err
	}
	lost := map[firstcome.CampaignID]error{}
	for id, log := range logs {
		if err := l.topic.whole(is, id, log); err != nil {
			lost[id] = err
			l.alarms.Tell(id, err)
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lost = lost
	return nil
}

// whole returns a firstcome.ErrLineLogLost if a topic is not that of a log, or lacks offsets from the log's first on.
func (t *topic) whole(is found, id firstcome.CampaignID, log firstcome.LineLog) error {
	switch p := int(log.Partition); {
	case log.Topic != is.id:
		return t.another(is.id, id, log)
	case p < 0 || p >= len(is.ends):
		return lostLog(id, "the topic %s has no partition %d", t.name, p)
	case is.starts[p] > log.First:
		return lostLog(id, "the partition %d of the topic %s has no records before offset %d any more, and the line's begin at %d: they were deleted, by hand or by the topic's retention",
			p, t.name, is.starts[p], log.First)
	case is.ends[p] < log.First:
		return lostLog(id, "the partition %d of the topic %s ends at offset %d, and the line's records begin at %d: Kafka has lost records", p, t.name, is.ends[p], log.First)
	}
	return nil
}

// another says that the topic has another id than that of a log.
func (t *topic) another(is string, id firstcome.CampaignID, log firstcome.LineLog) error {
	return lostLog(id, "the topic %s was made again, or is another one: it has the id %s, and that of the line's log is %s", t.name, is, log.Topic)
}

// lostLog returns a firstcome.ErrLineLogLost that says why, and what an operator can do.
func lostLog(id firstcome.CampaignID, why string, args ...any) error {
	return fmt.Errorf("%w: %s: firstcome gate rebuild %s --without-line-log takes the line from what the gate still has, and logs it again",
		firstcome.ErrLineLogLost, fmt.Sprintf(why, args...), id)
}

// Place returns where the line of a campaign is logged from now on. The partition goes by the campaign's id.
func (l *LineLog) Place(ctx context.Context, id firstcome.CampaignID) (log firstcome.LineLog, err error) {
	is, err := l.look(ctx)
	if err != nil {
		return log, away(err)
	}
	hash := fnv.New32a()
	_, _ = hash.Write([]byte(id)) // which never fails
	log = firstcome.LineLog{Topic: is.id, Partition: int32(hash.Sum32() % uint32(len(is.ends)))}
	log.First = is.ends[log.Partition]
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.lost, id) // that was the log before
	return log, nil
}

// Append appends records of a campaign: see flow.LineLog. It takes no longer than joinTime. While a partition takes none, it fails at once for
// joinRest, with the reason.
func (l *LineLog) Append(ctx context.Context, id firstcome.CampaignID, records []flow.LineRecord) error {
	if len(records) == 0 {
		return nil
	}
	log := records[0].LineLog
	client, err := l.takes(id, log)
	if err != nil {
		return err
	}
	all := lineRecordsOf(id, records)
	if err := appendAll(ctx, client, all); err != nil {
		err = away(l.topic.explain(fmt.Errorf("append %d places of %s to the topic %s: %w", len(records), id, l.topic.name, err)))
		if ctx.Err() == nil { // else the caller was in a hurry, which says nothing of the topic
			l.fails(log.Partition, err)
			l.alarms.Tell(id, err)
		}
		return err
	}
	for _, r := range all {
		if first := log.First; r.Offset < first {
			err := lostLog(id, "a place has the offset %d of the partition %d of the topic %s, and the epoch's begin at %d: Kafka has lost records, or the topic was made again",
				r.Offset, log.Partition, l.topic.name, first)
			l.alarms.Tell(id, err)
			return err
		}
	}
	return nil
}

// takes returns the client that appends to a log, or why nothing is to be appended now.
func (l *LineLog) takes(id firstcome.CampaignID, log firstcome.LineLog) (*kgo.Client, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch rest := l.rests[log.Partition]; {
	case l.client == nil:
		return nil, away(fmt.Errorf("the topic %s is not found yet", l.topic.name))
	case log.Topic != l.id:
		return nil, l.topic.another(l.id, id, log)
	case l.lost[id] != nil:
		return nil, l.lost[id]
	case time.Now().Before(rest.until):
		return nil, rest.why
	}
	return l.client, nil
}

// fails keeps others from appending to a partition for a while.
func (l *LineLog) fails(partition int32, why error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.rests[partition] = appendRest{time.Now().Add(joinRest), why}
}

// End returns the offset behind the last record of a log's partition. Whatever was appended before is below it.
func (l *LineLog) End(ctx context.Context, id firstcome.CampaignID, log firstcome.LineLog) (int64, error) {
	is, err := l.has(ctx, id, log, log.First)
	if err != nil {
		return 0, err
	}
	return is.ends[log.Partition], nil
}

// Read calls each with the records of a campaign in a log, before an end, in their order. They do not say where they are logged. Records that
// are not a campaign's, or cannot be read, are passed over: others may write to the topic too. A firstcome.ErrLineLogLost says that the topic lacks
// some. After an error, what each was called with counts for nothing.
func (l *LineLog) Read(ctx context.Context, id firstcome.CampaignID, log firstcome.LineLog, end int64, each func(offset int64, r flow.LineRecord) error) error {
	is, err := l.has(ctx, id, log, end)
	if err != nil {
		return err
	}
	begin := slices.Clone(is.ends) // nothing is read of the other partitions
	begin[log.Partition], is.ends[log.Partition] = log.First, end
	var refused error
	err = l.topic.readAll(ctx, begin, is.ends, func(r *kgo.Record) error {
		refused = readLineRecord(id, r, func(read flow.LineRecord) error { return each(r.Offset, read) })
		return refused
	}, ctx.Err, kgo.KeepControlRecords())
	switch {
	case refused != nil:
		return refused
	case err != nil:
		return away(err)
	}
	_, err = l.has(ctx, id, log, end) // else it was another topic, or records were deleted before they were read
	return err
}

// has asks how the topic is, and returns an error unless it has all of a log up to an end.
func (l *LineLog) has(ctx context.Context, id firstcome.CampaignID, log firstcome.LineLog, end int64) (found, error) {
	is, err := l.look(ctx)
	if err != nil {
		return is, away(err)
	}
	err = l.topic.whole(is, id, log)
	if err == nil && is.ends[log.Partition] < end {
		err = lostLog(id, "the partition %d of the topic %s ends at offset %d, and had records up to %d: Kafka has lost records", log.Partition, l.topic.name, is.ends[log.Partition], end)
	}
	return is, err
}
