package kafka

import (
	"context"
	"fmt"
	"hash/fnv"
	"slices"
	"sync"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/line"
	"github.com/firstcome/firstcome/internal/record"
	"github.com/firstcome/firstcome/internal/wait"
)

// LoggedLines lists the lines that have a log.
type LoggedLines interface {
	// LineLogs calls each with the campaigns of this node's gate whose lines have a log, and with the log and its first offset that counts. It leaves
	// out closed campaigns.
	LineLogs(ctx context.Context, each func(firstcome.CampaignID, firstcome.LineLog)) error
}

// LineLogOptions are the options of a LineLog.
type LineLogOptions struct {
	// Lines lists the logs that Run checks.
	Lines LoggedLines
	// OnAlarm, if set, gets what an operator should know; the same alarm about once a minute.
	OnAlarm func(firstcome.CampaignID, error)
	// OnFound, if set, gets what an operator should know of the topic once it is found.
	OnFound func(warnings []string)
}

// A LineLog is a topic with a copy of the places in waiting lines. Only a recovery reads it:
//
//	gate issues a ticket → Append, acks=all → line.Teller checks that the epoch still decides → user is told
//	recovery freezes the gate → End → Read up to there → recovery.Fold → recovery loads the gate
//
// A campaign's records are in one partition, which it shares with other campaigns: the key of each record is the campaign. Run checks whether the
// topic still has all records, and nothing is appended to a log that lacks some.
//
// Make one with OpenLineLog. Until the topic is found, Run looks for it, and each other method looks for it once or returns firstcome.ErrLineLogAway.
type LineLog struct {
	topic   *topic
	options LineLogOptions
	alarms  record.Alarms

	mu     sync.Mutex  // guards what follows
	id     string      // of the topic; empty until it is found
	client *kgo.Client // nil until the topic is found
	gone   map[firstcome.CampaignID]error
	rests  map[int32]appendRest // by partition
}

var _ line.Log = (*LineLog)(nil)

