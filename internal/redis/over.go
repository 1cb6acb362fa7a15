package redis

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"time"

	"github.com/redis/rueidis"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/flow"
)

// An overs is which campaigns were found to be over, and in which revision. Nothing of
// such a campaign comes before the ledger has another revision of it, so the gate is not
// asked until then. It is a memory only: what it forgets is found again. The zero value is empty.
type overs struct {
	mu    sync.Mutex // guards what follows
	known map[firstcome.CampaignID]flow.Revision
	turn  int // of what is forgotten: what was seen in an earlier one is not remembered
}

// others returns those of campaigns that are not known to be over, and the turn for add.
func (o *overs) others(active []flow.Revision) (rest []flow.Revision, turn int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, r := range active {
		if o.known[r.Campaign] != r {
			rest = append(rest, r)
		}
	}
	return rest, o.turn
}

// keep forgets all but the active campaigns, and so bounds what is remembered by them.
func (o *overs) keep(active []flow.Revision) {
	o.mu.Lock()
	defer o.mu.Unlock()
	kept := map[firstcome.CampaignID]flow.Revision{}
	for _, r := range active {
		if o.known[r.Campaign] == r {
			kept[r.Campaign] = r
		}
	}
	o.known = kept
}

// add remembers a campaign that was found over since a turn.
func (o *overs) add(r flow.Revision, turn int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if turn != o.turn {
		return
	}
	if o.known == nil {
		o.known = map[firstcome.CampaignID]flow.Revision{}
	}
	o.known[r.Campaign] = r
}

// has tells whether a campaign is known to be over.
func (o *overs) has(id firstcome.CampaignID) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	_, over := o.known[id]
	return over
}

// forget forgets a campaign that shows signs of life.
func (o *overs) forget(id firstcome.CampaignID) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if _, over := o.known[id]; over {
		delete(o.known, id)
		o.turn++
	}
}

// clear forgets all: the gate may be another since.
func (o *overs) clear() {
	o.mu.Lock()
	defer o.mu.Unlock()
	clear(o.known)
	o.turn++
}

// A survey is what a look at a campaign without a script finds.
type survey struct {
	entries int64 // of its journal
	// counters are campaignFields, as text; one that is not there is empty.
	counters []string
	err      error
}

// campaignFields are what a survey reads of a campaign's hash.
var campaignFields = [...]string{"last_number", "settled", "version", "epoch", "closed", "closes_at", "marker", "letters_order"}

// surveyed looks at campaigns in one round trip.
func (g *Gate) surveyed(ctx context.Context, page []flow.Revision) []survey {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	b := g.client.B()
	commands := make(rueidis.Commands, 0, 2*len(page))
	for _, r := range page {
		commands = append(commands, b.Xlen().Key(journalKey(r.Campaign)).Build(),
			b.Hmget().Key(campaignKey(r.Campaign)).Field(campaignFields[:]...).Build())
	}
	answers := g.client.DoMulti(ctx, commands...)
	found := make([]survey, len(page))
	for n := range found {
		s := &found[n]
		if s.entries, s.err = answers[2*n].AsInt64(); s.err == nil {
			s.counters, s.err = answers[2*n+1].AsStrSlice()
		}
		s.err = classify(s.err)
	}
	return found
}

// idle tells whether the journal is empty and all that was issued is settled.
func (s *survey) idle() bool { return s.entries == 0 && s.counters[0] == s.counters[1] }

// mayBeOver tells whether it is worth while to ask whether an idle campaign is over. The
// time is this machine's, and so a hint only. Another ledger's is never over here.
func (s *survey) mayBeOver(r flow.Revision, now time.Time) bool {
	if r.Marker != "" && s.counters[6] != r.Marker {
		return false
	}
	if s.counters[2] != strconv.FormatInt(r.Version, 10) || s.counters[3] != strconv.FormatInt(r.Epoch, 10) {
		return false
	}
	closesAt, err := strconv.ParseInt(s.counters[5], 10, 64)
	return s.counters[4] == "1" || err == nil && now.UnixMicro() >= closesAt
}

// guess returns about the gate's time.
func (g *Gate) guess() time.Time {
	if g.options.Clock != nil {
		return g.options.Clock()
	}
	return time.Now()
}

// maxOver bounds how many campaigns of a page are asked whether they are over: some 20 ms.
// Those that are left are asked at the next look.
const maxOver = 100

// rest asks of campaigns whether they are over, and remembers those that are. busy are
// those of which a recorder has entries that are gone.
func (g *Gate) rest(ctx context.Context, candidates []flow.Revision, turn int) (busy []firstcome.CampaignID, err error) {
	for _, r := range candidates[:min(len(candidates), maxOver)] {
		word, err := g.isOver(ctx, r)
		var e *Error
		switch {
		case errors.As(err, &e) && e.Code != "":
			// It is not known to be over. What Redis minds, it says to who drains, too.
		case err != nil:
			return busy, fmt.Errorf("see whether %s is over: %w", r.Campaign, err)
		case word == "over":
			g.overs.add(r, turn)
		case word == "busy":
			busy = append(busy, r.Campaign)
		}
	}
	return busy, nil
}

func (g *Gate) isOver(ctx context.Context, r flow.Revision) (word string, err error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	word, _, err = g.run(ctx, g.over, r.Campaign, strconv.FormatInt(r.Version, 10), strconv.FormatInt(r.Epoch, 10), g.clock(), group, g.marked(r))
	return word, err
}
