package kafka

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/gate"
)

// Lines calls each with the campaigns that have people in line: see gate.Line.
func (l *Line) Lines(ctx context.Context, each func(firstcome.CampaignID)) error {
	errs := []error{l.FedGate.Lines(ctx, each)}
	feeds := map[firstcome.CampaignID]firstcome.Feed{}
	err := l.options.Ledger.Feeds(ctx, func(id firstcome.CampaignID, feed firstcome.Feed) { feeds[id] = feed })
	if err == nil {
		l.forget(feeds)
	}
	if _, id := l.Topic(); err != nil || len(feeds) == 0 && id != "" {
		return errors.Join(append(errs, err)...)
	}
	is, err := l.look(ctx)
	if err != nil {
		return errors.Join(append(errs, err)...)
	}
	for id, feed := range feeds {
		if err := l.holds(id, feed); err != nil {
			l.alarms.Tell(id, err)
			continue
		}
		f := l.fed(id, feed)
		if int(feed.Partition) < len(is.ends) {
			f.reaches(is.ends[feed.Partition])
		}
		if f.isDue() {
			each(id)
		}
	}
	return errors.Join(errs...)
}

// forget forgets the lines that no campaign has any more.
func (l *Line) forget(feeds map[firstcome.CampaignID]firstcome.Feed) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for id, f := range l.lines {
		if _, is := feeds[id]; !is {
			delete(l.lines, id)
			go f.close() // which waits for whoever serves it
		}
	}
}

// askAgain is after how long a node asks the gate about a line in which nobody is by what it knows. A gate that was made anew may know less than it
// did, so that somebody is in line again, and the topic does not say so.
const askAgain = 5 * time.Second

// isDue tells whether people may be in line.
func (f *fed) isDue() bool {
	if !f.serving.TryLock() {
		return true
	}
	defer f.serving.Unlock()
	if time.Since(f.told) >= askAgain {
		return true
	}
	if f.line.Generation > 0 && !f.line.Begun {
		return f.behind(f.idle) > 0
	}
	return f.line.Generation == 0 || f.behind(f.line.Offset(f.line.Serving())) > 0
}

// Serve issues coupons to those next in line: see gate.Line.
func (l *Line) Serve(ctx context.Context, id firstcome.CampaignID, limit int) (gate.Served, error) {
	f := l.known(id)
	if f == nil {
		return l.FedGate.Serve(ctx, id, limit)
	}
	if err := l.holds(id, f.feed); err != nil {
		return gate.Served{}, err
	}
	f.serving.Lock()
	defer f.serving.Unlock()
	if f.line.Generation == 0 || !f.line.Begun {
		f.idle = f.known() // before the gate is asked: whoever is appended later has begun the line before
		turned, err := l.turn(ctx, id, f, nobody)
		if err != nil || turned.Ended != "" || !f.line.Begun {
			return turned.Served, err
		}
	}
	turn := gate.Turn{Generation: f.line.Generation, From: f.line.Serving()}
	if f.behind(f.line.Offset(turn.From)) > 0 {
		var err error
		if turn.Users, err = l.read(ctx, f, id, turn, limit); err != nil {
			return l.unread(ctx, id, f, turn, err)
		}
		f.note(nil)
	}
	turned, err := l.turn(ctx, id, f, turn)
	if err != nil {
		return gate.Served{}, err
	}
	if !f.line.Begun { // this turn ended the generation, or another one did
		f.idle = 0
	} else {
		turned.Waiting = f.behind(f.line.Offset(f.line.Serving()))
	}
	if ended := int64(len(turned.Coupons)) + turned.Over; turned.Waiting > 0 && (ended >= int64(limit) || ended < int64(len(turn.Users)) && f.line.Serving() > turn.From+ended) {
		turned.Again = time.Microsecond // at once: the turn was full of those who are passed over, or another node was faster
	}
	return turned.Served, nil
}

// nobody is a turn of no generation: it serves nobody, and tells how the line is.
var nobody = gate.Turn{}

// turn has the gate serve a turn, and goes by the line that it tells. If an operator has given the campaign another partition, nothing is
// known of the line: what is next in this one is nobody's.
func (l *Line) turn(ctx context.Context, id firstcome.CampaignID, f *fed, turn gate.Turn) (gate.Turned, error) {
	turned, err := l.ServeTurn(ctx, id, turn)
	if err != nil {
		return gate.Turned{}, err
	}
	f.told = time.Now()
	if turned.Line.Generation != f.line.Generation { // nobody waits any more for the records that Kafka lacks
		f.note(nil)
	}
	if f.line = turned.Line; turned.Feed != nil && *turned.Feed != f.feed {
		f.line = firstcome.Line{}
		l.fed(id, *turned.Feed)
	}
	return turned, nil
}

