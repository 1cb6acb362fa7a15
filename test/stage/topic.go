package stage

import (
	"context"
	"fmt"
	"strings"
	"sync"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/gate"
)

// A FedLedger is a ledger that decides, as a Topic needs it.
type FedLedger interface {
	gate.Decider
	gate.Line
	gate.Places
	gate.Fed
	FreePartition(ctx context.Context, topic string, partitions int32) (int32, error)
}

// A Topic keeps the lines of a ledger that decides: what kafka.Line is to those who ask it. Its proofs are no secrets.
type Topic struct {
	FedLedger

	mu     sync.Mutex           // guards what follows
	users  [][]firstcome.UserID // by partition and offset
	made   int                  // how often it was made again
	broken error                // of whatever asks it
	full   error                // of an append, which is done all the same
}

// NewTopic returns a topic with so many partitions.
func NewTopic(l FedLedger, partitions int) *Topic {
	return &Topic{FedLedger: l, users: make([][]firstcome.UserID, partitions)}
}

// Break has the topic answer with an error from now on; nil: it answers again.
func (p *Topic) Break(err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.broken = err
}

// Fill has appends end with an error from now on, though they are done; nil: they end well again.
func (p *Topic) Fill(err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.full = err
}

// Remake deletes the topic and makes it again.
func (p *Topic) Remake() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.made++
	p.users = make([][]firstcome.UserID, len(p.users))
}

// id is the topic's. mu is held.
func (p *Topic) id() string { return fmt.Sprint("topic-", p.made) }

// ask returns the topic's id, or why it does not answer.
func (p *Topic) ask() (string, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.id(), p.broken
}

// of returns the partition of a feed, or why the topic does not say.
func (p *Topic) of(feed firstcome.Feed) (int32, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.broken != nil:
		return 0, p.broken
	case feed.Topic != p.id() || feed.Partition < 0:
		return 0, firstcome.ErrFeedLost
	}
	return feed.Partition, nil
}

func (p *Topic) end(partition int32) int64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	return int64(len(p.users[partition]))
}

func (p *Topic) append(partition int32, user firstcome.UserID) (int64, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.users[partition] = append(p.users[partition], user)
	return int64(len(p.users[partition]) - 1), p.full
}

func (p *Topic) read(partition int32, from int64, limit int) []firstcome.UserID {
	p.mu.Lock()
	defer p.mu.Unlock()
	users := p.users[partition]
	return users[from:min(int64(len(users)), from+int64(limit))]
}

// Feed is operate.Lines's.
func (p *Topic) Feed(ctx context.Context) (feed firstcome.Feed, err error) {
	if feed.Topic, err = p.ask(); err != nil {
		return feed, err
	}
	if feed.Partition, err = p.FreePartition(ctx, feed.Topic, int32(len(p.users))); err != nil {
		err = fmt.Errorf("%w: add some with kafka-topics.sh", err)
	}
	return feed, err
}

// Lost is operate.Lines's.
func (p *Topic) Lost(_ context.Context, _ firstcome.CampaignID, feed firstcome.Feed) (bool, error) {
	id, err := p.ask()
	return feed.Topic != id || feed.Partition < 0, err
}

// Claim is a Gate's.
func (p *Topic) Claim(ctx context.Context, id firstcome.CampaignID, users []firstcome.UserID) ([]firstcome.Decision, error) {
	decisions, err := p.FedLedger.Claim(ctx, id, users)
	for n := range decisions {
		if d := &decisions[n]; d.Joins != nil && err == nil {
			err = p.join(ctx, id, users[n], d)
		}
	}
	if err != nil {
		return nil, err
	}
	return decisions, nil
}

// join appends a user, and completes their decision.
func (p *Topic) join(ctx context.Context, id firstcome.CampaignID, user firstcome.UserID, d *firstcome.Decision) error {
	partition, err := p.of(*d.Joins.Campaign.Feed)
	if err != nil {
		return err
	}
	line, err := p.Begin(ctx, id, *d.Joins.Campaign.Feed, d.Joins.Line.Generation, p.end(partition))
	if err != nil {
		return err
	}
	at, err := p.append(partition, user)
	if err != nil {
		return err
	}
	d.Place = d.Joins.Campaign.Place(line, at-line.First+1, d.InForce, d.At)
	d.Place.Proof = ProofOf(user, firstcome.Ticket{Generation: line.Generation, Number: d.Place.Ticket})
	d.Joins, d.InLine = nil, 1
	return nil
}

// ProofOf returns the proof of a ticket.
func ProofOf(user firstcome.UserID, t firstcome.Ticket) string {
	return fmt.Sprintf("%d.%d.proof-of-%s", t.Generation, t.Number, user)
}

func ticketOf(user firstcome.UserID, proof string) (t firstcome.Ticket, err error) {
	if n, _ := fmt.Sscanf(strings.ReplaceAll(proof, ".", " "), "%d %d", &t.Generation, &t.Number); n != 2 || proof != ProofOf(user, t) {
		err = firstcome.ErrProof
	}
	return t, err
}

// PlaceBy is api.Proofs's.
func (p *Topic) PlaceBy(ctx context.Context, id firstcome.CampaignID, user firstcome.UserID, proof string) (place firstcome.Place, c firstcome.Coupon, err error) {
	ticket, err := ticketOf(user, proof)
	if err == nil {
		place, c, err = p.PlaceOf(ctx, id, user, ticket)
		place.Proof = proof
	}
	return place, c, err
}

// LeaveBy is api.Proofs's.
func (p *Topic) LeaveBy(ctx context.Context, id firstcome.CampaignID, user firstcome.UserID, proof string) error {
	ticket, err := ticketOf(user, proof)
	if err == nil {
		err = p.LeaveOf(ctx, id, user, ticket)
	}
	return err
}

// LineOf is that of Places.
func (p *Topic) LineOf(ctx context.Context, id firstcome.CampaignID) (gate.LineState, error) {
	state, err := p.FedLedger.LineOf(ctx, id)
	if err != nil || state.Campaign.Feed == nil || !state.Line.Begun {
		return state, err
	}
	partition, err := p.of(*state.Campaign.Feed)
	if err == nil {
		state.Line.Waiting = p.end(partition) - state.Line.Offset(state.Line.Serving())
		state.Line.LastTicket = state.Line.ServedThrough + state.Line.Waiting
	}
	return state, err
}

// Serve is a Line's.
func (p *Topic) Serve(ctx context.Context, id firstcome.CampaignID, limit int) (gate.Served, error) {
	turned, err := p.ServeTurn(ctx, id, gate.Turn{})
	if err != nil || turned.Feed == nil || !turned.Line.Begun {
		return turned.Served, err
	}
	partition, err := p.of(*turned.Feed)
	if err != nil {
		return gate.Served{}, err
	}
	next := turned.Line.Serving()
	turn := gate.Turn{Generation: turned.Line.Generation, From: next, Users: p.read(partition, turned.Line.Offset(next), limit)}
	turned, err = p.ServeTurn(ctx, id, turn)
	return turned.Served, err
}