// OpenLineLog returns the LineLog on the topic of a URL. If no broker answers, it raises an alarm, and Run keeps looking for the topic. Any other
// error is a mistake in the configuration, and says what to do.
func OpenLineLog(ctx context.Context, url string, options LineLogOptions) (*LineLog, error) {
	t, err := readURL(url)
	if err != nil {
		return nil, err
	}
	l := &LineLog{topic: t, options: options, alarms: record.Alarms{On: options.OnAlarm}, rests: map[int32]appendRest{}}
	_, err = l.look(ctx)
	if err != nil && !isAway(err) {
		return nil, err
	}
	if err != nil {
		l.alarms.Raise("", err)
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

// connection returns the client and the id of the current topic, or nil and "" until it is found.
func (l *LineLog) connection() (*kgo.Client, string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.client, l.id
}

// connects replaces the client and the topic id, if the id is still was. It returns false if another call was faster.
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

// look asks the brokers for the topic's state. If it is not found yet, or was recreated, look connects again, because a client keeps using the topic
// that it knows.
func (l *LineLog) look(ctx context.Context) (found, error) {
	if client, was := l.connection(); client != nil {
		is, err := l.topic.look(ctx, client)
		if err != nil || is.id == was {
			return is, err
		}
		l.connects(nil, "", was) // nothing may be appended to the new topic before its settings are checked
	}
	client, err := l.topic.connect(ctx, append(producing(l.topic), kgo.RecordPartitioner(kgo.ManualPartitioner()))...)
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

// Run checks every two seconds, until ctx ends, whether the topic exists and has all records that were appended. If it lacks some, Run raises an
// alarm for each campaign whose log does, and nothing is appended for that campaign.
func (l *LineLog) Run(ctx context.Context) error {
	for ctx.Err() == nil {
		if err := l.check(ctx); err != nil && ctx.Err() == nil {
			l.alarms.Raise("", err)
		}
		_ = wait.Sleep(ctx, topicEvery)
	}
	return nil
}

// check finds the logs that lack records. It reads the topic's state after the list, so that a log which begins at the topic's current end is intact.
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
		if err := l.topic.intact(is, id, log); err != nil {
			lost[id] = err
			l.alarms.Raise(id, err)
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.gone = lost
	return nil
}

// intact returns a firstcome.ErrLineLogGone if a topic is not the topic of a log, or lacks offsets from the log's first on.
func (t *topic) intact(is found, id firstcome.CampaignID, log firstcome.LineLog) error {
	switch p := int(log.Partition); {
	case log.Topic != is.id:
		return t.another(is.id, id, log)
	case p < 0 || p >= len(is.ends):
		return lostLog(id, "the topic %s has no partition %d", t.name, p)
	case is.starts[p] > log.First:
		return lostLog(id, "the partition %d of the topic %s no longer has records before offset %d, and the line's begin at %d: they were deleted, by hand or by the topic's retention",
			p, t.name, is.starts[p], log.First)
	case is.ends[p] < log.First:
		return lostLog(id, "the partition %d of the topic %s ends at offset %d, and the line's records begin at %d: Kafka has lost records", p, t.name, is.ends[p], log.First)
	}
	return nil
}

// another returns the error of a topic that has another id than a log's.
func (t *topic) another(is string, id firstcome.CampaignID, log firstcome.LineLog) error {
	return lostLog(id, "the topic %s was recreated, or is another topic: its id is %s, and that of the line's log is %s", t.name, is, log.Topic)
}

// lostLog returns a firstcome.ErrLineLogGone with the cause, and with what an operator can do.
func lostLog(id firstcome.CampaignID, why string, args ...any) error {
	return fmt.Errorf("%w: %s: firstcome gate rebuild %s --without-line-log takes the line from the gate's remaining keys, and logs it again",
		firstcome.ErrLineLogGone, fmt.Sprintf(why, args...), id)
}

// LogLocation returns where the log of a campaign's line will be: at the current end of the partition that the campaign's id hashes to.
func (l *LineLog) LogLocation(ctx context.Context, id firstcome.CampaignID) (log firstcome.LineLog, err error) {
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
	delete(l.gone, id) // that was the previous log
	return log, nil
}

// End returns the end offset of a log's partition. All records that were appended before the call are below it.
func (l *LineLog) End(ctx context.Context, id firstcome.CampaignID, log firstcome.LineLog) (int64, error) {
	is, err := l.has(ctx, id, log, log.First)
	if err != nil {
		return 0, err
	}
	return is.ends[log.Partition], nil
}

// Read calls each with the records of a campaign in a log, before end, in their order. The records do not have their LineLog set. Read skips records
// that are not the campaign's or cannot be read, because other programs may write to the topic. firstcome.ErrLineLogGone means that the topic lacks
// records. After an error, the records passed to each must be discarded.
func (l *LineLog) Read(ctx context.Context, id firstcome.CampaignID, log firstcome.LineLog, end int64, each func(offset int64, r line.Record) error) error {
	is, err := l.has(ctx, id, log, end)
	if err != nil {
		return err
	}
	begin := slices.Clone(is.ends) // so nothing is read of the other partitions
	begin[log.Partition], is.ends[log.Partition] = log.First, end
	var refused error
	err = l.topic.readAll(ctx, begin, is.ends, func(r *kgo.Record) error {
		refused = readLineRecord(id, r, func(read line.Record) error { return each(r.Offset, read) })
		return refused
	}, ctx.Err, kgo.KeepControlRecords())
	switch {
	case refused != nil:
		return refused
	case err != nil:
		return away(err)
	}
	_, err = l.has(ctx, id, log, end) // the topic may have been recreated, or records deleted, during the reading
	return err
}

// has returns the topic's state, and an error unless the topic has all of a log up to end.
func (l *LineLog) has(ctx context.Context, id firstcome.CampaignID, log firstcome.LineLog, end int64) (found, error) {
	is, err := l.look(ctx)
	if err != nil {
		return is, away(err)
	}
	err = l.topic.intact(is, id, log)
	if err == nil && is.ends[log.Partition] < end {
		err = lostLog(id, "the partition %d of the topic %s ends at offset %d, and had records up to %d: Kafka has lost records", log.Partition, l.topic.name, is.ends[log.Partition], end)
	}
	return is, err
}
