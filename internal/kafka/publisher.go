// Package kafka publishes the ledger's facts to a topic of Kafka. A Journal is a topic between a gate's journal and the ledger, and a LineLog is a
// topic with the logs of waiting lines.
//
// One node at a time publishes facts, by a lease in the ledger. It reads the facts of each campaign in the order of positions, appends them, and
// notes in the ledger how far it has come, about once a second. Records that it appended and did not note are at the end of the topic. The next node
// reads these first and continues after them. So the topic has every fact at least once, and the first copies are in order:
//
//	lease → read the topic's records after the noted ends → read facts → append, acks=all → note → read facts → …
//
// docs/events.md describes the records for consumers.
package kafka

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cenkalti/backoff/v5"
	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/follow"
	"github.com/firstcome/firstcome/internal/wait"
)

// A Cursors keeps how far a Publisher has come. ledger.Followers implements it.
type Cursors interface {
	// Follow gives an owner the lease of a follower, or returns follow.ErrFollowed.
	Follow(ctx context.Context, follower, owner string, lease time.Duration) (follow.Following, error)
	// Followed notes cursors, and extends the lease to the given duration from now. follow.ErrFollowed means that another owner has the lease. It may
	// be repeated.
	Followed(ctx context.Context, f follow.Following, lease time.Duration, cursors []follow.Cursor) error
	// Behind returns the cursors of campaigns that have newer facts.
	Behind(ctx context.Context, follower string, limit int) ([]follow.Cursor, error)
	// CursorOf returns the cursor of a campaign, or firstcome.ErrNoCampaign.
	CursorOf(ctx context.Context, follower string, id firstcome.CampaignID) (follow.Cursor, error)
}

const (
	// leaseTime is how long no facts are published after the node that publishes them was killed.
	leaseTime = 6 * time.Second
	// noteEvery is how often cursors are noted. The next node reads the records that were published since then.
	noteEvery = time.Second
	// renewEvery is how often the lease is renewed if there are no cursors to note.
	renewEvery = 2 * time.Second
	// topicEvery is how often a node checks whether the topic was recreated.
	topicEvery = 2 * time.Second
	// lookEvery is how often the ledger is asked for new facts, and so the longest delay before they are published.
	lookEvery = 100 * time.Millisecond
	// waitEvery is how often a node asks for a lease that another node has.
	waitEvery = time.Second
	// deliveryTime is how long the brokers may take to acknowledge a record before the node starts again.
	deliveryTime = 10 * time.Second
	// campaigns, perCampaign and atOnce are the most campaigns, facts of a campaign, and facts in all that are published in one pass.
	campaigns, perCampaign, atOnce = 1000, 2000, 10_000
	// largeEvery is how often a fact that the topic does not take because of its size is published again.
	largeEvery = 5 * time.Second
	// slowest is the longest pause after failures.
	slowest = 5 * time.Second
	// parting is the time-out of the last note when a session ends.
	parting = 2 * time.Second
)

// Options are the options of a Publisher.
type Options struct {
	Cursors Cursors
	// Facts calls each for the facts of a campaign with positions above after, in order, at most limit.
	Facts func(ctx context.Context, id firstcome.CampaignID, after int64, limit int, each func(firstcome.Fact) error) error
	// Terms returns a campaign's terms as of a version. It is called for each fact, so it should cache them.
	Terms func(ctx context.Context, id firstcome.CampaignID, version int64) (firstcome.Terms, error)
	// Ledger is the ledger's name.
	Ledger string
	// OnFail, if not nil, is called with the cause of each failure to publish.
	OnFail func(error)
}

// A Publisher publishes facts to a topic while it has the lease.
type Publisher struct {
	topic   *topic
	cursors Cursors
	facts   func(ctx context.Context, id firstcome.CampaignID, after int64, limit int, each func(firstcome.Fact) error) error
	terms   func(ctx context.Context, id firstcome.CampaignID, version int64) (firstcome.Terms, error)
	ledger  string
	owner   string
	fail    func(error)

	published, failures atomic.Int64
	leads               atomic.Bool

	mu       sync.Mutex // guards tooLarge
	tooLarge map[firstcome.CampaignID]largeFact
}

