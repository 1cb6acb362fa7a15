package redis

import (
	"errors"
	"math/rand/v2"
	"time"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/flow"
)

// tellEvery is how often the same is told of a campaign: it is tried again with each sweep.
const tellEvery = time.Minute

// errHolder says that what the gate has of a holder, or of the campaign, cannot be read.
var errHolder = errors.New("what Redis has cannot be read")

// isolate keeps an error of one campaign, which only an operator ends, from the
// others: it is told and nil, and the campaign rests until the next sweep. Any
// other error is returned.
func (j *Journal) isolate(id firstcome.CampaignID, err error) error {
	if err == nil || !ofOne(err) {
		return err
	}
	s, pause := j.stream(id), j.options.Sweep/2
	j.schedule.soon(id)
	j.mu.Lock()
	if errors.Is(err, flow.ErrRowLocked) {
		s.held++
		j.agenda.hold(id)
		pause = j.pause(s.held)
	}
	s.rest = time.Now().Add(pause)
	j.mu.Unlock()
	j.tell(s, err)
	return nil
}

// tell tells what is the matter with a campaign, the same once in a while.
func (j *Journal) tell(s *stream, err error) {
	now := time.Now()
	j.mu.Lock()
	again := s.told == err.Error() && now.Sub(s.toldAt) < tellEvery
	if !again {
		s.told, s.toldAt = err.Error(), now
	}
	j.mu.Unlock()
	if !again {
		j.alarm(s.id, err)
	}
}

// ofOne tells whether an error is of one campaign.
func ofOne(err error) bool {
	var e *Error
	if Spoiled(err) || errors.As(err, &e) {
		return Spoiled(err)
	}
	for _, known := range []error{firstcome.ErrNoCampaign, firstcome.ErrGateMismatch, firstcome.ErrBusy, flow.ErrLost, flow.ErrRetired, errSince, flow.ErrRowLocked} {
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

// longestPause is how long a campaign rests at most that somebody keeps locked, in sweeps: by
// default it is recorded within about ten seconds of its release.
const longestPause = 10

// pause returns how long a campaign rests that was held so often in a row: about a
// sweep, and twice as long each time, a quarter of it either way so that nodes do not keep step.
func (j *Journal) pause(held int) time.Duration {
	pause := j.options.Sweep * time.Duration(min(longestPause, 1<<min(held-1, longestPause)))
	return pause*3/4 + rand.N(pause/2+1)
}

// release notes that a campaign was drained: nobody holds it.
func (j *Journal) release(s *stream) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if s.held > 0 {
		s.held = 0
		j.agenda.release(s.id)
	}
}

// rests tells whether a campaign is not to be tried yet.
func (j *Journal) rests(s *stream) bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	return time.Now().Before(s.rest)
}

// alarm tells an operator; id is empty for what is about no single campaign.
func (j *Journal) alarm(id firstcome.CampaignID, err error) {
	if j.options.OnAlarm != nil {
		j.options.OnAlarm(id, err)
	}
}
