package redis

import (
	"cmp"
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/flow"
	"github.com/firstcome/firstcome/internal/point"
)

// A stream is what a Journal knows of one campaign's. One worker at a time has it.
type stream struct {
	id       firstcome.CampaignID
	reader   reader
	hole     hole
	keys     *keys
	compared time.Time // when the layout of its keys was last looked at
	epoch    int64     // as the ledger said when its entries were read last, or an earlier one
	told     int64     // the number up to which the gate knows of all dead letters, at least

	differs atomic.Bool // gate and ledger may not say the same of how far it is drained
}

// drain gives one reading of a campaign's entries to the sink. more tells that there may be others.
func (j *Journal) drain(ctx context.Context, s *stream, to flow.Sink) (more bool, err error) {
	if !j.actives.has(s.id) {
		return false, nil // no more
	}
	if s.keys, err = j.own(ctx, s); err != nil {
		return false, err
	}
	s.reader.journal, s.epoch = s.keys.journal, j.actives.epoch(s.id)
	if err := j.agree(ctx, s, to); err != nil {
		return false, err
	}
	items, err := s.reader.read(ctx)
	if err != nil {
		return false, err
	}
	known := s.reader.setAside(items)
	if len(known) < len(items) {
		j.alarms.Tell(s.id, errNewer)
	}
	coupons, finished, undone := 0, s.reader.begin(known), idsOf(known)
	if err := j.heal(ctx, s, to, len(known) > 0); err != nil {
		return false, err
	}
	for _, part := range shares(j.gate.Name(), s.id, s.keys.marker, j.gate.options.Secret, known, j.options.Coupons) {
		coupons += len(part.Coupons)
		if err := j.give(ctx, s, to, part, undone...); err != nil {
			return false, err
		}
		undone = undone[len(part.entries):]
	}
	finished(coupons)
	return len(known) > 0 || s.reader.aside != "", nil
}

// give gives a share to the sink, and then settles its entries. Meanwhile it keeps claiming all entries that
// were read and are not settled.
func (j *Journal) give(ctx context.Context, s *stream, to flow.Sink, part share, undone ...string) error {
	point.Reach(point.Taken)
	part.Told = s.told
	drained, err := j.sink(ctx, s, to, part.Batch, undone)
	if err != nil {
		return fmt.Errorf("record %d coupons of %s: %w", len(part.Coupons), s.id, err)
	}
	if j.options.Relay {
		point.Reach(point.Relayed)
		err = j.relayed(ctx, s, part)
	} else {
		err = j.recorded(ctx, s, to, part, drained)
	}
	if err == nil {
		point.Reach(point.Settled)
	}
	return err
}

// recorded tells the gate what the ledger said of a share, and removes its entries.
func (j *Journal) recorded(ctx context.Context, s *stream, to flow.Sink, part share, drained flow.Drained) error {
	if len(part.Coupons) > 0 {
		s.hole.follow(part.Coupons[0].Number, drained.Through, 2*j.options.Idle)
	}
	if drained.Twice {
		j.alarms.Tell(s.id, flow.ErrTwice)
	}
	if part.Epoch > 0 && part.Epoch < drained.Epoch { // what the ledger says is of another epoch than this gate's, which must not take it for its own
		return j.relayed(ctx, s, part)
	}
	point.Reach(point.Given)
	return j.settle(ctx, s, to, part.Batch, drained, part.entries)
}

// relayed removes entries from the journal that a topic has, or of which the ledger has noted that they are lost. Where the gate is in another
// epoch than theirs they went with it, and another journal may have others under their ids. What cannot be read does not say its epoch.
func (j *Journal) relayed(ctx context.Context, s *stream, part share) error {
	if len(part.entries) == 0 {
		return nil
	}
	_, err := j.gate.Settle(ctx, s.id, s.keys.marker, flow.Drained{Grant: flow.Grant{Epoch: cmp.Or(part.Epoch, s.epoch)}}, part.entries...)
	return err
}

// sink calls the sink, and meanwhile says now and then that the entries are at work.
func (j *Journal) sink(ctx context.Context, s *stream, to flow.Sink, b flow.Batch, undone []string) (flow.Drained, error) {
	ended := make(chan struct{})
	var sign sync.WaitGroup
	sign.Go(func() {
		tick := time.NewTicker(j.options.Idle / 3)
		defer tick.Stop()
		for {
			select {
			case <-ended:
				return
			case <-tick.C:
				s.reader.keep(ctx, undone)
			}
		}
	})
	drained, err := to(ctx, b)
	close(ended)
	sign.Wait()
	return drained, err
}
