package redis

import (
	"errors"
	"time"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/flow"
)

// tellEvery is how often the same is told of a campaign: it is tried again with each sweep.
const tellEvery = time.Minute

// errHolder says that what the gate has of a holder cannot be read.
var errHolder = errors.New("a holder cannot be read")

// isolate keeps an error of one campaign, which only an operator ends, from the
// others: it is told and nil, and the campaign rests until the next sweep. Any
// other error is returned.
func (j *Journal) isolate(id firstcome.CampaignID, err error) error {
	if err == nil || !ofOne(err) {
		return err
	}
	s, now := j.stream(id), time.Now()
	j.mu.Lock()
	s.rest = now.Add(j.options.Sweep / 2)
	again := s.told == err.Error() && now.Sub(s.toldAt) < tellEvery
	if !again {
		s.told, s.toldAt = err.Error(), now
	}
	j.mu.Unlock()
	if !again {
		j.alarm(id, err)
	}
	return nil
}

// ofOne tells whether an error is of one campaign.
func ofOne(err error) bool {
	var e *Error
	if errors.As(err, &e) {
		return e.Code == "WRONGTYPE"
	}
	for _, known := range []error{firstcome.ErrNoCampaign, firstcome.ErrGateMismatch, firstcome.ErrBusy, flow.ErrLost, flow.ErrRetired, errHolder, errSince} {
		if errors.Is(err, known) {
			return true
		}
	}
	return false
}

// rests tells whether a campaign is not to be tried yet.
func (j *Journal) rests(s *stream) bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	return time.Now().Before(s.rest)
}

// Alarms returns how many alarms there were, told to OnAlarm or not.
func (j *Journal) Alarms() int64 { return j.alarms.Load() }

// alarm tells an operator; id is empty for what is about no single campaign.
func (j *Journal) alarm(id firstcome.CampaignID, err error) {
	j.alarms.Add(1)
	if j.options.OnAlarm != nil {
		j.options.OnAlarm(id, err)
	}
}
