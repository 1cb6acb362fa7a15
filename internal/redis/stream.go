package redis

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/redis/rueidis"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/flow"
)

// A stream is what a Journal knows of one campaign's. One worker at a time has it.
type stream struct {
	id         firstcome.CampaignID
	unfinished bool      // entries that were given to this consumer may be unfinished
	aside      string    // behind which of them they are read: see setAside; empty: from the first
	compared   time.Time // when whose the campaign in Redis is was last looked at
	looked     time.Time // when entries of other recorders were last looked for
	perEntry   int       // coupons of an entry, about
	holed      error     // something of the stream is gone
	holeTold   bool
	behind     time.Time // since when what is recorded does not follow on what is settled; zero: it does
	glanced    time.Time // when it was last held against the campaign's counters
	refilled   time.Time // when it was last made again from the holders

	differs bool // what the gate knows is settled may not be what the ledger says; guarded by the journal's mu
}

// drain gives one reading of a campaign's entries to the sink. more tells that there may be others.
func (j *Journal) drain(ctx context.Context, s *stream, to flow.Sink) (more bool, err error) {
	if j.troubles.rests(s.id) {
		return false, nil
	}
	marker, err := j.own(ctx, s)
	if err != nil {
		return false, err
	}
	if err := j.agree(ctx, s, marker, to); err != nil {
		return false, err
	}
	items, err := j.read(ctx, s)
	if err != nil {
		return false, err
	}
	if slices.ContainsFunc(items, func(e item) bool { return e.foreign(marker) }) {
		// Whose they are takes them over when they have not been asked for for long.
		s.unfinished, s.aside, s.compared = false, "", time.Time{}
		return false, errEntry
	}
	items = j.setAside(s, marker, items)
	if err := j.heal(ctx, s, to, len(items) > 0); err != nil {
		return false, err
	}
	coupons, before := 0, s.unfinished
	s.unfinished = before || len(items) > 0
	undone := idsOf(items)
	for _, part := range shares(j.gate.Name(), s.id, marker, j.gate.options.Secret, items, j.options.Coupons) {
		coupons += len(part.Coupons)
		if err := j.give(ctx, s, to, part, undone); err != nil {
			return false, err
		}
		undone = undone[len(part.entries):]
	}
	if len(items) > 0 {
		s.perEntry = max(1, coupons/len(items))
		s.unfinished = before
	}
	j.troubles.drained(s.id)
	return len(items) > 0 || s.aside != "", nil
}

// give gives a share to the sink, and is done with its entries when it has taken it.
// Meanwhile all that are undone of what was read are at work.
func (j *Journal) give(ctx context.Context, s *stream, to flow.Sink, part share, undone []string) error {
	settled, err := j.sink(ctx, s, to, part.Batch, undone)
	if err != nil {
		return fmt.Errorf("record %d coupons of %s: %w", len(part.Coupons), s.id, err)
	}
	j.follow(s, part.Coupons, settled)
	if len(settled.Twice) > 0 {
		j.troubles.tell(s.id, errTwice)
	}
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	if err := j.gate.settleEntries(ctx, s.id, part.marker, settled, part.entries); err != nil {
		return fmt.Errorf("settle %s through %d: %w", s.id, settled.Through, err)
	}
	return nil
}

// errGap says that there are numbers below which no recorder has brought for long.
var errGap = errors.New("numbers between those that are recorded do not come")

// follow notes whether what was recorded follows on what is settled. If numbers in between
// have not come for twice the time that another recorder may be silent with them, they
// are gone, also where the journal is never empty.
func (j *Journal) follow(s *stream, coupons []firstcome.Coupon, settled flow.Settled) {
	switch {
	case len(coupons) == 0:
	case settled.Through >= coupons[0].Number-1:
		s.behind = time.Time{}
	case s.behind.IsZero():
		s.behind = time.Now()
	case time.Since(s.behind) > 2*j.options.Idle && time.Since(s.refilled) > refillEvery:
		s.holed = errGap
	}
}

// sink calls the sink, and meanwhile says now and then that the entries are at work.
func (j *Journal) sink(ctx context.Context, s *stream, to flow.Sink, b flow.Batch, undone []string) (flow.Settled, error) {
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
				j.keep(ctx, s, undone)
			}
		}
	})
	settled, err := to(ctx, b)
	close(ended)
	sign.Wait()
	return settled, err
}

// keep resets the idle time of entries. If it fails another recorder takes them over.
func (j *Journal) keep(ctx context.Context, s *stream, entries []string) {
	if len(entries) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, j.options.Idle/3)
	defer cancel()
	_ = j.gate.client.Do(ctx, j.gate.client.B().Xclaim().Key(journalKey(s.id)).Group(group).Consumer(j.consumer).
		MinIdleTime("0").Id(entries...).Justid().Build()).Error()
}

