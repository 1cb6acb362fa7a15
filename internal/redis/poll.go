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

// A schedule has the time at which each active campaign is polled next: at every look, but a quiet campaign
// only when its slow look is due. A new revision from the ledger, or a message, ends the waiting at once. If the
// message is lost, the campaign only waits longer.
type schedule struct {
	slow time.Duration // between two looks at a quiet campaign

	mu   sync.Mutex // guards what follows
	next map[firstcome.CampaignID]appointment
}

// An appointment is the next look at a campaign while it has this revision. At the zero time it is due.
type appointment struct {
	revision gate.Revision
	at       time.Time
}

// due returns the active campaigns that must be polled now. It forgets campaigns that are not active.
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

// A polled is the result of a look at a campaign.
type polled struct {
	entries int64 // of its journal
	// fields are polledFields, as text; one that is not there is empty.
	fields []string
	err    error
}

// polledFields are what a poll reads of a campaign's hash.
var polledFields = [...]string{"last_number", "drained_through", "version", "epoch", "closed", "closes_at"}

// pollPage bounds the campaigns that a poll reads in one round trip.
const pollPage = 500

// pollAll polls the active campaigns that are due, and calls each with a campaign and its polled fields.
func (j *Journal) pollAll(ctx context.Context, s *schedule, active []gate.Revision, each func(gate.Revision, polled) error) error {
	due := s.due(active)
	if len(due) == 0 {
		return nil
	}
	now, err := j.conn.now(ctx)
	if err != nil {
		return err
	}
	for page := range slices.Chunk(due, pollPage) {
		for n, found := range j.poll(ctx, page) {
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

// poll reads campaigns in one round trip.
func (j *Journal) poll(ctx context.Context, page []gate.Revision) []polled {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	b := j.conn.client.B()
	commands := make(rueidis.Commands, 0, 2*len(page))
	for _, r := range page {
		k := j.conn.keysIn(r)
		commands = append(commands, b.Xlen().Key(k.journal).Build(),
			b.Hmget().Key(k.campaign).Field(polledFields[:]...).Build())
	}
	answers := j.conn.client.DoMulti(ctx, commands...)
	found := make([]polled, len(page))
	for n := range found {
		s := &found[n]
		if s.entries, s.err = answers[2*n].AsInt64(); s.err == nil {
			s.fields, s.err = answers[2*n+1].AsStrSlice()
		}
		s.err = classify(s.err)
	}
	return found
}

// idle reports whether the journal is empty and all that was issued is drained.
func (s *polled) idle() bool { return s.entries == 0 && s.fields[0] == s.fields[1] }

// absent reports whether Redis does not have the campaign.
func (s *polled) absent() bool { return s.fields[2] == "" }

// quiet reports whether a campaign is idle and closed at a time of the gate's, in the revision that the ledger has.
// Entries that a recorder works on are in the journal too, so an idle campaign has none.
func (s *polled) quiet(r gate.Revision, now time.Time) bool {
	if !s.idle() || s.fields[2] != strconv.FormatInt(r.Version, 10) || s.fields[3] != strconv.FormatInt(r.Epoch, 10) {
		return false
	}
	closesAt, err := strconv.ParseInt(s.fields[5], 10, 64)
	return s.fields[4] == "1" || err == nil && now.UnixMicro() >= closesAt
}
