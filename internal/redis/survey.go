package redis

import (
	"context"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/redis/rueidis"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/gate"
)

// A schedule says when each active campaign is looked at next: at every look, but a quiet one
// only when its slow look is due. A new revision from the ledger or a message ends that at once; if the
// message is lost, nothing but time is. So nothing that is correct depends on it.
type schedule struct {
	slow time.Duration // between two looks at a quiet campaign

	mu   sync.Mutex // guards what follows
	next map[firstcome.CampaignID]appointment
}

// An appointment is the next look at a campaign while its revision is this one. The zero time: it is due.
type appointment struct {
	revision gate.Revision
	at       time.Time
}

// due returns those of the active campaigns that are to be looked at now. It forgets all others.
func (s *schedule) due(active []gate.Revision) (due []gate.Revision) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now, next := time.Now(), make(map[firstcome.CampaignID]appointment, len(active))
	for _, r := range active {
		a := s.next[r.Campaign]
		if a.revision != r || !now.Before(a.at) {
			a = appointment{revision: r}
			due = append(due, r)
		}
		next[r.Campaign] = a
	}
	s.next = next
	return due
}

// quiet has the next look at a campaign be a slow one, unless soon was called since it was due.
func (s *schedule) quiet(r gate.Revision) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.next[r.Campaign].revision == r {
		s.next[r.Campaign] = appointment{r, time.Now().Add(s.slow)}
	}
}

// soon has a campaign be looked at with the next ones.
func (s *schedule) soon(id firstcome.CampaignID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.next, id)
}

// A survey is what a look at a campaign without a script finds.
type survey struct {
	entries int64 // of its journal
	// fields are surveyFields, as text; one that is not there is empty.
	fields []string
	err    error
}

// surveyFields are what a survey reads of a campaign's hash.
var surveyFields = [...]string{"last_number", "drained_through", "version", "epoch", "closed", "closes_at"}

// surveyPage bounds the campaigns that a survey reads in one round trip.
const surveyPage = 500

// survey looks at those of the active campaigns that are due, and calls each with what it found.
func (j *Journal) survey(ctx context.Context, s *schedule, active []gate.Revision, each func(gate.Revision, survey) error) error {
	due := s.due(active)
	if len(due) == 0 {
		return nil
	}
	now, err := j.conn.now(ctx)
	if err != nil {
		return err
	}
	for page := range slices.Chunk(due, surveyPage) {
		for n, found := range j.surveyed(ctx, page) {
			if found.err == nil && found.quiet(page[n], now) {
				s.quiet(page[n])
			}
			if err := each(page[n], found); err != nil {
				return err
			}
		}
	}
	return nil
}

// surveyed looks at campaigns in one round trip.
func (j *Journal) surveyed(ctx context.Context, page []gate.Revision) []survey {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	b := j.conn.client.B()
	commands := make(rueidis.Commands, 0, 2*len(page))
	for _, r := range page {
		k := j.conn.keysIn(r)
		commands = append(commands, b.Xlen().Key(k.journal).Build(),
			b.Hmget().Key(k.campaign).Field(surveyFields[:]...).Build())
	}
	answers := j.conn.client.DoMulti(ctx, commands...)
	found := make([]survey, len(page))
	for n := range found {
		s := &found[n]
		if s.entries, s.err = answers[2*n].AsInt64(); s.err == nil {
			s.fields, s.err = answers[2*n+1].AsStrSlice()
		}
		s.err = classify(s.err)
	}
	return found
}

// idle tells whether the journal is empty and all that was issued is drained.
func (s *survey) idle() bool { return s.entries == 0 && s.fields[0] == s.fields[1] }

// absent tells whether Redis does not have the campaign.
func (s *survey) absent() bool { return s.fields[2] == "" }

// quiet tells whether a campaign is idle and closed at an instant of the gate's, in the revision that
// the ledger has of it. Entries that a recorder has are in the journal; if somebody deleted them, all was recorded since.
func (s *survey) quiet(r gate.Revision, now time.Time) bool {
	if !s.idle() || s.fields[2] != strconv.FormatInt(r.Version, 10) || s.fields[3] != strconv.FormatInt(r.Epoch, 10) {
		return false
	}
	closesAt, err := strconv.ParseInt(s.fields[5], 10, 64)
	return s.fields[4] == "1" || err == nil && now.UnixMicro() >= closesAt
}
