//go:build !check && (!race || soak)

package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"testing"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/kafka"
	"github.com/firstcome/firstcome/internal/ledger"
	"github.com/firstcome/firstcome/test/services"
	"github.com/firstcome/firstcome/test/stage"
)

// A fedStage is a ledger that decides, with lines in a topic.
type fedStage struct {
	t      *testing.T
	ledger *ledger.Ledger
	line   *kafka.Line
	told   stage.Alarms
	found  chan []string // what the topic warns of, once it is found
}

func newFedStage(t *testing.T, url string) *fedStage {
	t.Helper()
	l, err := ledger.Open(t.Context(), filepath.Join(t.TempDir(), "ledger.db"), ledger.Options{Secret: stage.Secret()})
	stage.Must(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- l.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		stage.Must(t, <-done)
		stage.Must(t, l.Close())
	})
	return newFedNode(t, url, l)
}

// another returns another node of the same ledger.
func (s *fedStage) another(url string) *fedStage { return newFedNode(s.t, url, s.ledger) }

func newFedNode(t *testing.T, url string, l *ledger.Ledger) *fedStage {
	t.Helper()
	told, found := make(stage.Alarms, 100), make(chan []string, 1)
	line, err := kafka.OpenLine(t.Context(), url, kafka.LineOptions{
		Gate: l, Ledger: l, Secret: stage.Secret(), MaxLine: 1000, OnAlarm: told.Tell, OnFound: func(warnings []string) { found <- warnings },
	})
	stage.Must(t, err)
	t.Cleanup(line.Close)
	return &fedStage{t, l, line, told, found}
}

// create makes a campaign with a line in the topic.
func (s *fedStage) create(id firstcome.CampaignID, quantity int64) {
	s.t.Helper()
	feed, err := s.line.Feed(s.t.Context())
	stage.Must(s.t, err)
	stage.Must(s.t, s.ledger.Create(s.t.Context(), "test", id, firstcome.Terms{
		Name: "fed", Quantity: quantity, Answer: firstcome.Recorded, Pace: &firstcome.Pace{}, Feed: &feed,
	}))
}

// claim claims until the topic takes it: on a busy machine, or just after its start, a broker may take longer than a claim waits.
func (s *fedStage) claim(id firstcome.CampaignID, users ...firstcome.UserID) (decisions []firstcome.Decision) {
	s.t.Helper()
	stage.Await(s.t, "whether all claims are decided", true, func() bool {
		decisions = s.claimOnce(id, users...)
		return !slices.ContainsFunc(decisions, func(d firstcome.Decision) bool { return d.Outcome == 0 })
	})
	return decisions
}

func (s *fedStage) claimOnce(id firstcome.CampaignID, users ...firstcome.UserID) []firstcome.Decision {
	s.t.Helper()
	decisions, err := s.line.Claim(s.t.Context(), id, users)
	stage.Must(s.t, err)
	return decisions
}

// serve serves the line until nobody is in it, and returns what was issued as NUMBER USER TICKET.
func (s *fedStage) serve(id firstcome.CampaignID) (issued []string, ended string) {
	s.t.Helper()
	for {
		served, err := s.line.Serve(s.t.Context(), id, 100)
		stage.Must(s.t, err)
		for _, c := range served.Coupons {
			issued = append(issued, fmt.Sprint(c.Number, " ", c.User, " ", c.Ticket))
		}
		if served.Waiting == 0 {
			return issued, served.Ended
		}
	}
}

// TestALineInATopicIsServedInTheOrderOfItsOffsets has users claim, also twice, before and after they are served, until all is sold.
func TestALineInATopicIsServedInTheOrderOfItsOffsets(t *testing.T) {
	s := newFedStage(t, services.Kafka.Database(t))
	s.create("c", 5)
	for n, d := range s.claim("c", "a", "b", "a", "c") {
		if d.Outcome != firstcome.Waiting || d.Place.Ticket != int64(n+1) || d.Place.Ahead != int64(n) {
			t.Errorf("claim %d: %v, %+v", n, d.Outcome, d.Place)
		}
	}
	issued, _ := s.serve("c")
	stage.Same(t, "the first turn", []string{"1 a 1", "2 b 2", "3 c 4"}, issued)
	again := s.claim("c", "a", "d", "e", "f")
	if again[0].Outcome != firstcome.AlreadyIssued || again[1].Place.Ticket != 5 {
		t.Errorf("claims behind the first turn: %+v", again)
	}
	place, _, err := s.line.PlaceBy(t.Context(), "c", "e", again[2].Place.Proof)
	if err != nil || place.Ticket != 6 || place.Ahead != 1 {
		t.Errorf("the place by the proof is %+v, %v", place, err)
	}
	for what, proof := range map[string]string{"another user's": again[1].Place.Proof, "made up": "1.6.AAAAAAAAAAAAAAAA", "nothing": "6"} {
		if _, _, err := s.line.PlaceBy(t.Context(), "c", "e", proof); !errors.Is(err, firstcome.ErrProof) {
			t.Errorf("a proof that is %s finds %v", what, err)
		}
	}
	issued, ended := s.serve("c")
	stage.Same(t, "the second turn", []string{"4 d 5", "5 e 6"}, issued)
	if ended != "sold_out" {
		t.Errorf("the line ended as %q", ended)
	}
	if _, _, err := s.line.PlaceBy(t.Context(), "c", "f", again[3].Place.Proof); !errors.Is(err, firstcome.ErrNoTicket) {
		t.Errorf("the place of who was sent away is %v", err)
	}
	stage.Must(t, stage.Err(s.ledger.Void(t.Context(), "test", "c", 1, "test")))
	if d := s.claim("c", "g")[0]; d.Outcome != firstcome.Waiting || d.Place.Generation != 2 || d.Place.Ticket != 1 {
		t.Errorf("who claims behind the end: %v, %+v", d.Outcome, d.Place)
	}
	issued, _ = s.serve("c")
	stage.Same(t, "the next generation", []string{"6 g 1"}, issued)
}
