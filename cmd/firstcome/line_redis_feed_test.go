//go:build !check && (!race || soak)

package main

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/test/services"
	"github.com/firstcome/firstcome/test/stage"
)

// TestP9ANodeThatReadsTheFormerPartitionPassesNobodyOverAtRedis has Redis serve a line by two nodes. The campaign gets another partition, and the
// second node still reads the old one, which has records of the former generation at the offsets of those who are in line now.
func TestP9ANodeThatReadsTheFormerPartitionPassesNobodyOverAtRedis(t *testing.T) {
	url := services.Kafka.Database(t)
	d := newDesk(t, services.Redis.Database(t), services.Ledgers[services.SQLite](t), nil)
	here, there := d.openLine(url), d.openLine(url)
	feed := d.createFed(here, "c", 100)
	stage.Must(t, stage.Err(here.Claim(t.Context(), "c", stage.Users("a", 0, 20))))
	look(t, there)
	stage.Must(t, stage.Err(there.Serve(t.Context(), "c", 1)))

	d.terms(func(terms *firstcome.Terms) {
		terms.Feed = &firstcome.Feed{Topic: feed.Topic, Partition: feed.Partition + 1}
	})
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

// TestF77WhoWasServedLastAndForgottenIsServedAgain empties Redis when everybody in line was served, and the ledger has only the first. Nobody joins any
// more, so no node hears from the topic that there is something to do.
func TestF77WhoWasServedLastAndForgottenIsServedAgain(t *testing.T) {
	url := services.Kafka.Database(t)
	d := newDesk(t, services.Redis.Database(t), services.Ledgers[services.SQLite](t), nil)
	r := &rewind{desk: d}
	line := d.openLine(url)
	d.createFed(line, "c", 100)
	decisions, err := line.Claim(t.Context(), "c", []firstcome.UserID{"a", "b"})
	stage.Must(t, err)
	stage.Must(t, stage.Err(line.Serve(t.Context(), "c", 1)))
	r.records()
	stage.Must(t, stage.Err(line.Serve(t.Context(), "c", 9)))
	stage.Same(t, "the lines with people in them", []firstcome.CampaignID(nil), look(t, line))
	d.do("FLUSHALL")
	d.rebuilt(d.rebuilder())
	if place, _, err := line.PlaceBy(t.Context(), "c", "b", decisions[1].Place.Proof); err != nil || place.Ahead != 0 {
		t.Errorf("behind the rebuild b stands at %+v, %v", place, err)
	}
	stage.Await(t, "who is served again", "b", func() (user firstcome.UserID) {
		for _, id := range look(t, line) {
			served, err := line.Serve(t.Context(), id, 9)
			stage.Must(t, err)
			for _, c := range served.Coupons {
				user = c.User
			}
		}
		return user
	})
}

// TestAPartitionOnItsWayToTheGateIsNotGivenAway has a campaign be over, while other campaigns look for partitions. An operator has it go on, and Redis
// has not heard of that yet.
func TestAPartitionOnItsWayToTheGateIsNotGivenAway(t *testing.T) {
	in := func(d time.Duration) time.Time { return time.Now().UTC().Truncate(time.Microsecond).Add(d) }
	for what, c := range map[string]struct {
		givenUp bool // before
		edit    func(*firstcome.Terms)
		free    []int32
		want    int32
	}{
		"it gets another partition": {true, func(terms *firstcome.Terms) {
			terms.ClosesAt, terms.Feed = in(time.Hour), &firstcome.Feed{Topic: "id", Partition: 1}
		}, []int32{0, 2}, 1},
		"it may go on where it is": {false, func(terms *firstcome.Terms) { terms.ClosesAt, terms.Quantity = in(time.Hour), 9 }, []int32{1, 2}, 0},
	} {
		t.Run(what, func(t *testing.T) {
			ledgers(t, func(t *testing.T, name string) {
				d := newDesk(t, services.Redis.Database(t), name, nil)
				terms := stage.Terms(10)
				terms.Pace, terms.Feed, terms.ClosesAt = &firstcome.Pace{}, &firstcome.Feed{Topic: "id"}, in(-2*time.Minute)
				d.reaches("c", d.ledger.Create(t.Context(), "test", "c", terms))
				terms.ClosesAt = time.Time{}
				if c.givenUp {
					stage.Must(t, stage.Err(d.ledger.FreePartition(t.Context(), "id", 3)))
				}
				stage.Must(t, stage.Err(d.ledger.SetTerms(t.Context(), "op", "c", 0, c.edit)))
				for n, want := range c.free {
					free, err := d.ledger.FreePartition(t.Context(), "id", 3)
					stage.Must(t, err)
					stage.Same(t, "the partition of the next campaign", want, free)
					terms.Feed = &firstcome.Feed{Topic: "id", Partition: free}
					id := firstcome.CampaignID(fmt.Sprint("d-", n))
					d.reaches(id, d.ledger.Create(t.Context(), "test", id, terms))
				}
				terms.Feed = &firstcome.Feed{Topic: "id", Partition: c.want}
				if err := d.ledger.Create(t.Context(), "test", "e", terms); !errors.Is(err, firstcome.ErrFeedTaken) {
					t.Errorf("another campaign gets its partition: %v", err)
				}
				d.reaches("c", nil)
				state, err := d.remote.gate.LineOf(t.Context(), "c")
				stage.Must(t, err)
				stage.Same(t, "the feed at the gate", firstcome.Feed{Topic: "id", Partition: c.want}, *state.Campaign.Feed)
				stage.Same(t, "the feed in the ledger", *state.Campaign.Feed, *d.status().Feed)
			})
		})
	}
}
