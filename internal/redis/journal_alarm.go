package redis

import (
	"context"
	"errors"
	"maps"
	"sync"
	"time"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/flow"
)

// tellEvery is how often an alarm of a campaign is repeated.
const tellEvery = time.Minute

// errHolder says that what the gate has of a holder, or of the campaign, cannot be read.
var errHolder = errors.New("what Redis has cannot be read")

// Alarms are what an operator is told of campaigns. Any worker may tell.
type alarms struct {
	on func(firstcome.CampaignID, error) // nil: nobody is told

	mu     sync.Mutex          // guards what follows
	told   map[alarm]time.Time // when last
	forgot time.Time           // when those were last forgotten that were told long ago
}

// An alarm is what was told of a campaign.
type alarm struct {
	of   firstcome.CampaignID
	text string
}

// tell raises an alarm about a campaign, unless the same was raised just before.
func (a *alarms) tell(id firstcome.CampaignID, err error) {
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
		a.now(id, err)
	}
}

// now raises an alarm. id is empty if it is about no single campaign.
func (a *alarms) now(id firstcome.CampaignID, err error) {
	if a.on != nil {
		a.on(id, err)
	}
}

// A sinkError is the sink's.
type sinkError struct{ error }

// Unwrap returns what the sink returned.
func (e sinkError) Unwrap() error { return e.error }

// marked returns a sink whose errors are sinkErrors.
func marked(to flow.Sink) flow.Sink {
	return func(ctx context.Context, b flow.Batch) (flow.Drained, error) {
		drained, err := to(ctx, b)
		if err != nil {
			err = sinkError{err}
		}
		return drained, err
	}
}

// toldBySink tells whether an error needs no alarm, because the sink has reported it.
func toldBySink(err error) bool {
	return errors.As(err, new(sinkError)) && !errors.Is(err, firstcome.ErrGateMismatch) && !errors.Is(err, flow.ErrRowLocked)
}

// ofOne tells whether an error concerns one campaign. All do, except Redis's.
func ofOne(err error) bool {
	var e *Error
	return Spoiled(err) || !errors.As(err, &e)
}

// Spoiled tells whether an error says that what Redis has of a campaign cannot be read: somebody else wrote it.
func Spoiled(err error) bool {
	var e *Error
	return errors.Is(err, errHolder) || errors.As(err, &e) && e.Code == "WRONGTYPE"
}
