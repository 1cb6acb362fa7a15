package redis

import (
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
	"github.com/firstcome/firstcome/internal/gate"
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

const (
	// errDeleted says that somebody deleted entries that a recorder had.
	errDeleted = flow.HoleError("entries of the journal were deleted before they were recorded")
	// errBehind says that a journal is empty and its campaign is not drained.
	errBehind = flow.HoleError("the journal is empty, and not all that was issued is recorded")
)

// lost looks whether not all that was issued is recorded though the journal is empty. What an older gate gave is lost, and once its journal is
// empty the ledger has noted that: that is no hole.
func (j *Journal) lost(ctx context.Context, s *stream) error {
	if j.options.Relay || time.Since(s.glanced) < j.options.Sweep {
		return nil
	}
	s.glanced = time.Now()
	l, err := j.gate.glance(ctx, s.keys)
	if err == nil && l.entries == 0 && l.last > l.drained && l.epoch >= s.epoch {
		err = errBehind
	}
	return err
}

// Missing returns the coupons in force that are not drained: see flow.Holes.
func (g *Gate) Missing(ctx context.Context, id firstcome.CampaignID) (b flow.Batch, err error) {
	k, err := g.keysOf(ctx, id)
	if err != nil {
		return b, err
	}
	l, err := g.glance(ctx, k)
	if err != nil {
		return b, ofSource(err)
	}
	if err := g.stands(ctx, k); errors.Is(err, gate.ErrUnverified) {
		return b, err
	}
	found := map[int64]firstcome.Coupon{} // a page may name a holder again
	err = g.eachHolder(ctx, k, func(c firstcome.Coupon) error {
		if c.Number > l.drained && c.Number <= l.last {
			c.Code = g.options.Secret.Code(k.id, c.Number)
			found[c.Number] = c
		}
		return nil
	})
	return flow.Batch{Campaign: id, Epoch: l.epoch, Marker: k.marker, Coupons: slices.SortedFunc(maps.Values(found), byNumber)}, ofSource(err)
}

// Lag returns the lag of each of these campaigns that has any. A campaign that the gate does not have, or
// has under keys of other types, is passed over, and a quiet one is looked at slowly. An error says that Redis
// does not answer, also where nothing is asked.
func (g *Gate) Lag(ctx context.Context, active []gate.Revision) (all []flow.Lag, err error) {
	err = g.survey(ctx, &g.lag, active, func(r gate.Revision, s survey) (err error) {
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
