package kafka

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/flow"
	"github.com/firstcome/firstcome/internal/gate"
)

// A FedGate is the gate behind a Line.
type FedGate interface {
	gate.Decider
	gate.Line
	gate.Places
	gate.Coupons
	gate.Fed
}

// LineOptions are what a Line needs beside the URL of a topic.
type LineOptions struct {
	Gate FedGate
	// Ledger says which campaigns have a partition, and gives free ones.
	Ledger LineLedger
	// Secret makes the proofs.
	Secret firstcome.Secret
	// MaxLine is how many people may be in line of a campaign.
	MaxLine int64
	// OnAlarm, if set, gets what an operator should know; the same alarm about once a minute.
	OnAlarm func(firstcome.CampaignID, error)
	// OnFound, if set, gets what an operator should know of the topic once it is found.
	OnFound func(warnings []string)
}

// A LineLedger is what a Line asks of the ledger.
type LineLedger interface {
	gate.Feeder
	// FreePartition returns a partition, of so many of a topic, that no campaign has to itself, or firstcome.ErrNoPartition.
	FreePartition(ctx context.Context, topic string, partitions int32) (int32, error)
}

// A Line is a gate whose campaigns may have their waiting lines in a topic, each in a partition of its own. A claim that would join the line
// is appended there: the offset is the ticket. Whoever serves the line, on any node, reads the partition from the ticket that is next at
// the gate, and has the gate serve it.
//
//	claim → gate: who holds a coupon? is it open? → append, acks=all → waiting, with the ticket
//	serve → gate: which ticket is next? → read from there → gate: a turn → coupons
//
// All else is the gate's. Make one with OpenLine. While no broker has answered yet, Lines looks for the topic, and whoever would join a line gets
// firstcome.ErrFeedAway.
type Line struct {
	FedGate
	topic   *topic
	options LineOptions
	alarms  flow.Alarms

	mu     sync.Mutex  // guards what follows
	id     string      // of the topic; empty: it is not found yet
	client *kgo.Client // nil likewise
	lines  map[firstcome.CampaignID]*fed
}

var _ FedGate = (*Line)(nil)

// A fed is a line in the topic, as this node knows it.
type fed struct {
	feed firstcome.Feed

	serving sync.Mutex     // guards what follows, and is held while the line is served
	line    firstcome.Line // of Generation 0: unknown
	idle    int64          // of a line that has not begun: the end that was known then. A later one says that it has
	reader  *reader
	told    time.Time // when the gate told the line last

	mu   sync.Mutex // guards what follows
	end  int64      // the offset behind the last record that is known of
	rest time.Time  // nobody is appended before, since the topic took none
	why  error      // of rest
	lost error      // why the topic cannot tell any more who is in line; nil: it can, as far as is known
}

// OpenLine returns the Line on the topic of a URL. That no broker answers is an alarm, and the Line goes on looking for the topic. Any other error
// is a mistake in the set-up, and says what to do.
func OpenLine(ctx context.Context, url string, options LineOptions) (*Line, error) {
	t, err := readURL(url)
	if err != nil {
		return nil, err
	}
	l := &Line{FedGate: options.Gate, topic: t, options: options, alarms: flow.Alarms{On: options.OnAlarm}, lines: map[firstcome.CampaignID]*fed{}}
	_, err = l.find(ctx)
	if err != nil && !isAway(err) {
		return nil, err
	}
	if err != nil {
		l.alarms.Tell("", away(err))
	}
	return l, nil
}

// find connects to the topic, if it is fit for lines.
func (l *Line) find(ctx context.Context) (found, error) {
	client, err := l.topic.connect(ctx, appending(l.topic)...)
	if err != nil {
		return found{}, err
	}
	is, err := l.topic.look(ctx, client)
	var warnings []string
	if err == nil {
		warnings, err = l.topic.fits(ctx, client, Lines, is, "")
	}
	if err != nil || !l.connects(client, "", is.id) {
		client.Close()
		return is, err
	}
	if l.options.OnFound != nil {
		l.options.OnFound(warnings)
	}
	return is, nil
}

