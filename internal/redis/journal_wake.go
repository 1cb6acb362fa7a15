package redis

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/firstcome/firstcome"
)

// listen calls ready with campaigns as soon as something is issued, until ctx ends.
// Nobody has to hear it: the sweep finds the same, later.
func (j *Journal) listen(ctx context.Context, ready func(firstcome.CampaignID)) error {
	told := false
	for {
		err := j.gate.subscribe(ctx, j.gate.wakeChannel(), func() { told = false }, func(message string) {
			if id, err := firstcome.ParseCampaignID(message); err == nil {
				j.wake(id, ready)
			}
		})
		if e := (*Error)(nil); errors.As(err, &e) && e.Fatal() && !told {
			told = true
			j.alarms.Now("", fmt.Errorf("nothing wakes the journal, which looks by itself every %s: %w", j.options.Sweep, err))
		}
		pause := time.NewTimer(j.options.Sweep)
		select {
		case <-pause.C:
		case <-ctx.Done():
			pause.Stop()
			return ctx.Err()
		}
	}
}

// wake calls ready with a campaign, if it is active.
func (j *Journal) wake(id firstcome.CampaignID, ready func(firstcome.CampaignID)) {
	if _, active := j.actives.revision(id); !active {
		j.actives.ask()
		return
	}
	j.schedule.soon(id)
	ready(id)
}

// own returns the campaign's keys. Their layout is looked at once a sweep: in between each entry has its
// format, and the script that deletes entries compares. Of a campaign that the gate has lost, or that is being made, only the entries tell.
func (j *Journal) own(ctx context.Context, s *stream) (*keys, error) {
	k, err := j.gate.keysOf(ctx, s.id)
	if err != nil || time.Since(s.compared) < j.options.Sweep {
		return k, err
	}
	_, err = j.gate.fields(ctx, k, "version")
	if e := (*Error)(nil); errors.Is(err, firstcome.ErrGateMismatch) || errors.As(err, &e) {
		return nil, err
	}
	if err == nil {
		s.compared = time.Now()
	}
	return k, nil
}