// A largeFact is a campaign's next fact that the topic does not take because of its size.
type largeFact struct {
	position int64
	again    time.Time // when it is published again
}

// Stats are a Publisher's counters since its start.
type Stats struct {
	Published int64 // facts that this Publisher appended
	Failures  int64 // times that it started again
	Leads     bool  // whether it has the lease
	// TooLarge has the next position of each campaign whose next fact is larger than the topic takes. Its facts wait.
	TooLarge map[firstcome.CampaignID]int64
}

// NewPublisher returns a Publisher to the topic of a URL. It connects to nothing.
func NewPublisher(url string, o Options) (*Publisher, error) {
	t, err := readURL(url)
	if err != nil {
		return nil, err
	}
	t.inOrder = true
	host, err := os.Hostname()
	if err != nil {
		host = "a node"
	}
	var random [8]byte
	_, _ = rand.Read(random[:]) // never fails
	p := &Publisher{
		topic: t, cursors: o.Cursors, facts: o.Facts, terms: o.Terms, ledger: o.Ledger, fail: o.OnFail, owner: host[:min(len(host), 200)] + " " + hex.EncodeToString(random[:]),
		tooLarge: map[firstcome.CampaignID]largeFact{},
	}
	if p.fail == nil {
		p.fail = func(error) {}
	}
	return p, nil
}

// FollowerOf returns the follower's name in the ledger of all Publishers to a topic.
func FollowerOf(topic string) string { return "kafka/" + topic }

// Follower returns the Publisher's name in the ledger.
func (p *Publisher) Follower() string { return FollowerOf(p.topic.name) }

// Stats returns the counters.
func (p *Publisher) Stats() Stats {
	p.mu.Lock()
	defer p.mu.Unlock()
	stats := Stats{Published: p.published.Load(), Failures: p.failures.Load(), Leads: p.leads.Load(), TooLarge: map[firstcome.CampaignID]int64{}}
	for id, fact := range p.tooLarge {
		stats.TooLarge[id] = fact.position
	}
	return stats
}

// Run publishes until ctx ends. After any failure it starts again; no caller waits for it.
func (p *Publisher) Run(ctx context.Context) error {
	pause := backoff.NewExponentialBackOff()
	pause.InitialInterval, pause.MaxInterval = lookEvery, slowest
	for ctx.Err() == nil {
		before := p.published.Load()
		err := p.lead(ctx)
		p.leads.Store(false)
		p.mu.Lock()
		clear(p.tooLarge)
		p.mu.Unlock()
		switch {
		case ctx.Err() != nil:
			return nil
		case errors.Is(err, follow.ErrFollowed):
			pause.Reset()
			_ = wait.Sleep(ctx, waitEvery)
			continue
		}
		p.failures.Add(1)
		p.fail(err)
		if p.published.Load() > before {
			pause.Reset()
		}
		_ = wait.Sleep(ctx, pause.NextBackOff())
	}
	return nil
}

// lead takes the lease and publishes until a step fails, or another node has the lease. It returns the cause.
func (p *Publisher) lead(ctx context.Context) error {
	f, err := p.cursors.Follow(ctx, p.Follower(), p.owner, leaseTime)
	if err != nil {
		return err
	}
	client, err := p.topic.connect(ctx, producing(p.topic)...)
	if err != nil {
		return errors.Join(err, p.leave(ctx, f, nil))
	}
	defer client.Close()
	s := &session{Publisher: p, client: client, following: f, noted: time.Now(), moved: map[firstcome.CampaignID]follow.Cursor{}}
	err = s.publish(ctx)
	if !errors.Is(err, follow.ErrFollowed) {
		err = errors.Join(err, p.leave(ctx, s.following, s.cursors()))
	}
	return err
}

// leave notes the remaining cursors and ends the lease, even when the node stops, so that another node continues at once.
func (p *Publisher) leave(ctx context.Context, f follow.Following, cursors []follow.Cursor) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), parting)
	defer cancel()
	return p.cursors.Followed(ctx, f, 0, cursors)
}
