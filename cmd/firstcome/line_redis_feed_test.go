package main

import (
	"fmt"
	"testing"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/flow"
	"github.com/firstcome/firstcome/internal/kafka"
	"github.com/firstcome/firstcome/test/services"
	"github.com/firstcome/firstcome/test/stage"
)

// TestP9ANodeThatReadsTheFormerPartitionPassesNobodyOverAtRedis has Redis serve a line by two nodes. The campaign gets another partition, and the
// second node still reads the old one, which has records of the former generation at the offsets of those who are in line now.
func TestP9ANodeThatReadsTheFormerPartitionPassesNobodyOverAtRedis(t *testing.T) {
	url := services.Kafka.Database(t)
	d := newDesk(t, services.Redis.Database(t), services.Ledgers[services.SQLite](t), nil)
	open := func() *kafka.Line {
		over := &flow.Over{RemoteGate: d.remote.gate, Fed: d.remote.gate, Book: d.ledger}
		line, err := kafka.OpenLine(t.Context(), url, kafka.LineOptions{Gate: over, Ledger: d.ledger, Secret: stage.Secret(), MaxLine: 1000})
		stage.Must(t, err)
		t.Cleanup(line.Close)
		return line
	}
	here, there := open(), open()
	feed, err := here.Feed(t.Context())
	stage.Must(t, err)
	terms := stage.Terms(100)
	terms.Pace, terms.Feed = &firstcome.Pace{}, &feed
	d.reaches("c", d.ledger.Create(t.Context(), "test", "c", terms))
	stage.Must(t, stage.Err(here.Claim(t.Context(), "c", stage.Users("a", 0, 20))))
	look(t, there)
	stage.Must(t, stage.Err(there.Serve(t.Context(), "c", 1)))

	d.terms(func(terms *firstcome.Terms) { terms.Feed = &firstcome.Feed{Topic: feed.Topic, Partition: feed.Partition + 1} })
	stage.Must(t, stage.Err(here.Claim(t.Context(), "c", []firstcome.UserID{"f", "g"})))
	var issued []string
	for n := range 4 {
		if n == 3 {
			look(t, there)
		}
		served, err := there.Serve(t.Context(), "c", 9)
		stage.Must(t, err)
		for _, c := range served.Coupons {
			issued = append(issued, fmt.Sprint(c.User, " ", c.Generation, ".", c.Ticket))
		}
	}
	stage.Same(t, "who is served of the new partition", []string{"f 2.1", "g 2.2"}, issued)
}
