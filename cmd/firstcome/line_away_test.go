//go:build !check && (!race || soak)

package main

import (
	"errors"
	"testing"
	"time"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/gate"
	"github.com/firstcome/firstcome/test/services"
	"github.com/firstcome/firstcome/test/stage"
)

// topicAt makes a topic for lines at a broker.
func topicAt(t *testing.T, broker *services.Server) string {
	t.Helper()
	at, err := services.MakeTopic(t.Context(), broker.URL(), "lines", 3, map[string]string{"retention.ms": "-1"})
	stage.Must(t, err)
	return at
}

// isAway has users claim, and wants that Kafka does not answer.
func (s *fedStage) isAway(id firstcome.CampaignID, users ...firstcome.UserID) {
	s.t.Helper()
	if _, err := s.line.Claim(s.t.Context(), id, users); !errors.Is(err, firstcome.ErrFeedAway) {
		s.t.Errorf("the claims of %v: %v", users, err)
	}
}

// holds has a holder and somebody new claim together, and wants that the holder is answered.
func (s *fedStage) holds(id firstcome.CampaignID, holder, other firstcome.UserID) {
	s.t.Helper()
	if d := s.claimOnce(id, other, holder); d[0].Outcome != 0 || d[1].Outcome != firstcome.AlreadyIssued {
		s.t.Errorf("a holder behind who would join: %v, %v", d[0].Outcome, d[1].Outcome)
	}
}

// TestF47HoldersAreAnsweredBesideThoseWhoCannotJoin kills the broker, before a line begins and while people are in it.
func TestF47HoldersAreAnsweredBesideThoseWhoCannotJoin(t *testing.T) {
	broker := services.Kafka.Server(t)
	s := newFedStage(t, topicAt(t, broker))
	s.create("c", 9)
	issued, err := s.line.Issue(t.Context(), gate.Order{Actor: "test"}, "c", []firstcome.UserID{"h"})
	stage.Must(t, err)
	if issued[0].Outcome != firstcome.Issued {
		t.Fatalf("issued directly: %v", issued[0].Outcome)
	}
	for _, joins := range []firstcome.UserID{"a", "b"} {
		stage.Must(t, broker.Kill())
		s.holds("c", "h", "x")
		if err := stage.Next(t, "an alarm", s.told); !errors.Is(err, firstcome.ErrFeedAway) {
			t.Errorf("the alarm says %v", err)
		}
		before := time.Now()
		s.isAway("c", "x")
		s.holds("c", "h", "x")
		inTime(t, "claims while the topic rests", time.Since(before), time.Second/2)
		stage.Must(t, broker.Restart(t.Context()))
		stage.Await(t, "a place behind the outage", true, func() bool {
			decisions, err := s.line.Claim(t.Context(), "c", []firstcome.UserID{joins})
			return err == nil && decisions[0].Outcome == firstcome.Waiting
		})
	}
	look(t, s.line)
	s.serve("c")
	if d := s.claim("c", "a", "b"); d[0].Outcome != firstcome.AlreadyIssued || d[1].Outcome != firstcome.AlreadyIssued {
		t.Errorf("who joined got %v, %v", d[0].Outcome, d[1].Outcome)
	}
}

// TestF47ANodeThatStartsWhileKafkaIsAwayFindsTheTopicLater has all but those who would join be served meanwhile. Nobody is told that the line is lost.
func TestF47ANodeThatStartsWhileKafkaIsAwayFindsTheTopicLater(t *testing.T) {
	broker := services.Kafka.Server(t)
	at := topicAt(t, broker)
	s := newFedStage(t, at)
	s.create("c", 9)
	s.claim("c", "h")
	look(t, s.line)
	s.serve("c")
	proof := s.claim("c", "a")[0].Place.Proof
	stage.Must(t, broker.Kill())

	node, empty := s.another(at), newFedStage(t, at) // which has no campaign yet
	if err := stage.Next(t, "an alarm", node.told); !errors.Is(err, firstcome.ErrFeedAway) {
		t.Errorf("the alarm says %v", err)
	}
	node.isAway("c", "x")
	node.holds("c", "h", "x")
	if _, err := node.line.Feed(t.Context()); !errors.Is(err, firstcome.ErrFeedAway) {
		t.Errorf("a partition while Kafka is away: %v", err)
	}
	if _, err := node.line.LineOf(t.Context(), "c"); !errors.Is(err, firstcome.ErrFeedAway) {
		t.Errorf("the line while Kafka is away: %v", err)
	}
	if place, _, err := node.line.PlaceBy(t.Context(), "c", "a", proof); err != nil || place.Ticket != 2 {
		t.Errorf("a place while Kafka is away is %+v, %v", place, err)
	}
	stage.Must(t, s.ledger.Create(t.Context(), "test", "d", firstcome.Terms{Name: "no line", Quantity: 1, Answer: firstcome.Recorded}))
	if d := node.claim("d", "x"); d[0].Outcome != firstcome.Issued {
		t.Errorf("a claim without a line: %v", d[0].Outcome)
	}

	stage.Must(t, broker.Restart(t.Context()))
	for _, n := range []*fedStage{node, empty} {
		stage.Await(t, "the topic", true, func() bool { return n.line.Lines(t.Context(), func(firstcome.CampaignID) {}) == nil })
	}
	stage.Next(t, "the topic of a node without a campaign", empty.found)
	if warnings := stage.Next(t, "what the topic warns of", node.found); len(warnings) == 0 {
		t.Error("a topic of one replica warns of nothing")
	}
	// A broker that has just started may know its topics and take nothing yet.
	stage.Await(t, "the ticket of who claims behind", 3, func() int64 { return node.claim("c", "b")[0].Place.Ticket })
	issued, _ := node.serve("c")
	stage.Same(t, "served behind", []string{"2 a 2", "3 b 3"}, issued)
}
