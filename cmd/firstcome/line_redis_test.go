//go:build !check && (!race || soak)

package main

import (
	"errors"
	"fmt"
	"testing"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/gate"
	"github.com/firstcome/firstcome/internal/kafka"
	"github.com/firstcome/firstcome/test/services"
	"github.com/firstcome/firstcome/test/stage"
)

// openLine opens the lines that a topic keeps for this Redis.
func (d *desk) openLine(url string) *kafka.Line {
	d.t.Helper()
	over := &gate.Router{Gate: d.remote.gate, Fed: d.remote.gate, Book: d.ledger}
	line, err := kafka.OpenLine(d.t.Context(), url, kafka.LineOptions{Gate: over, Ledger: d.ledger, Secret: stage.Secret(), MaxLine: 1000})
	stage.Must(d.t, err)
	d.t.Cleanup(line.Close)
	return line
}

// createFed makes a campaign with a line in the topic, and returns its feed.
func (d *desk) createFed(line *kafka.Line, id firstcome.CampaignID, quantity int64) firstcome.Feed {
	d.t.Helper()
	feed, err := line.Feed(d.t.Context())
	stage.Must(d.t, err)
	terms := stage.Terms(quantity)
	terms.Pace, terms.Feed = &firstcome.Pace{}, &feed
	d.reaches(id, d.ledger.Create(d.t.Context(), "test", id, terms))
	return feed
}

// TestF77ALineInATopicThatRedisServesOutlivesAnEmptiedRedis has users join, leave and be served, by two nodes. Redis is emptied when two were served
// of whom the ledger has one.
func TestF77ALineInATopicThatRedisServesOutlivesAnEmptiedRedis(t *testing.T) {
	url := services.Kafka.Database(t)
	d := newDesk(t, services.Redis.Database(t), services.Ledgers[services.SQLite](t), nil)
	r := &rewind{desk: d}
	here, there := d.openLine(url), d.openLine(url)
	d.createFed(here, "c", 4)
	joins := func(line *kafka.Line, users ...firstcome.UserID) (places []firstcome.Place) {
		t.Helper()
		decisions, err := line.Claim(t.Context(), "c", users)
		stage.Must(t, err)
		for n, d := range decisions {
			if d.Outcome != firstcome.Waiting {
				t.Fatalf("%s is answered %v", users[n], d.Outcome)
			}
			places = append(places, d.Place)
		}
		return places
	}
	serves := func(line *kafka.Line, limit int) (issued []string) {
		t.Helper()
		served, err := line.Serve(t.Context(), "c", limit)
		stage.Must(t, err)
		for _, c := range served.Coupons {
			issued = append(issued, fmt.Sprint(c.User, " ", c.Ticket))
		}
		return issued
	}
	places := joins(here, "a", "b", "c")
	places = append(places, joins(there, "d", "e", "f")...)
	stage.Must(t, there.LeaveBy(t.Context(), "c", "d", places[3].Proof))
	stage.Same(t, "who is served", []string{"a 1"}, serves(here, 1))
	r.records()
	stage.Same(t, "who is served by the other", []string{"b 2"}, serves(there, 1))
	d.do("FLUSHALL")
	d.rebuilt(d.rebuilder())

	place, _, err := here.PlaceBy(t.Context(), "c", "e", places[4].Proof)
	if err != nil || place.Ticket != 5 || place.Ahead != 3 {
		t.Errorf("behind the rebuild e stands at %+v, %v", place, err)
	}
	if _, _, err := here.PlaceBy(t.Context(), "c", "d", places[3].Proof); !errors.Is(err, firstcome.ErrNoTicket) {
		t.Errorf("who left stands at %v", err)
	}
	late := joins(there, "late")
	stage.Same(t, "the next ticket", int64(7), late[0].Ticket)
	var issued []string
	stage.Await(t, "the end of the line", true, func() bool {
		served, err := there.Serve(t.Context(), "c", 10)
		stage.Must(t, err)
		for _, c := range served.Coupons {
			issued = append(issued, fmt.Sprint(c.User, " ", c.Ticket))
		}
		return served.Ended == "sold_out"
	})
	stage.Same(t, "who is served behind the rebuild", []string{"b 2", "c 3", "e 5"}, issued)
	r.records()
	d.sound()
}
