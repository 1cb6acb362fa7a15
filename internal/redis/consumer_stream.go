package redis

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/gate"
	"github.com/firstcome/firstcome/internal/point"
	"github.com/firstcome/firstcome/internal/record"
	"github.com/firstcome/firstcome/internal/wait"
)

// A stream is the state of one campaign's journal in a Consumer. One worker at a time has it.
type stream struct {
	id       firstcome.CampaignID
	reader   reader
	keys     *keys
	compared time.Time // when the layout of its keys was last compared
	epoch    int64     // that the ledger had before the last entries were read
	glanced  time.Time // when the journal was last compared with the campaign's counters

	shares []share // that were read and are not acknowledged
	given  bool    // the first of them is with the recorder
	before bool    // whether other entries than theirs may be unfinished

	differs atomic.Bool // gate and ledger may disagree on how far the campaign is drained
}

// own returns the campaign's keys. It compares their layout once a sweep. In between, each entry has its own format, and the script that
// deletes entries compares the layout. If the gate has lost the campaign, or is still making it, there is no layout to compare.
func (c *Consumer) own(ctx context.Context, s *stream) (*keys, error) {
	k, err := c.journal.conn.keysOf(ctx, s.id)
	if err != nil || time.Since(s.compared) < c.options.Sweep {
		return k, err
	}
	_, err = c.journal.conn.fields(ctx, k, "version")
	if e := (*Error)(nil); errors.Is(err, firstcome.ErrGateMismatch) || errors.As(err, &e) {
		return nil, err
	}
	if err == nil {
		s.compared = time.Now()
	}
	return k, nil
}

// Next returns the next batch of a campaign: see record.Source. If the sweep saw that gate and ledger differ, the batch is empty.
func (c *Consumer) Next(ctx context.Context, id firstcome.CampaignID) (b record.Batch, receipt any, err error) {
	r, active := c.actives.revision(id)
	if !active {
		return b, nil, nil // no more
	}
	s := c.stream(id)
	if s.keys, err = c.own(ctx, s); err != nil {
		return b, nil, ofSource(err)
	}
	if s.differs.Swap(false) { // if that fails, the next sweep says so again
		b = record.Batch{Campaign: id, CampaignUID: s.keys.campaignUID}
		return b, &share{Batch: b, of: s}, nil
	}
	s.reader.journal, s.epoch = s.keys.journal, r.Epoch
	if err := c.read(ctx, s); err != nil || len(s.shares) == 0 {
		return b, nil, ofSource(err)
	}
	one := &s.shares[0]
	one.of, s.given = s, true
	go c.keep(ctx, s.keys.journal, s.entries())
	return one.Batch, one, nil
}

// entries returns the ids of the entries that were read and are not acknowledged.
func (s *stream) entries() (ids []string) {
	for _, one := range s.shares {
		ids = append(ids, one.entries...)
	}
	return ids
}

// read reads entries, unless some are left from the last read. Entries that were given and not acknowledged are read again: another recorder
// may have them.
func (c *Consumer) read(ctx context.Context, s *stream) error {
	if s.given {
		s.shares, s.given, s.reader.unfinished = nil, false, true
	}
	for len(s.shares) == 0 {
		items, err := s.reader.read(ctx)
		if err == nil && s.reader.gone != "" {
			err, s.reader.gone = s.reader.gone, ""
		}
		if err != nil {
			s.reader.unfinished = true // they are read again
			return err
		}
		known := s.reader.setAside(items)
		if len(known) < len(items) {
			c.alarms.Raise(s.id, errNewer)
		}
		if len(known) == 0 && s.reader.aside == "" {
			return c.lost(ctx, s)
		}
		s.before, s.reader.unfinished = s.reader.unfinished, s.reader.unfinished || len(known) > 0
		s.shares = shares(c.journal.conn.Name(), s.id, s.keys.campaignUID, c.journal.conn.options.Secret, known, c.options.Coupons)
	}
	return nil
}

