package redis

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/redis/rueidis"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/gate"
)

const (
	// scanPage is how many holders or tickets one command returns, about: some 100 µs of Redis's time.
	scanPage = 1000
	// scanAttempts is how often the holders are read again because a change came in between.
	scanAttempts = 3
)

// errMoving says that the holders could not be read at one version.
var errMoving = errors.New("the campaign changes while its holders are read")

// Holders reads who holds a coupon in force: see gate.Decider. It reads page by page, so
// that Redis does not stop meanwhile, and takes what it read as of one instant
// because the version was the same before and after: a campaign that refuses
// everybody has the same holders until its version changes. Of a campaign that still
// issues, those who were issued a coupon meanwhile may be missing.
func (g *Gate) Holders(ctx context.Context, id firstcome.CampaignID, each func(firstcome.UserID)) (version int64, err error) {
	users, version, err := g.scan(ctx, id)
	for n := 1; n < scanAttempts && errors.Is(err, errMoving); n++ {
		users, version, err = g.scan(ctx, id)
	}
	if err != nil {
		return 0, fmt.Errorf("read the holders of %s: %w", id, err)
	}
	for user := range users {
		each(user)
	}
	return version, nil
}

// scan reads the holders once. A page may name a user again while the hash grows.
func (g *Gate) scan(ctx context.Context, id firstcome.CampaignID) (users map[firstcome.UserID]struct{}, version int64, err error) {
	k, err := g.keysOf(ctx, id)
	if err != nil {
		return nil, 0, err
	}
	before, err := g.fields(ctx, k, "version")
	if err != nil {
		return nil, 0, err
	}
	users = map[firstcome.UserID]struct{}{}
	err = g.eachField(ctx, k.holders, func(user, _ string) error {
		users[firstcome.UserID(user)] = struct{}{}
		return nil
	})
	if err != nil {
		return nil, 0, err
	}
	after, err := g.fields(ctx, k, "version")
	if err == nil && before[0] != after[0] {
		err = errMoving
	}
	return users, before[0], err
}

func (g *Gate) page(ctx context.Context, key string, cursor uint64) (rueidis.ScanEntry, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	page, err := g.client.Do(ctx, g.client.B().Hscan().Key(key).Cursor(cursor).Count(scanPage).Build()).AsScanEntry()
	return page, classify(err)
}

// fields returns numbers of the campaign's hash.
func (g *Gate) fields(ctx context.Context, k *keys, names ...string) ([]int64, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	values, err := g.client.Do(ctx, g.client.B().Hmget().Key(k.campaign).Field(names...).Field("layout").Build()).ToArray()
	if err != nil {
		return nil, classify(err)
	}
	if of, _ := values[len(names)].ToString(); !knows(of) {
		return nil, newer(of)
	}
	if slices.ContainsFunc(values[:len(names)], func(m rueidis.RedisMessage) bool { return m.IsNil() }) {
		return nil, g.missing(ctx, k)
	}
	numbers := make([]int64, len(names))
	for n := range numbers {
		if numbers[n], err = whole(values[n]); err != nil {
			return nil, fmt.Errorf("%w: %s of %s is not a number: %w", errHolder, names[n], k.id, err)
		}
	}
	return numbers, nil
}

// whole returns the number that a message is the text of, and 0 for no text.
func whole(m rueidis.RedisMessage) (int64, error) {
	text, err := m.ToString()
	if err != nil || text == "" {
		return 0, err
	}
	return strconv.ParseInt(text, 10, 64)
}

// CouponOf returns the coupon in force that a user holds: see gate.Coupons.
func (g *Gate) CouponOf(ctx context.Context, id firstcome.CampaignID, user firstcome.UserID) (firstcome.Coupon, error) {
	c, err := g.couponOf(ctx, id, user)
	return c, wrap(err, "look for the coupon of %s", id)
}

func (g *Gate) couponOf(ctx context.Context, id firstcome.CampaignID, user firstcome.UserID) (c firstcome.Coupon, err error) {
	k, err := g.keysOf(ctx, id)
	if err != nil {
		return c, err
	}
	entry, err := g.client.Do(ctx, g.client.B().Hget().Key(k.holders).Field(string(user)).Build()).ToString()
	if rueidis.IsRedisNil(err) {
		return c, g.noCoupon(ctx, k)
	}
	if err != nil {
		return c, classify(err)
	}
	return g.held(ctx, id, user, entry)
}

// held returns the coupon of a holder's entry.
func (g *Gate) held(ctx context.Context, id firstcome.CampaignID, user firstcome.UserID, entry string) (firstcome.Coupon, error) {
	c, err := readEntry(id, user, entry)
	if err != nil {
		return c, err
	}
	c.Code = g.options.Secret.Code(id, c.Number)
	has, err := g.Has(ctx, id, []firstcome.Coupon{c})
	c.Recorded = err == nil && has[0]
	return c, err
}

