package flow

import (
	"maps"
	"sync"
	"time"

	"github.com/firstcome/firstcome"
)

// tellEvery is how often an alarm of a campaign is repeated.
const tellEvery = time.Minute

// Alarms are what an operator is told of campaigns. Any worker of a Source may tell.
type Alarms struct {
	On func(firstcome.CampaignID, error) // nil: nobody is told

	mu     sync.Mutex          // guards what follows
	told   map[alarm]time.Time // when last
	forgot time.Time           // when those were last forgotten that were told long ago
}

// An alarm is what was told of a campaign.
type alarm struct {
	of   firstcome.CampaignID
	text string
}

// Tell raises an alarm about a campaign, unless the same was raised just before.
func (a *Alarms) Tell(id firstcome.CampaignID, err error) {
	now, it := time.Now(), alarm{id, err.Error()}
	a.mu.Lock()
	old := func(_ alarm, at time.Time) bool { return now.Sub(at) >= tellEvery }
	if old(it, a.forgot) { // and not each time: of many campaigns there may be as many
		a.forgot = now
		maps.DeleteFunc(a.told, old)
	}
	at, known := a.told[it]
	again := known && !old(it, at)
	if !again {
		if a.told == nil {
			a.told = map[alarm]time.Time{}
		}
		a.told[it] = now
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