// Ack removes the entries of a batch, and tells the gate what the ledger said of it: see record.Source. A relay has nothing to tell. A gate in
// another epoch than the ledger's answer takes only the removal. Entries that name another epoch than the gate's are removed, too: the ledger has
// them as lost numbers or as dead letters. But if they went with the journal of their epoch, its next journal may have other entries under their ids,
// and these stay. For entries that cannot be read, the epoch is the ledger's at the time of reading.
func (c *Consumer) Ack(ctx context.Context, receipt any, drained record.Result) (before int64, err error) {
	one := receipt.(*share)
	s, of := one.of, cmp.Or(one.Epoch, one.of.epoch)
	if c.options.Relay {
		point.Reach(point.Relayed)
		drained = record.Result{Grant: record.Grant{Epoch: of}}
	} else {
		point.Reach(point.Given)
	}
	if before, err = c.journal.settle(ctx, s.id, s.keys.campaignUID, drained, of, one.entries); err != nil {
		return 0, ofSource(err)
	}
	if len(one.entries) > 0 {
		s.reader.perEntry = max(1, len(one.Coupons)/len(one.entries))
		s.shares, s.given = s.shares[1:], false
		if len(s.shares) == 0 {
			s.reader.unfinished = s.before
		}
	}
	if c.options.Relay {
		before = 0
	}
	return before, nil
}

// keep claims entries repeatedly, until ctx ends. If it fails, another recorder takes them over.
func (c *Consumer) keep(ctx context.Context, journal string, entries []string) {
	tick := time.NewTicker(c.options.Idle / 3)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			_ = c.journal.conn.client.Do(ctx, c.journal.conn.client.B().Xclaim().Key(journal).Group(group).Consumer(c.consumer).
				MinIdleTime("0").Id(entries...).Justid().Build()).Error()
		}
	}
}

const (
	// errDeleted means that entries were deleted while a recorder had them.
	errDeleted = record.HoleError("entries of the journal were deleted before they were recorded")
	// errBehind means that a journal is empty and its campaign is not drained.
	errBehind = record.HoleError("the journal is empty, and not all that was issued is recorded")
)

// lost returns errBehind if the journal is empty and the gate issued coupons that are not recorded. If the gate's epoch has ended, those coupons
// are lost, and the ledger has noted that: this is no hole.
func (c *Consumer) lost(ctx context.Context, s *stream) error {
	if c.options.Relay || time.Since(s.glanced) < c.options.Sweep {
		return nil
	}
	s.glanced = time.Now()
	l, err := c.journal.state(ctx, s.keys)
	if err == nil && l.entries == 0 && l.last > l.drained && l.epoch >= s.epoch {
		err = errBehind
	}
	return err
}

// Actives are the active campaigns, as the ledger last listed them, and the streams of the drained campaigns. A message
// about an unknown campaign makes the sweep ask the ledger, at most once between two ticks: the campaign is new, or
// belongs to nodes with another secret.
type actives struct {
	unknown chan struct{} // has room for one: the ledger must be asked

	mu        sync.Mutex      // guards what follows
	revisions []gate.Revision // in the order of their ids
	streams   map[firstcome.CampaignID]*stream
	asked     bool // since the last tick
}

// set replaces the campaigns, and forgets the streams of all others.
func (a *actives) set(revisions []gate.Revision) {
	revisions = slices.SortedFunc(slices.Values(revisions), func(a, b gate.Revision) int { return cmp.Compare(a.Campaign, b.Campaign) })
	a.mu.Lock()
	defer a.mu.Unlock()
	streams := map[firstcome.CampaignID]*stream{}
	for _, r := range revisions {
		if s, ok := a.streams[r.Campaign]; ok {
			streams[r.Campaign] = s
		}
	}
	a.revisions, a.streams = revisions, streams
}

func (a *actives) list() []gate.Revision {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.revisions
}

// revision returns a campaign's, if it is active.
func (a *actives) revision(id firstcome.CampaignID) (r gate.Revision, is bool) {
	list := a.list()
	n, is := slices.BinarySearchFunc(list, id, byCampaign)
	if is {
		r = list[n]
	}
	return r, is
}

func byCampaign(r gate.Revision, id firstcome.CampaignID) int { return cmp.Compare(r.Campaign, id) }

// ask makes the sweep ask the ledger now, at most once between two ticks.
func (a *actives) ask() {
	a.mu.Lock()
	asked := a.asked
	a.asked = true
	a.mu.Unlock()
	if !asked {
		wait.Wake(a.unknown)
	}
}

// tick has the ledger asked again.
func (a *actives) tick() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.asked = false
}

// stream returns a campaign's, and a new one if it was not active before.
func (a *actives) stream(id firstcome.CampaignID, made func() *stream) *stream {
	a.mu.Lock()
	defer a.mu.Unlock()
	s, ok := a.streams[id]
	if !ok {
		s = made()
		a.streams[id] = s
	}
	return s
}
