package record

import (
	"maps"
	"sync"
	"time"

	"github.com/firstcome/firstcome"
)

// raiseEvery is the shortest time between two equal alarms of a campaign.
const raiseEvery = time.Minute

// Alarms passes on what an operator should know about campaigns. Any goroutine may raise an alarm.
type Alarms struct {
	On func(firstcome.CampaignID, error) // may be nil

	mu     sync.Mutex          // guards the fields below
	raised map[alarm]time.Time // when an alarm was last raised
	forgot time.Time           // when old alarms were last removed from raised
}

// An alarm identifies an alarm: equal ones are not repeated soon.
type alarm struct {
	of   firstcome.CampaignID
	text string
}

// Raise raises an alarm about a campaign, unless the same alarm was raised within raiseEvery.
func (a *Alarms) Raise(id firstcome.CampaignID, err error) {
	now, it := time.Now(), alarm{id, err.Error()}
	a.mu.Lock()
	old := func(_ alarm, at time.Time) bool { return now.Sub(at) >= raiseEvery }
	if old(it, a.forgot) { // not at each call: there may be as many alarms as campaigns
		a.forgot = now
		maps.DeleteFunc(a.raised, old)
	}
	at, known := a.raised[it]
	again := known && !old(it, at)
	if !again {
		if a.raised == nil {
			a.raised = map[alarm]time.Time{}
		}
		a.raised[it] = now
	}
	a.mu.Unlock()
	if !again {
		a.Now(id, err)
	}
}

// Now raises an alarm. id is empty if it is about no single campaign.
func (a *Alarms) Now(id firstcome.CampaignID, err error) {
	if a.On != nil {
		a.On(id, err)
	}
}
