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
	"github.com/firstcome/firstcome/internal/gate"
	"github.com/firstcome/firstcome/internal/record"
)

// A Journal is all campaigns' journals: how far they are drained, and which coupons are recorded. Its Consumers drain them.
type Journal struct {
	conn   *conn
	lag    schedule // of Lag
	behind schedule // of Behind
}

var (
	_ gate.Progress = (*Journal)(nil)
	_ record.Holes  = (*Journal)(nil)
)

// Settle removes entries from a campaign's journal that went to the ledger, flags dead letters at
// their holders, and notes how far the campaign is drained. It returns how far the gate knew it to be drained before.
// It may be repeated. campaignUID is the campaign's (see firstcome.Change), or empty if it has none. A record.MissedLettersError means that nothing was done.
func (j *Journal) Settle(ctx context.Context, id firstcome.CampaignID, uid string, drained record.Result, entries ...string) (before int64, err error) {
	return j.settle(ctx, id, uid, drained, 0, entries)
}

// settle is Settle for entries that name an epoch. If of is 0, they are of the campaign's.
func (j *Journal) settle(ctx context.Context, id firstcome.CampaignID, uid string, drained record.Result, of int64, entries []string) (before int64, err error) {
	k := keysOf(id, cmp.Or(uid, withoutUID))
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	args := make([]string, 0, 19+2*len(drained.Letters)+len(entries))
	args = append(args, "group", group, "channel", j.conn.drainedChannel(), "tag", k.tag, "through", formatInt(drained.Through), "epoch", epochText(drained.Epoch), "of", epochText(of),
		"ceiling", formatInt(min(drained.Ceiling, unlimited)), "above", formatInt(drained.LettersKnownThrough), "letters", strconv.Itoa(len(drained.Letters)), "")
	for _, c := range drained.Letters {
		args = append(args, string(c.User), formatInt(c.Number))
	}
	a, err := j.conn.run(ctx, settleScript, k, append(args, entries...)...)
	if err == nil {
		switch a.word {
		case "other":
			return drained.Through, nil // the answer was about another epoch
		case "set":
			before, err = a.integer("through"), a.err
		case "unknown_letters":
			before, err = a.integer("through"), a.err
			if err == nil {
				err = &record.MissedLettersError{Through: before}
			}
		default:
			err = a.unexpected()
		}
	}
	return before, wrap(err, "note that %s is drained through %d", k.id, drained.Through)
}

// epochText returns an epoch as scripts take it: an empty text if it is unknown.
func epochText(epoch int64) string {
	if epoch == 0 {
		return ""
	}
	return formatInt(epoch)
}

// DrainedThrough returns how far a campaign is drained: see gate.Progress.
func (j *Journal) DrainedThrough(ctx context.Context, id firstcome.CampaignID) (int64, error) {
	k, err := j.conn.keysOf(ctx, id)
	if err != nil {
		return 0, err
	}
	drained, err := j.conn.fields(ctx, k, "drained_through")
	if err != nil {
		return 0, fmt.Errorf("read how far %s is drained: %w", id, err)
	}
	return drained[0], nil
}

// askChunk bounds the coupons that one script is asked about.
const askChunk = 1000

// Has reports whether each coupon is surely in the ledger under its number: see gate.Progress.
func (j *Journal) Has(ctx context.Context, id firstcome.CampaignID, coupons []firstcome.Coupon) (has []bool, err error) {
	k, err := j.conn.keysOf(ctx, id)
	for part := range slices.Chunk(coupons, askChunk) {
		if err == nil {
			has, err = j.hasSome(ctx, k, part, has)
		}
	}
	return has, wrap(err, "ask whose %d coupons of %s are", len(coupons), id)
}

// hasSome appends what the script says of some coupons.
func (j *Journal) hasSome(ctx context.Context, k *keys, coupons []firstcome.Coupon, has []bool) ([]bool, error) {
	args, entries := make([]string, 3, 3+len(coupons)), make([]byte, 0, entryBytes*len(coupons))
	for _, c := range coupons {
		args, entries = append(args, string(c.User)), appendEntry(entries, c)
	}
	args[0], args[1] = "entries", string(entries)
	a, err := j.conn.run(ctx, hasScript, k, args...)
	if err != nil {
		return nil, err
	}
	digits := a.text("digits")
	if a.err == nil && len(digits) != len(coupons) {
		return nil, fmt.Errorf("the has script answered %q about %d coupons", digits, len(coupons))
	}
	for _, digit := range digits {
		has = append(has, digit == '1')
	}
	return has, a.err
}

// WatchDrained calls each with how far campaigns are drained: see gate.Progress.
func (j *Journal) WatchDrained(ctx context.Context, ready func(), each func(id firstcome.CampaignID, through int64)) error {
	err := j.conn.subscribe(ctx, j.conn.drainedChannel(), ready, func(message string) {
		tag, number, _ := strings.Cut(message, " ")
		through, err := strconv.ParseInt(number, 10, 64)
		if k := j.conn.tagged(tag); err == nil && k != nil { // otherwise no caller of this node waits for it, or it belongs to a copy of this ledger
			each(k.id, through)
		}
	})
	if ctx.Err() != nil {
		return nil
	}
	return fmt.Errorf("watch what is drained: %w", err)
}

