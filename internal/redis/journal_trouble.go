package redis

import (
	"errors"
	"maps"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/flow"
)

// tellEvery is how often the same is told of a campaign: it is tried again with each sweep.
const tellEvery = time.Minute

// errHolder says that what the gate has of a holder, or of the campaign, cannot be read.
var errHolder = errors.New("what Redis has cannot be read")

// longestPause is how long a campaign rests at most that somebody keeps locked, in sweeps: by
// default it is recorded within about ten seconds of its release.
const longestPause = 10

// Troubles are what keeps campaigns from being drained, and what an operator was told of them. A campaign in
// trouble rests, so that it costs the others nothing; one whose row in the ledger is locked is drained in a lane of its
// own until it was drained once. Any worker may ask.
type troubles struct {
	sweep   time.Duration
	onAlarm func(firstcome.CampaignID, error) // nil: nobody is told

	mu sync.Mutex // guards what follows
	of map[firstcome.CampaignID]*trouble
}

// A trouble is that of a campaign.
type trouble struct {
	rest   time.Time            // until when it is not tried
	locked int                  // how often in a row its row in the ledger was
	told   map[string]time.Time // what was told of it, and when last
}

// about returns a campaign's trouble. mu is held.
func (t *troubles) about(id firstcome.CampaignID) *trouble {
	c, ok := t.of[id]
	if !ok {
		c = &trouble{told: map[string]time.Time{}}
		t.of[id] = c
	}
	return c
}

// add tells an error of a campaign, which rests: until the next sweep, or longer each time that its row is locked.
func (t *troubles) add(id firstcome.CampaignID, err error) {
	t.mu.Lock()
	c, pause := t.about(id), t.sweep/2
	if errors.Is(err, flow.ErrRowLocked) {
		c.locked++
		pause = t.pause(c.locked)
	}
	c.rest = time.Now().Add(pause)
	t.mu.Unlock()
	t.tell(id, err)
}

// pause returns how long a campaign rests whose row was locked so often in a row: about a
// sweep, and twice as long each time, a quarter of it either way so that nodes do not keep step.
func (t *troubles) pause(locked int) time.Duration {
	pause := t.sweep * time.Duration(min(longestPause, 1<<min(locked-1, longestPause)))
	return pause*3/4 + rand.N(pause/2+1)
}

// rests tells whether a campaign is not to be tried yet.
func (t *troubles) rests(id firstcome.CampaignID) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	c := t.of[id]
	return c != nil && time.Now().Before(c.rest)
}

// lane returns where a campaign is drained.
func (t *troubles) lane(id firstcome.CampaignID) lane {
	t.mu.Lock()
	defer t.mu.Unlock()
	if c := t.of[id]; c != nil && c.locked > 0 {
		return locked
	}
	return free
}

// drained notes that a campaign was drained.
func (t *troubles) drained(id firstcome.CampaignID) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if c := t.of[id]; c != nil {
		c.locked = 0
	}
}

// keep forgets all but the active campaigns, and so bounds what is remembered by them.
func (t *troubles) keep(active []flow.Revision) {
	t.mu.Lock()
	defer t.mu.Unlock()
	kept := map[firstcome.CampaignID]*trouble{}
	for _, r := range active {
		if c, ok := t.of[r.Campaign]; ok {
			kept[r.Campaign] = c
		}
	}
	t.of = kept
}

// tell tells an operator what is the matter with a campaign, the same once in a while.
func (t *troubles) tell(id firstcome.CampaignID, err error) {
	now := time.Now()
	t.mu.Lock()
	told := t.about(id).told
	maps.DeleteFunc(told, func(_ string, at time.Time) bool { return now.Sub(at) >= tellEvery })
	_, again := told[err.Error()]
	if !again {
		told[err.Error()] = now
	}
	t.mu.Unlock()
	if !again {
		t.alarm(id, err)
	}
}

// alarm tells an operator; id is empty for what is about no single campaign.
func (t *troubles) alarm(id firstcome.CampaignID, err error) {
	if t.onAlarm != nil {
		t.onAlarm(id, err)
	}
}

// ofOne tells whether an error is of one campaign.
func ofOne(err error) bool {
	var e *Error
	if Spoiled(err) || errors.As(err, &e) {
		return Spoiled(err)
	}
	for _, known := range []error{firstcome.ErrNoCampaign, firstcome.ErrGateMismatch, firstcome.ErrBusy, flow.ErrLost, flow.ErrRetired, flow.ErrRowLocked} {
		if errors.Is(err, known) {
			return true
		}
	}
	return false
}

// Spoiled tells whether an error says that what Redis has of a campaign cannot be read: somebody else wrote it.
func Spoiled(err error) bool {
	var e *Error
	return errors.Is(err, errHolder) || errors.As(err, &e) && e.Code == "WRONGTYPE"
}
