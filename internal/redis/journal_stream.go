package redis

import (
	"cmp"
	"context"
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
	keys     *keys
	compared time.Time // when the layout of its keys was last looked at
	epoch    int64     // as the ledger said when its entries were read last, or an earlier one
	glanced  time.Time // when the journal was last held against the campaign's counters

	shares []share // that were read and are not acknowledged
	given  bool    // the first of them is with the recorder
	before bool    // whether other entries may be unfinished, besides theirs

	differs atomic.Bool // gate and ledger may not say the same of how far it is drained
}

// Next returns the next batch of a campaign: see flow.Source. If the sweep saw that gate and ledger differ, it is an empty one.
func (j *Journal) Next(ctx context.Context, id firstcome.CampaignID) (b flow.Batch, receipt any, err error) {
	r, active := j.actives.revision(id)
	if !active {
		return b, nil, nil // no more
	}
	s := j.stream(id)
	if s.keys, err = j.own(ctx, s); err != nil {
		return b, nil, ofSource(err)
	}
	if s.differs.Swap(false) { // if that fails, the next sweep says so again
		b = flow.Batch{Campaign: id, Marker: s.keys.marker}
		return b, &share{Batch: b, of: s}, nil
	}
	s.reader.journal, s.epoch = s.keys.journal, r.Epoch
	if err := j.read(ctx, s); err != nil || len(s.shares) == 0 {
		return b, nil, ofSource(err)
	}
	one := &s.shares[0]
	one.of, s.given = s, true
	go j.keep(ctx, s.keys.journal, s.entries())
	return one.Batch, one, nil
}

// entries returns the ids of the entries that were read and are not acknowledged.
func (s *stream) entries() (ids []string) {
	for _, one := range s.shares {
		ids = append(ids, one.entries...)
	}
	return ids
}

// read reads entries, unless some are at hand. What was given and is not acknowledged is read again: another recorder may have it.
func (j *Journal) read(ctx context.Context, s *stream) error {
	if s.given {
		s.shares, s.given, s.reader.unfinished = nil, false, true
	}
	for len(s.shares) == 0 {
		items, err := s.reader.read(ctx)
		if err == nil && s.reader.gone != "" {
			err, s.reader.gone = s.reader.gone, ""
		}
		if err != nil {
			s.reader.unfinished = true // what was read comes again
			return err
		}
		known := s.reader.setAside(items)
		if len(known) < len(items) {
			j.alarms.Tell(s.id, errNewer)
		}
		if len(known) == 0 && s.reader.aside == "" {
			return j.lost(ctx, s)
		}
		s.before, s.reader.unfinished = s.reader.unfinished, s.reader.unfinished || len(known) > 0
		s.shares = shares(j.gate.Name(), s.id, s.keys.marker, j.gate.options.Secret, known, j.options.Coupons)
	}
	return nil
}

// Ack removes the entries of a batch, and tells the gate what the ledger said of it: see flow.Source. What a topic has is only removed, and so is
// what the ledger has noted as lost. Where the gate is in another epoch than theirs they went with it, and another journal may have others under
// their ids. Entries that cannot be read do not say their epoch.
func (j *Journal) Ack(ctx context.Context, receipt any, drained flow.Drained) (before int64, err error) {
	one := receipt.(*share)
	s, told := one.of, false
	switch {
	case j.options.Relay:
		point.Reach(point.Relayed)
		drained = flow.Drained{Grant: flow.Grant{Epoch: cmp.Or(one.Epoch, s.epoch)}}
	case one.Epoch > 0 && one.Epoch < drained.Epoch: // what the ledger says is of another epoch than this gate's, which must not take it for its own
		drained = flow.Drained{Grant: flow.Grant{Epoch: one.Epoch}}
	default:
		point.Reach(point.Given)
		told = true
	}
	if before, err = j.gate.Settle(ctx, s.id, s.keys.marker, drained, one.entries...); err != nil {
		return 0, ofSource(err)
	}
	if len(one.entries) > 0 {
		s.reader.learn(one)
		s.shares, s.given = s.shares[1:], false
		if len(s.shares) == 0 {
			s.reader.unfinished = s.before
		}
	}
	if !told {
		before = 0
	}
	return before, nil
}

// keep says now and then that entries are at work, until ctx ends. If it fails another recorder takes them over.
func (j *Journal) keep(ctx context.Context, journal string, entries []string) {
	tick := time.NewTicker(j.options.Idle / 3)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			_ = j.gate.client.Do(ctx, j.gate.client.B().Xclaim().Key(journal).Group(group).Consumer(j.consumer).
				MinIdleTime("0").Id(entries...).Justid().Build()).Error()
		}
	}
}