// connects has the line use a client of a topic in place of that of another id. It returns false if another call was faster.
func (l *Line) connects(client *kgo.Client, was, id string) bool {
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

// Close ends the connections.
func (l *Line) Close() {
	l.mu.Lock()
	lines := l.lines
	l.lines = map[firstcome.CampaignID]*fed{}
	l.mu.Unlock()
	for _, f := range lines {
		f.close()
	}
	if client := l.connection(); client != nil {
		client.Close()
	}
}

// Topic returns the topic's name and its id, which another topic of the name does not have. It is empty if the topic is not found yet.
func (l *Line) Topic() (name, id string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.topic.name, l.id
}

// Feed returns a partition that a campaign may have to itself. firstcome.ErrNoPartition says that there is none, and what to do.
func (l *Line) Feed(ctx context.Context) (feed firstcome.Feed, err error) {
	is, err := l.look(ctx)
	if err != nil {
		return feed, err
	}
	feed.Topic = is.id
	feed.Partition, err = l.options.Ledger.FreePartition(ctx, is.id, int32(len(is.ends)))
	if errors.Is(err, firstcome.ErrNoPartition) {
		err = fmt.Errorf("%w: add some with %s", err, l.topic.adds(len(is.ends)))
	}
	return feed, err
}

// Lost tells whether nobody can find out from the topic any more who is in line of a campaign that has a feed: the feed was given up, the
// topic was recreated or is another one, or it lacks records of people who are in line.
func (l *Line) Lost(ctx context.Context, id firstcome.CampaignID, feed firstcome.Feed) (bool, error) {
	before, err := l.FedGate.LineOf(ctx, id)
	if err != nil {
		return false, err
	}
	is, err := l.look(ctx)
	if err != nil {
		return false, err
	}
	if feed.Partition < 0 || feed.Topic != is.id || int(feed.Partition) >= len(is.ends) {
		return true, nil
	}
	after, err := l.FedGate.LineOf(ctx, id) // meanwhile the line was served, and records of those who were may be gone
	if err != nil {
		return false, err
	}
	was, now := before.Line, after.Line
	return was.Begun && now.Begun && was.Generation == now.Generation &&
		(now.Offset(now.Serving()) < is.starts[feed.Partition] || is.ends[feed.Partition] < was.Offset(was.Serving())), nil
}

// look asks how the topic is. If it was recreated, it connects anew, because a client goes on with the one that it knows.
func (l *Line) look(ctx context.Context) (found, error) {
	_, was := l.Topic()
	if was == "" {
		is, err := l.find(ctx)
		if err != nil {
			err = away(err)
			l.alarms.Tell("", err)
		}
		return is, err
	}
	is, err := l.topic.look(ctx, l.connection())
	if err != nil {
		return is, away(err)
	}
	if was == is.id {
		return is, nil
	}
	client, err := l.topic.connect(ctx, appending(l.topic)...)
	if err != nil {
		return is, away(err)
	}
	if !l.connects(client, was, is.id) {
		client.Close()
	}
	return is, nil
}

func (l *Line) connection() *kgo.Client {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.client
}

// fed returns a line of which the gate or the ledger said that a feed keeps it. If it has another feed than before, all else that is known of
// it is forgotten.
func (l *Line) fed(id firstcome.CampaignID, feed firstcome.Feed) *fed {
	l.mu.Lock()
	defer l.mu.Unlock()
	f := l.lines[id]
	if f != nil && f.feed == feed {
		return f
	}
	if f != nil {
		go f.close() // which waits for whoever serves it
	}
	f = &fed{feed: feed}
	l.lines[id] = f
	return f
}

// known returns a line that fed has returned, or nil.
func (l *Line) known(id firstcome.CampaignID) *fed {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.lines[id]
}

// holds returns an error if this node's topic is not the one that keeps a line.
func (l *Line) holds(id firstcome.CampaignID, feed firstcome.Feed) error {
	name, topic := l.Topic()
	switch {
	case topic == "":
		return away(fmt.Errorf("the topic %s is not found yet", name))
	case feed.Partition < 0:
		return lost(id, "the campaign was over, and another one may have its partition of the topic %s", name)
	case feed.Topic != topic:
		return lost(id, "the topic %s was recreated, or is another one: it has the id %s, and that of the campaign's line is %s", name, topic, feed.Topic)
	}
	return nil
}

// lost returns a firstcome.ErrFeedLost that says why, and how the campaign gets another partition.
func lost(id firstcome.CampaignID, why string, args ...any) error {
	return fmt.Errorf("%w: %w: firstcome campaign update %s --pace N gives it another partition, and sends away who was in line",
		firstcome.ErrFeedLost, fmt.Errorf(why, args...), id)
}

// ends asks for the offset behind the last record of a line.
func (l *Line) ends(ctx context.Context, f *fed) (int64, error) {
	ctx, cancel := context.WithTimeout(ctx, joinTime) // people wait for it
	defer cancel()
	listed, err := kadm.NewClient(l.connection()).ListEndOffsets(ctx, l.topic.name)
	if err == nil {
		err = listed.Error()
	}
	if err != nil {
		return 0, away(l.topic.explain(fmt.Errorf("ask for the end of the topic %s: %w", l.topic.name, err)))
	}
	offset, ok := listed.Lookup(l.topic.name, f.feed.Partition)
	if !ok {
		return 0, away(fmt.Errorf("the topic %s has no partition %d", l.topic.name, f.feed.Partition))
	}
	f.reaches(offset.Offset)
	return offset.Offset, nil
}

// reaches notes that a line has records up to an offset.
func (f *fed) reaches(end int64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.end = max(f.end, end)
}

// known returns the offset behind the last record that is known of.
func (f *fed) known() int64 { return f.behind(0) }

// behind returns how many records are known of from an offset on.
func (f *fed) behind(offset int64) int64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	return max(0, f.end-offset)
}

// note notes why the topic cannot tell any more who is in line, or, with nil, that it can.
func (f *fed) note(why error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.lost = why
}

// whyLost returns why the topic cannot tell any more who is in line, or nil.
func (f *fed) whyLost() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.lost
}

// close ends a line's connection. It waits for whoever serves it.
func (f *fed) close() {
	f.serving.Lock()
	defer f.serving.Unlock()
	f.leave()
}

// leave ends the connection of a line. serving is held.
func (f *fed) leave() {
	if f.reader != nil {
		f.reader.client.Close()
		f.reader = nil
	}
}