// read returns entries to work on: what this consumer left unfinished, else what others
// did, else new ones. A group that is gone is made again from the beginning of the stream.
func (j *Journal) read(ctx context.Context, s *stream) ([]item, error) {
	items, err := j.readOnce(ctx, s)
	var e *Error
	if !errors.As(err, &e) || e.Code != codeNoGroup {
		return items, err
	}
	s.holed = errors.New("the recorders' group was gone: it is made again from the beginning of the journal")
	made := j.gate.client.Do(ctx, j.gate.client.B().XgroupCreate().Key(journalKey(s.id)).Group(group).Id("0").Mkstream().Build()).Error()
	if made != nil && !rueidis.IsRedisBusyGroup(made) {
		return nil, classify(made)
	}
	return j.readOnce(ctx, s)
}

func (j *Journal) readOnce(ctx context.Context, s *stream) ([]item, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	if s.unfinished {
		items, err := j.readGroup(ctx, s, cmp.Or(s.aside, "0"))
		if err != nil || len(items) > 0 {
			return items, err
		}
		s.unfinished, s.aside = false, ""
	}
	if time.Since(s.looked) > j.options.Idle/2 {
		items, err := j.takeOver(ctx, s)
		if err != nil || len(items) > 0 {
			return items, err
		}
		s.looked = time.Now()
	}
	return j.readNew(ctx, s)
}

// readNew reads new entries until they are about a batch. It reads some at a time, because it knows what they are
// only then: of single coupons two thousand are a batch, and of a crowd's they are a million.
func (j *Journal) readNew(ctx context.Context, s *stream) (items []item, err error) {
	coupons := 0
	for rest := j.count(s); rest > 0 && coupons < j.options.Coupons; rest -= pageEntries {
		page, err := j.readGroup(ctx, s, ">")
		if err != nil {
			return nil, err // what was read comes again with the next Drain
		}
		for _, e := range page {
			coupons += e.claims()
		}
		if items = append(items, page...); int64(len(page)) < min(rest, pageEntries) {
			break
		}
	}
	return items, nil
}

// count returns how many entries to read for about one batch.
func (j *Journal) count(s *stream) int64 {
	return int64(min(maxEntries, max(1, j.options.Coupons/s.perEntry)))
}

// readGroup reads some new entries (from >) or this consumer's unfinished ones (from 0).
func (j *Journal) readGroup(ctx context.Context, s *stream, from string) ([]item, error) {
	answer := j.gate.client.Do(ctx, j.gate.client.B().Xreadgroup().Group(group, j.consumer).Count(min(pageEntries, j.count(s))).
		Streams().Key(journalKey(s.id)).Id(from).Build())
	streams, err := answer.AsXRead()
	if rueidis.IsRedisNil(err) {
		return nil, nil
	}
	if err != nil {
		return nil, classify(err)
	}
	return j.present(ctx, s, streams[journalKey(s.id)])
}

// takeOver makes entries this consumer's that have been with another for too long, and
// returns what this consumer has then. It asks for their ids only: in the place of an entry that was
// deleted, Redis 6.2 would answer nothing, not even its id.
func (j *Journal) takeOver(ctx context.Context, s *stream) ([]item, error) {
	answer, err := j.gate.client.Do(ctx, j.gate.client.B().Xautoclaim().Key(journalKey(s.id)).Group(group).Consumer(j.consumer).
		MinIdleTime(strconv.FormatInt(j.options.Idle.Milliseconds(), 10)).Start("0-0").Count(j.count(s)).Justid().Build()).ToArray()
	if err != nil {
		return nil, classify(err)
	}
	if len(answer) < 2 {
		return nil, errors.New("the answer to XAUTOCLAIM cannot be read")
	}
	if len(answer) > 2 { // from Redis 7 on: what was deleted is nobody's any more
		if gone, err := answer[2].AsStrSlice(); err == nil && len(gone) > 0 {
			s.holed = errDeleted
		}
	}
	taken, err := answer[1].AsStrSlice()
	if err != nil || len(taken) == 0 {
		return nil, classify(err)
	}
	s.unfinished, s.aside = true, "" // until they are read
	return j.readGroup(ctx, s, "0")
}

// errDeleted says that somebody deleted entries that a recorder had.
var errDeleted = errors.New("entries of the journal were deleted before they were recorded")

// present returns the entries that are still there, and is done with those that are not.
func (j *Journal) present(ctx context.Context, s *stream, entries []rueidis.XRangeEntry) ([]item, error) {
	var items []item
	var gone []string
	for _, e := range entries {
		if e.FieldValues == nil {
			gone = append(gone, e.ID)
			continue
		}
		items = append(items, item{e.ID, e.FieldValues})
	}
	if len(gone) == 0 {
		return items, nil
	}
	s.holed = errDeleted
	err := j.gate.client.Do(ctx, j.gate.client.B().Xack().Key(journalKey(s.id)).Group(group).Id(gone...).Build()).Error()
	return items, classify(err)
}
