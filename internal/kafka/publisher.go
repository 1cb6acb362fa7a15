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
	"fmt"
	"os"
	"slices"
	"sync/atomic"
	"time"

	"github.com/cenkalti/backoff/v5"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/follow"
	"github.com/firstcome/firstcome/internal/point"
	"github.com/firstcome/firstcome/internal/wait"
)

// A Book keeps how far a Publisher has come. ledger.Followers implements it.
type Book interface {
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
	// slowest is the longest pause after failures.
	slowest = 5 * time.Second
	// parting is the time-out of the last note when a session ends.
	parting = 2 * time.Second
)

// Options are the options of a Publisher.
type Options struct {
	Book Book
	// Facts calls each for the facts of a campaign with positions above after, in order, at most limit.
	Facts func(ctx context.Context, id firstcome.CampaignID, after int64, limit int, each func(firstcome.Fact) error) error
	// Ledger is the ledger's name.
	Ledger string
	// OnFail, if not nil, is called with the cause of each failure to publish.
	OnFail func(error)
}

// A Publisher publishes facts to a topic while it has the lease.
type Publisher struct {
	topic  *topic
	book   Book
	facts  func(ctx context.Context, id firstcome.CampaignID, after int64, limit int, each func(firstcome.Fact) error) error
	ledger string
	owner  string
	fail   func(error)

	published, failures atomic.Int64
	leads               atomic.Bool
}

// Stats are a Publisher's counters since its start.
type Stats struct {
	Published int64 // facts that this Publisher appended
	Failures  int64 // times that it started again
	Leads     bool  // whether it has the lease
}

// NewPublisher returns a Publisher to the topic of a URL. It connects to nothing.
func NewPublisher(url string, o Options) (*Publisher, error) {
	t, err := readURL(url)
	if err != nil {
		return nil, err
	}
	host, err := os.Hostname()
	if err != nil {
		host = "a node"
	}
	var random [8]byte
	_, _ = rand.Read(random[:]) // never fails
	p := &Publisher{topic: t, book: o.Book, facts: o.Facts, ledger: o.Ledger, fail: o.OnFail, owner: host[:min(len(host), 200)] + " " + hex.EncodeToString(random[:])}
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
	return Stats{Published: p.published.Load(), Failures: p.failures.Load(), Leads: p.leads.Load()}
}