// Missing returns the coupons in force that are not drained: see record.Holes.
func (j *Journal) Missing(ctx context.Context, id firstcome.CampaignID) (b record.Batch, err error) {
	k, err := j.conn.keysOf(ctx, id)
	if err != nil {
		return b, err
	}
	l, err := j.state(ctx, k)
	if err != nil {
		return b, ofSource(err)
	}
	if err := j.conn.inspectKeys(ctx, k, nil); errors.Is(err, gate.ErrUnverified) {
		return b, err
	}
	found := map[int64]firstcome.Coupon{} // a page may name a holder again
	err = j.conn.eachHolder(ctx, k, func(c firstcome.Coupon) error {
		if c.Number > l.drained && c.Number <= l.last {
			c.Code = j.conn.options.Secret.Code(k.id, c.Number)
			found[c.Number] = c
		}
		return nil
	})
	return record.Batch{Campaign: id, Epoch: l.epoch, CampaignUID: k.campaignUID, Coupons: slices.SortedFunc(maps.Values(found), byNumber)}, ofSource(err)
}

// A journalState is a campaign's journal at one instant: see lua/journal_state.lua.
type journalState struct {
	last, drained, epoch int64
	entries              int64
	age                  time.Duration // of the oldest entry
}

func (j *Journal) state(ctx context.Context, k *keys) (l journalState, err error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	a, err := j.conn.run(ctx, journalStateScript, k)
	if err != nil {
		return l, err
	}
	l = journalState{last: a.integer("last_number"), drained: a.integer("drained_through"), epoch: a.integer("epoch"), entries: a.integer("entries")}
	oldest, now := a.text("oldest"), a.integer("now")
	if a.err != nil {
		return l, a.err
	}
	if made, _, ok := strings.Cut(oldest, "-"); ok {
		since, err := strconv.ParseInt(made, 10, 64)
		if err != nil {
			return l, err
		}
		l.age = time.Duration(max(0, min(now-since, math.MaxInt64/int64(time.Millisecond)))) * time.Millisecond
	}
	return l, nil
}

// Lag returns the lag of each of these campaigns that has any. A campaign that the gate does not have, or
// has under keys of other types, is passed over, and a quiet campaign is polled slowly. An error means that Redis
// does not answer, even if there was no campaign to ask about.
func (j *Journal) Lag(ctx context.Context, active []gate.Revision) (all []record.Lag, err error) {
	err = j.pollAll(ctx, &j.lag, active, func(r gate.Revision, s polled) (err error) {
		switch {
		case s.err != nil && ofOne(s.err): // its recorders say so
		case s.err != nil:
			return fmt.Errorf("read the lag of %s: %w", r.Campaign, s.err)
		case !s.idle():
			all, err = j.appendLag(ctx, all, j.conn.keysIn(r))
		}
		return err
	})
	if err == nil {
		err = j.conn.Ping(ctx)
	}
	return all, err
}

// appendLag appends a campaign's lag, if it has any.
func (j *Journal) appendLag(ctx context.Context, all []record.Lag, k *keys) ([]record.Lag, error) {
	l, err := j.state(ctx, k)
	var e *Error
	switch {
	case errors.As(err, &e) && !ofOne(err):
		return nil, fmt.Errorf("read the lag of %s: %w", k.id, err)
	case err == nil && (l.last > l.drained || l.entries > 0):
		all = append(all, record.Lag{Campaign: k.id, Numbers: l.last - l.drained, Oldest: l.age})
	}
	return all, nil
}

// Behind returns the active campaigns that are not drained through their last number here, or whose drained number differs from the ledger's. A
// quiet campaign is polled slowly. A campaign that Redis does not have, or that cannot be read, is passed over.
func (j *Journal) Behind(ctx context.Context, active []gate.Revision) (all []record.Undrained, err error) {
	err = j.pollAll(ctx, &j.behind, active, func(r gate.Revision, s polled) error {
		if s.err != nil && !ofOne(s.err) {
			return fmt.Errorf("look at the journal of %s: %w", r.Campaign, s.err)
		}
		if s.err != nil || s.absent() {
			return nil
		}
		u := record.Undrained{Campaign: r.Campaign, Entries: s.entries}
		for n, into := range []*int64{&u.Last, &u.Drained, nil, &u.Epoch} {
			if into != nil {
				if *into, err = strconv.ParseInt(s.fields[n], 10, 64); err != nil {
					return nil // its recorders say so
				}
			}
		}
		if u.Last > u.Drained || u.Drained != r.Drained {
			all = append(all, u)
		}
		return nil
	})
	return all, err
}
