package api_test

import (
	"context"
	"fmt"
	"strings"
	"sync"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/api"
	"github.com/firstcome/firstcome/internal/flow"
)

// A topicGate is a ledger whose lines are in a topic of two partitions, each of them a slice: what kafka.Line is to the API.
type topicGate struct {
	*testLedger

	mu     sync.Mutex // guards what follows
	users  [2][]firstcome.UserID
	topic  string // its id
	broken error  // of whatever asks the topic
	full   error  // of appending to it
}

// inTopic is a change of open: new lines are in a topic.
func inTopic(s *shop, c *api.Config) {
	s.topic = &topicGate{testLedger: s.ledger, topic: "t"}
	s.issuer = flow.NewIssuer(s.topic, flow.Limits{})
	c.Places, c.Proofs = s.topic, s.topic
}

// breaks has the topic answer with an error from now on; nil: it answers again.
func (g *topicGate) breaks(err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.broken = err
}

// ask returns the topic's partition of a feed, or why it does not say.
func (g *topicGate) ask(feed firstcome.Feed) (int32, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	switch {
	case g.broken != nil:
		return 0, g.broken
	case feed.Topic != g.topic || feed.Partition < 0:
		return 0, firstcome.ErrFeedLost
	}
	return feed.Partition, nil
}

func (g *topicGate) end(p int32) int64 {
	g.mu.Lock()
	defer g.mu.Unlock()
	return int64(len(g.users[p]))
}

func (g *topicGate) append(p int32, user firstcome.UserID) (int64, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.users[p] = append(g.users[p], user)
	return int64(len(g.users[p]) - 1), g.full
}

func (g *topicGate) Feed(ctx context.Context) (feed firstcome.Feed, err error) {
	if _, err := g.ask(firstcome.Feed{Topic: g.topic}); err != nil {
		return feed, err
	}
	p, err := g.FreePartition(ctx, g.topic, int32(len(g.users)))
	if err != nil {
		err = fmt.Errorf("%w: add some with kafka-topics.sh", err)
	}
	return firstcome.Feed{Topic: g.topic, Partition: p}, err
}

func (g *topicGate) Lost(_ context.Context, _ firstcome.CampaignID, feed firstcome.Feed) (bool, error) {
	_, err := g.ask(firstcome.Feed{Topic: g.topic})
	return feed.Topic != g.topic || feed.Partition < 0, err
}

func (g *topicGate) Claim(ctx context.Context, id firstcome.CampaignID, users []firstcome.UserID) ([]firstcome.Decision, error) {
	decisions, err := g.testLedger.Claim(ctx, id, users)
	for n := range decisions {
		d := &decisions[n]
		if d.Joins == nil || err != nil {
			continue
		}
		p, err := g.ask(*d.Joins.Campaign.Feed)
		if err != nil {
			return nil, err
		}
		line, err := g.Begin(ctx, id, d.Joins.Line.Generation, g.end(p))
		if err != nil {
			return nil, err
		}
		at, err := g.append(p, users[n])
		if err != nil {
			return nil, err
		}
		d.Place = d.Joins.Campaign.Place(line, at-line.First+1, d.InForce, d.At)
		d.Place.Proof = proofOf(users[n], firstcome.Ticket{Generation: line.Generation, Number: d.Place.Ticket})
		d.Joins, d.InLine = nil, 1
	}
	return decisions, err
}

// proofOf is no secret here.
func proofOf(user firstcome.UserID, t firstcome.Ticket) string {
	return fmt.Sprintf("%d.%d.proof-of-%s", t.Generation, t.Number, user)
}

func ticketOf(user firstcome.UserID, proof string) (t firstcome.Ticket, err error) {
	if n, _ := fmt.Sscanf(strings.ReplaceAll(proof, ".", " "), "%d %d", &t.Generation, &t.Number); n != 2 || proof != proofOf(user, t) {
		err = firstcome.ErrProof
	}
	return t, err
}

func (g *topicGate) PlaceBy(ctx context.Context, id firstcome.CampaignID, user firstcome.UserID, proof string) (place firstcome.Place, c firstcome.Coupon, err error) {
	ticket, err := ticketOf(user, proof)
	if err == nil {
		place, c, err = g.PlaceOf(ctx, id, user, ticket)
		place.Proof = proof
	}
	return place, c, err
}

func (g *topicGate) LeaveBy(ctx context.Context, id firstcome.CampaignID, user firstcome.UserID, proof string) error {
	ticket, err := ticketOf(user, proof)
	if err == nil {
		err = g.LeaveOf(ctx, id, user, ticket)
	}
	return err
}

func (g *topicGate) LineOf(ctx context.Context, id firstcome.CampaignID) (flow.LineState, error) {
	state, err := g.testLedger.LineOf(ctx, id)
	if err != nil || state.Campaign.Feed == nil || !state.Line.Begun {
		return state, err
	}
	p, err := g.ask(*state.Campaign.Feed)
	if err == nil {
		state.Line.Waiting = g.end(p) - state.Line.Offset(state.Line.Serving())
		state.Line.LastTicket = state.Line.ServedThrough + state.Line.Waiting
	}
	return state, err
}

// Serve serves a line as a node does.
func (g *topicGate) Serve(ctx context.Context, id firstcome.CampaignID, limit int) (flow.Served, error) {
	turned, err := g.ServeTurn(ctx, id, flow.Turn{})
	if err != nil || turned.Feed == nil || !turned.Line.Begun {
		return turned.Served, err
	}
	p, err := g.ask(*turned.Feed)
	if err != nil {
		return flow.Served{}, err
	}
	from := turned.Line.Offset(turned.Line.Serving())
	g.mu.Lock()
	users := g.users[p][from:min(int64(len(g.users[p])), from+int64(limit))]
	g.mu.Unlock()
	turned, err = g.ServeTurn(ctx, id, flow.Turn{Generation: turned.Line.Generation, From: turned.Line.Serving(), Users: users})
	return turned.Served, err
}
