package redis

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/flow"
)

// A glance is a campaign's journal at one instant: see lua/look.lua.
type glance struct {
	last, drained, epoch int64
	entries              int64
	age                  time.Duration // of the oldest entry
}

func (g *Gate) glance(ctx context.Context, k *keys) (l glance, err error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	_, parts, err := g.run(ctx, g.look, k)
	if err != nil {
		return l, err
	}
	if len(parts) != 6 {
		return l, fmt.Errorf("the look script answered %d parts", len(parts)+1)
	}
	for n, into := range []*int64{&l.last, &l.drained, &l.epoch, &l.entries} {
		if *into, err = whole(parts[n]); err != nil {
			return l, err
		}
	}
	oldest, _ := parts[4].ToString()
	now, err := whole(parts[5])
	if made, _, ok := strings.Cut(oldest, "-"); ok && err == nil {
		var since int64
		if since, err = strconv.ParseInt(made, 10, 64); err == nil {
			l.age = time.Duration(max(0, min(now-since, math.MaxInt64/int64(time.Millisecond)))) * time.Millisecond
		}
	}
	return l, err
}

// refillEvery is how often a journal that stays behind is filled again from the holders.
const refillEvery = time.Minute

var (
	// errDeleted says that somebody deleted entries that a recorder had.
	errDeleted = errors.New("entries of the journal were deleted before they were recorded")
	// errGap says that numbers below recorded ones have been missing for long.
	errGap = errors.New("numbers between those that are recorded do not come")
	// errBehind says that a journal is empty and its campaign is not drained.
	errBehind = errors.New("the journal is empty, and not all that was issued is recorded")
)

// A hole is what is missing from one campaign's journal: its reader saw it, numbers do not come, or the journal is
// empty and not all that was issued is drained. It stays until it is filled from the gate's holders. The worker that
// has the campaign guards it.
type hole struct {
	cause    error     // nil: nothing is known to be gone
	told     bool      // that it is there
	behind   time.Time // since when what is recorded does not follow on what is drained; zero: it does
	glanced  time.Time // when the journal was last held against the campaign's counters
	refilled time.Time // when it was last filled
}

// follow notes that coupons from a first number on were recorded, and that all up to another are drained. Numbers in
// between are with another recorder. If they have not come after twice the time that it may be silent, they are
// gone. This finds a hole even in a journal that is never empty.
func (h *hole) follow(first, through int64, patience time.Duration) {
	switch {
	case through >= first-1:
		h.behind = time.Time{}
	case h.behind.IsZero():
		h.behind = time.Now()
	case time.Since(h.behind) > patience && time.Since(h.refilled) > refillEvery:
		h.cause = errGap
	}
}

// heal fills a hole that is known. If there are no entries to work on, it first looks whether there is one. A
// hole is an alarm. Nothing is recorded from the holders of a gate that is unverified. What an older gate gave is lost, and once its journal is
// empty the ledger has noted that: that is no hole.
func (j *Journal) heal(ctx context.Context, s *stream, to flow.Sink, some bool) error {
	h := &s.hole
	h.cause, s.reader.gone = cmp.Or(s.reader.gone, h.cause), nil
	if h.cause == nil && (some || j.options.Relay || time.Since(h.glanced) < j.options.Sweep) {
		return nil
	}
	h.glanced = time.Now()
	l, err := j.gate.glance(ctx, s.keys)
	if err != nil {
		return err
	}
	if h.cause == nil {
		if l.entries > 0 || l.last <= l.drained || l.epoch < s.epoch || time.Since(h.refilled) < refillEvery {
			return nil
		}
		h.cause = errBehind
	}
	if err := j.gate.stands(ctx, s.keys); errors.Is(err, flow.ErrUnverified) {
		return err // its holders may be those of an older state: a rebuild decides what is theirs
	}
	coupons, err := j.held(ctx, s.keys, l)
	if err != nil {
		return err
	}
	if !h.told {
		h.told = true
		j.alarms.Now(s.id, fmt.Errorf("%w; %d coupons from number %d on are recorded from the gate's holders", h.cause, len(coupons), l.drained+1))
	}
	for part := range slices.Chunk(coupons, j.options.Coupons) {
		if err := j.give(ctx, s, to, share{Batch: flow.Batch{Campaign: s.id, Epoch: l.epoch, Marker: s.keys.marker, Coupons: part}}); err != nil {
			return err
		}
	}
	*h = hole{behind: h.behind, glanced: h.glanced, refilled: time.Now()}
	return nil
}

// held returns the coupons in force that are not drained, in number order.
func (j *Journal) held(ctx context.Context, k *keys, l glance) ([]firstcome.Coupon, error) {
	found := map[int64]firstcome.Coupon{} // a page may name a holder again
	err := j.gate.eachHolder(ctx, k, func(c firstcome.Coupon) error {
		if c.Number > l.drained && c.Number <= l.last {
			c.Code = j.gate.options.Secret.Code(k.id, c.Number)
			found[c.Number] = c
		}
		return nil
	})
	return slices.SortedFunc(maps.Values(found), byNumber), err
}

// Lag returns the lag of each of these campaigns that has any. A campaign that the gate does not have, or
// has under keys of other types, is passed over, and a quiet one is looked at slowly. An error says that Redis
// does not answer, also where nothing is asked.
func (g *Gate) Lag(ctx context.Context, active []flow.Revision) (all []flow.Lag, err error) {
	err = g.survey(ctx, &g.lag, active, func(r flow.Revision, s survey) (err error) {
		switch {
		case s.err != nil && ofOne(s.err): // its recorders say so
		case s.err != nil:
			return fmt.Errorf("read the lag of %s: %w", r.Campaign, s.err)
		case !s.idle():
			all, err = g.appendLag(ctx, all, g.keysIn(r))
		}
		return err
	})
	if err == nil {
		err = g.Ping(ctx)
	}
	return all, err
}

// appendLag appends a campaign's lag, if it has any.
func (g *Gate) appendLag(ctx context.Context, all []flow.Lag, k *keys) ([]flow.Lag, error) {
	l, err := g.glance(ctx, k)
	var e *Error
	switch {
	case errors.As(err, &e) && !ofOne(err):
		return nil, fmt.Errorf("read the lag of %s: %w", k.id, err)
	case err == nil && (l.last > l.drained || l.entries > 0):
		all = append(all, flow.Lag{Campaign: k.id, Numbers: l.last - l.drained, Oldest: l.age})
	}
	return all, nil
}

// Retire deletes a campaign's keys. The ledger must have said first that it answers for the campaign from now on. Retire asks it
// again for the keys: if the ledger was replaced under this node, the remembered keys are those of a campaign for which it does not
// answer. It may be repeated.
func (g *Gate) Retire(ctx context.Context, id firstcome.CampaignID) error {
	g.keyring.Remove(id)
	k, err := g.keysOf(ctx, id)
	if err == nil {
		_, _, err = g.run(ctx, g.forget, k)
	}
	return wrap(err, "retire %s", id)
}