// unread goes by an error of reading a turn. That Kafka lacks records of people in line is so only if the gate has not served them
// meanwhile, by another node.
func (l *Line) unread(ctx context.Context, id firstcome.CampaignID, f *fed, turn gate.Turn, err error) (gate.Served, error) {
	if !errors.Is(err, firstcome.ErrFeedLost) {
		return gate.Served{}, err
	}
	turned, failed := l.turn(ctx, id, f, nobody)
	if failed != nil {
		return gate.Served{}, failed
	}
	if f.line.Generation == turn.Generation && f.line.Serving() == turn.From {
		f.note(err)
		l.alarms.Tell(id, err)
		return gate.Served{}, err
	}
	return turned.Served, nil
}

// A reader has a connection that reads a partition.
type reader struct {
	client     *kgo.Client
	head, tail int64         // what was read and is not served: the offsets from head on, before tail
	hand       []*kgo.Record // their records
	silent     bool          // Kafka gave nothing when it was asked last, though there are records
}

// read returns the users of a turn, at most limit. None: there is nothing to read yet. If Kafka gives nothing, that is an error: who serves lines
// comes back later, and the lines at the gate are served meanwhile.
func (l *Line) read(ctx context.Context, f *fed, id firstcome.CampaignID, turn gate.Turn, limit int) ([]firstcome.UserID, error) {
	from := f.line.Offset(turn.From)
	if f.reader != nil && from < f.reader.head { // the gate was made anew, and knows less than it did
		f.leave()
	}
	if f.reader == nil {
		client, err := kgo.NewClient(append(l.topic.options(), kgo.MetadataMinAge(metadataAge), kgo.ConsumeResetOffset(kgo.NoResetOffset()),
			kgo.FetchMaxWait(pollTime), kgo.FetchMaxBytes(lineInHand), kgo.FetchMaxPartitionBytes(lineInHand),
			kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{l.topic.name: {f.feed.Partition: kgo.NewOffset().At(from)}}))...)
		if err != nil {
			return nil, err
		}
		f.reader = &reader{client: client, head: from, tail: from}
	}
	r := f.reader
	r.head = from
	r.hand = slices.DeleteFunc(r.hand, func(record *kgo.Record) bool { return record.Offset < from })
	tail := r.tail
	if err := l.fill(ctx, f, id, limit); err != nil {
		f.leave()
		return nil, err
	}
	if r.silent = r.tail == tail && len(r.hand) == 0 && f.behind(from) > 0; r.silent {
		return nil, away(fmt.Errorf("the partition %d of the topic %s has records from the offset %d on, and Kafka does not give them", f.feed.Partition, l.topic.name, tail))
	}
	users := make([]firstcome.UserID, 0, min(limit, len(r.hand)))
	for _, record := range r.hand {
		for len(users) < limit && from+int64(len(users)) < record.Offset { // there is no record of this offset
			users = append(users, "")
		}
		if len(users) == limit {
			break
		}
		users = append(users, userOf(record, id, turn.Generation))
	}
	return users, nil
}

// lineInHand bounds the bytes of a line that are read at once.
const lineInHand = 4 << 20

// fill reads until so many records are in hand, or all that are known of. It waits for some a little.
func (l *Line) fill(ctx context.Context, f *fed, id firstcome.CampaignID, limit int) error {
	r := f.reader
	patience := lineReadTime
	if r.silent {
		patience = pollTime
	}
	polling, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for len(r.hand) < limit && f.behind(r.tail) > 0 && polling.Err() == nil {
		fetches := r.client.PollRecords(polling, limit)
		var failed error
		fetches.EachError(func(_ string, _ int32, err error) {
			if !errors.Is(err, context.DeadlineExceeded) && !errors.Is(err, context.Canceled) {
				failed = err
			}
		})
		if failed != nil {
			failed = l.unreadable(id, f, failed)
			l.alarms.Tell(id, failed)
			return failed
		}
		fetches.EachTopic(func(t kgo.FetchTopic) {
			if read := kadm.TopicID(t.TopicID); read != (kadm.TopicID{}) && read.String() != f.feed.Topic {
				failed = lost(id, "the topic %s was recreated: it has the id %s, and that of the campaign's line is %s", l.topic.name, read, f.feed.Topic)
			}
		})
		if failed != nil {
			return failed
		}
		fetches.EachPartition(func(p kgo.FetchTopicPartition) { f.reaches(p.HighWatermark) })
		fetches.EachRecord(func(record *kgo.Record) {
			if r.tail = record.Offset + 1; record.Offset >= r.head {
				r.hand = append(r.hand, record)
			}
		})
	}
	return nil
}

// lineReadTime bounds how long a line waits for records that are known of. A leader may change meanwhile.
const lineReadTime = 2 * time.Second

// unreadable says what it means that a line cannot be read.
func (l *Line) unreadable(id firstcome.CampaignID, f *fed, err error) error {
	at := fmt.Errorf("read the line of %s from offset %d of the partition %d of the topic %s: %w", id, f.reader.tail, f.feed.Partition, l.topic.name, err)
	if errors.Is(err, kerr.OffsetOutOfRange) {
		return lost(id, "Kafka has deleted records of people in line: %w", at)
	}
	return l.topic.explain(at)
}
