package sim

import (
	"time"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/line"
)

// A logging is where a town logs its line.
type logging struct {
	topic  *Topic    // nil: nowhere
	unable string    // a node that knows no log; empty: none
	back   time.Time // when the topic answers again
}

// logs has a town log its line. The topic has records of another campaign of the same id.
func (t *town) logs(terms *firstcome.Terms) {
	t.topic = &Topic{}
	another := line.Record{
		Logged: firstcome.Logged{CampaignUID: "another", Epoch: 9, Began: 1}, Ticket: firstcome.Ticket{Generation: 9, Number: 9}, User: "a",
	}
	for range t.IntN(3) {
		t.topic.records = append(t.topic.records, another)
	}
	t.lose = max(t.lose, 2)
	terms.Pace = &firstcome.Pace{PerSecond: 1 + t.Int64N(2)} // so slow that people are in line for long
	terms.Waitlist = t.IntN(2) == 0
	before := t.topic.end()
	t.topic.records = append(t.topic.records, another)
	terms.Log = &firstcome.LineLog{Topic: t.topic.id(), First: before}
	if len(t.names) > 1 && t.IntN(4) == 0 {
		t.unable = t.names[0]
	}
}

// failTopic has a fault of the topic happen: it is away, or made again, or its oldest records are deleted.
func (t *town) failTopic() {
	switch n := t.IntN(8); {
	case n > 1:
		t.say("the topic does not answer")
		t.topic.away, t.back = true, time.Now().Add(time.Duration(t.IntN(3000))*time.Millisecond)
	case n > 0:
		t.remakeTopic()
	default:
		t.say("the topic's records are deleted")
		t.topic.first, t.topic.records = t.topic.end(), nil
	}
}

func (t *town) remakeTopic() {
	t.say("the topic is made again")
	t.topic.made, t.topic.first, t.topic.records = t.topic.made+1, 0, nil
}

// damaged reports whether the topic lacks something of the line's log.
func (t *town) damaged() bool {
	if t.topic == nil {
		return false
	}
	log := t.ledger.campaigns[campaign].history().Log
	return log.Topic != t.topic.id() || log.First >= 0 && log.First < t.topic.first
}