// noCoupon is the error for a user who is not among the holders. If Redis has lost some holders, their absence
// proves nothing.
func (g *Gate) noCoupon(ctx context.Context, k *keys) error {
	n, err := g.fields(ctx, k, "version", "in_force", "last_number", "drained_through")
	if err != nil {
		return err
	}
	gone, err := g.partGone(ctx, k, parts{version: n[0], inForce: n[1], lastNumber: n[2], drained: n[3]})
	switch {
	case err != nil:
		return err
	case gone:
		return errPart
	}
	if err := g.stands(ctx, k); err != nil {
		return err
	}
	return firstcome.ErrNoCoupon
}

// State returns the campaign's counters: see gate.Counters.
func (g *Gate) State(ctx context.Context, id firstcome.CampaignID) (gate.State, error) {
	s, err := g.state(ctx, id)
	return s, wrap(err, "read the state of %s", id)
}

func (g *Gate) state(ctx context.Context, id firstcome.CampaignID) (s gate.State, err error) {
	k, err := g.keysOf(ctx, id)
	if err != nil {
		return s, err
	}
	waiting, frozen, err := g.waiting(ctx, k) // first: an epoch that had ended before is not taken for one that the gate goes on in
	if err != nil {
		return s, err
	}
	n, err := g.fields(ctx, k, "version", "epoch", "in_force", "issued", "last_number", "drained_through", "decided_at", "opened_at", "sold_out_at", "closed_at")
	if err != nil {
		return s, err
	}
	now, err := g.now(ctx)
	if err != nil {
		return s, err
	}
	lost, err := g.partGone(ctx, k, parts{version: n[0], inForce: n[2], lastNumber: n[4], drained: n[5]})
	if err != nil {
		return s, err
	}
	unverified := false
	if g.standing != nil && !lost { // who inspects may not run it
		err := g.stands(ctx, k)
		if unverified = errors.Is(err, gate.ErrUnverified); err != nil && !unverified {
			return s, err
		}
	}
	if decidedAt := time.UnixMicro(n[6]).UTC(); now.Before(decidedAt) {
		now = decidedAt
	}
	return gate.State{
		Version: n[0], Epoch: n[1], InForce: n[2], Issued: n[3], LastNumber: n[4], DrainedThrough: n[5], Now: now, Lost: lost, Unverified: unverified, Frozen: frozen, Waiting: waiting,
		Instants: firstcome.Instants{OpenedAt: instant(n[7]), SoldOutAt: instant(n[8]), ClosedAt: instant(n[9])},
	}, nil
}

// waiting returns how many people are in line, and whether the campaign is frozen for a rebuild.
func (g *Gate) waiting(ctx context.Context, k *keys) (people int64, frozen bool, err error) {
	values, err := g.client.Do(ctx, g.client.B().Hmget().Key(k.campaign).Field("line", "frozen").Build()).AsStrSlice()
	if err != nil {
		return 0, false, classify(err)
	}
	if frozen = values[1] != ""; values[0] == "" {
		return 0, frozen, nil
	}
	l, err := readLine(values[0])
	return l.Waiting, frozen, err
}

// parts are what the campaign's hash says that the other keys have to agree with.
type parts struct{ version, inForce, lastNumber, drained int64 }

// partGone tells whether a part of a campaign is gone, as the scripts see it. They do nothing then, so where nothing has
// been decided since the parts were read it is.
func (g *Gate) partGone(ctx context.Context, k *keys, was parts) (bool, error) {
	if was.lastNumber < was.drained {
		return true, nil
	}
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	holders, err := g.client.Do(ctx, g.client.B().Hlen().Key(k.holders).Build()).AsInt64()
	if err = classify(err); Spoiled(err) {
		return true, nil
	}
	if err != nil || holders == was.inForce {
		return false, err
	}
	values, err := g.client.Do(ctx, g.client.B().Hmget().Key(k.campaign).Field("version", "last_number").Build()).ToArray()
	if err != nil {
		return false, classify(err)
	}
	version, err1 := whole(values[0])
	last, err2 := whole(values[1])
	still := err1 == nil && err2 == nil && version == was.version && last == was.lastNumber
	return still, nil
}

// now returns the server's time, or that of the tests' clock.
func (g *Gate) now(ctx context.Context) (time.Time, error) {
	if g.options.Clock != nil {
		return g.options.Clock().UTC().Truncate(time.Microsecond), nil
	}
	parts, err := g.client.Do(ctx, g.client.B().Time().Build()).AsStrSlice()
	if err != nil {
		return time.Time{}, classify(err)
	}
	if len(parts) != 2 {
		return time.Time{}, errors.New("the answer to TIME cannot be read")
	}
	seconds, err1 := strconv.ParseInt(parts[0], 10, 64)
	fraction, err2 := strconv.ParseInt(parts[1], 10, 64)
	return time.UnixMicro(seconds*1_000_000 + fraction).UTC(), errors.Join(err1, err2)
}
