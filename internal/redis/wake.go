package redis

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/flow"
)

// listen puts campaigns on the agenda as soon as something is issued, until ctx ends.
// Nobody has to hear it: the sweep finds the same, later.
func (j *Journal) listen(ctx context.Context) error {
	told := false
	for {
		err := j.gate.subscribe(ctx, j.gate.wakeChannel(), func() { told = false }, func(message string) {
			if id, err := firstcome.ParseCampaignID(message); err == nil {
				j.wake(id)
			}
		})
		if e := (*Error)(nil); errors.As(err, &e) && e.Fatal() && !told {
			told = true
			j.alarm("", fmt.Errorf("nothing wakes the journal, which looks by itself every %s: %w", j.options.Sweep, err))
		}
		j.gate.overs.clear() // what issued meanwhile woke nobody
		pause := time.NewTimer(j.options.Sweep)
		select {
		case <-pause.C:
		case <-ctx.Done():
			pause.Stop()
			return ctx.Err()
		}
	}
}

// wake puts a campaign on the agenda, if it is active. Of one that is not known the ledger is
// asked, once a sweep: what it does not have is another ledger's, and no business of this journal.
func (j *Journal) wake(id firstcome.CampaignID) {
	j.mu.Lock()
	_, active := slices.BinarySearchFunc(j.active, id, func(r flow.Revision, id firstcome.CampaignID) int { return cmp.Compare(r.Campaign, id) })
	met := j.strangers[id]
	if !active {
		j.strangers[id] = true
	}
	j.mu.Unlock()
	switch {
	case active:
		j.gate.overs.forget(id)
		j.agenda.add(id)
	case !met:
		select {
		case j.unknown <- struct{}{}:
		default:
		}
	}
}

// meet forgets who was met.
func (j *Journal) meet() {
	j.mu.Lock()
	clear(j.strangers)
	j.mu.Unlock()
}