// Run publishes until ctx ends. After any failure it starts again; no caller waits for it.
func (p *Publisher) Run(ctx context.Context) error {
	pause := backoff.NewExponentialBackOff()
	pause.InitialInterval, pause.MaxInterval = lookEvery, slowest
	for ctx.Err() == nil {
		before := p.published.Load()
		err := p.lead(ctx)
		p.leads.Store(false)
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
	f, err := p.book.Follow(ctx, p.Follower(), p.owner, leaseTime)
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
	return p.book.Followed(ctx, f, 0, cursors)
}

// A session is a Publisher with the lease.
type session struct {
	*Publisher
	client    *kgo.Client
	following follow.Following // its Ends cover the cursors in moved
	moved     map[firstcome.CampaignID]follow.Cursor
	noted     time.Time
	looked    time.Time // when the topic was last checked
}

// publish finds the end of the topic, and publishes from there.
func (s *session) publish(ctx context.Context) error {
	if err := s.catchUp(ctx); err != nil {
		return err
	}
	s.leads.Store(true)
	for {
		began := time.Now()
		all, err := s.pass(ctx)
		if err == nil {
			err = s.stillThere(ctx)
		}
		if err == nil {
			err = s.note(ctx)
		}
		if err != nil {
			return err
		}
		if all {
			_ = wait.Sleep(ctx, lookEvery-time.Since(began))
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
	}
}

// cursors returns the cursors that are not noted yet.
func (s *session) cursors() []follow.Cursor {
	cursors := make([]follow.Cursor, 0, len(s.moved))
	for _, c := range s.moved {
		cursors = append(cursors, c)
	}
	return cursors
}

// note notes the cursors every noteEvery, and renews the lease at least every renewEvery.
func (s *session) note(ctx context.Context) error {
	since := time.Since(s.noted)
	if since < noteEvery || len(s.moved) == 0 && since < renewEvery {
		return nil
	}
	if err := s.book.Followed(ctx, s.following, leaseTime, s.cursors()); err != nil {
		return err
	}
	s.noted = time.Now()
	clear(s.moved)
	return nil
}

// A part has the facts of a campaign that are published in one pass.
type part struct {
	cursor  follow.Cursor
	records []*kgo.Record
}

// pass publishes new facts, within bounds. all means that it has published all of them.
func (s *session) pass(ctx context.Context) (all bool, err error) {
	behind, err := s.book.Behind(ctx, s.Follower(), campaigns)
	if err != nil {
		return false, err
	}
	var parts []part
	room := atOnce
	all = len(behind) < campaigns
	for _, c := range behind {
		if moved, ok := s.moved[c.Campaign]; ok {
			c.Position, c.State = moved.Position, moved.State
		}
		switch {
		case c.State == follow.Ahead, c.Position == c.Top:
			continue
		case c.Position > c.Top:
			s.ahead(c, fmt.Errorf("the ledger has facts up to %d, and %d were published", c.Top, c.Position))
			continue
		}
		one, err := s.read(ctx, c, min(room, perCampaign))
		if err != nil {
			return false, err
		}
		if room -= len(one.records); room == 0 || len(one.records) == perCampaign {
			all = false
		}
		if parts = append(parts, one); room == 0 {
			break
		}
	}
	if len(parts) == 0 && !all {
		s.noted = time.Time{} // the list has only campaigns whose cursors are published but not noted: note them now
	}
	return all, s.send(ctx, parts)
}

// read reads the next facts of a campaign.
func (s *session) read(ctx context.Context, c follow.Cursor, limit int) (part, error) {
	one := part{cursor: c}
	err := s.facts(ctx, c.Campaign, c.Position, limit, func(f firstcome.Fact) error {
		r, err := recordOf(s.ledger, &f)
		one.records = append(one.records, r)
		return err
	})
	return one, err
}

// send appends the records of all parts, and moves the cursor of each to before the first record that the brokers did not take.
func (s *session) send(ctx context.Context, parts []part) error {
	var all []*kgo.Record
	for _, one := range parts {
		all = append(all, one.records...)
	}
	if len(all) == 0 {
		return nil
	}
	failed := map[*kgo.Record]error{}
	var first error
	for _, result := range s.client.ProduceSync(ctx, all...) {
		if result.Err != nil {
			failed[result.Record] = result.Err
			if first == nil {
				first = result.Err
			}
		}
	}
	var cut error
	for _, one := range parts {
		taken := slices.IndexFunc(one.records, func(r *kgo.Record) bool { return failed[r] != nil })
		if taken < 0 {
			taken = len(one.records)
		}
		for _, r := range one.records[:taken] {
			if err := s.noteEnd(r); cut == nil {
				cut = err
			}
		}
		if taken > 0 {
			s.moved[one.cursor.Campaign] = follow.Cursor{Campaign: one.cursor.Campaign, Position: one.cursor.Position + int64(taken)}
			s.published.Add(int64(taken))
		}
	}
	if cut != nil {
		return cut
	}
	if first != nil {
		return s.topic.explain(fmt.Errorf("publish facts: %w", first))
	}
	point.Reach(point.Published)
	return nil
}

// noteEnd notes that the cursors cover a partition up to a record. It is an error if the record's offset is below the noted end, because the
// partition has then lost records. The noted end still grows by one with each such record. So the next session finds the partition too short, however
// many records are appended until then.
func (s *session) noteEnd(r *kgo.Record) error {
	for int(r.Partition) >= len(s.following.Ends) {
		s.following.Ends = append(s.following.Ends, 0)
	}
	end := &s.following.Ends[r.Partition]
	if r.Offset < *end {
		err := s.topic.cut(int(r.Partition), r.Offset, *end)
		*end++
		return err
	}
	*end = r.Offset + 1
	return nil
}

// ahead stops the publishing of a campaign whose facts in the topic are ahead of the ledger.
func (s *session) ahead(c follow.Cursor, why error) {
	s.moved[c.Campaign] = follow.Cursor{Campaign: c.Campaign, Position: c.Position, State: follow.Ahead}
	s.fail(fmt.Errorf("the facts of %s are no longer published: %w. The ledger is older than it was: see docs/runbooks/FirstcomeFactsAhead.md, "+
		"and once the ledger is right, have them published again with firstcome facts replay %s --from POSITION", c.Campaign, why, c.Campaign))
}
