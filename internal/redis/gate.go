package redis

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/gate"
)

const (
	// defaultMaxLine is the ledger's default too.
	defaultMaxLine = 1_000_000

	// defaultBacklog is about a minute of issuing at the fastest: if the ledger is down longer,
	// an operator should learn it from 503s rather than from a Redis without memory.
	defaultBacklog = 1_000_000

	// callTimeout bounds the calls that have no deadline of their caller's.
	callTimeout = 5 * time.Second
)

// A Gate decides claims in Redis, and applies changes.
type Gate struct {
	conn    *conn
	journal *Journal
	claim   *script
}

var (
	_ gate.Decider  = (*Gate)(nil)
	_ gate.Coupons  = (*Gate)(nil)
	_ gate.Applier  = (*Gate)(nil)
	_ gate.Counters = (*Gate)(nil)
	_ gate.Epochs   = (*Gate)(nil)
)

// nothing is the backlog with which a script issues nothing, so that it needs no memory.
const nothing = "0"

// Claim decides claims in one script: see gate.Decider. The coupons issued are in
// the campaign's journal when it returns. A decision without an outcome says that
// the claim was not decided, because the journal or Redis is full.
func (g *Gate) Claim(ctx context.Context, id firstcome.CampaignID, users []firstcome.UserID) ([]firstcome.Decision, error) {
	return g.decide(ctx, id, g.claim, users)
}

// Issue decides claims past the line: see gate.Decider. The gate does not keep the order.
func (g *Gate) Issue(ctx context.Context, _ gate.Order, id firstcome.CampaignID, users []firstcome.UserID) ([]firstcome.Decision, error) {
	return g.decide(ctx, id, issueScript, users)
}

// decide runs the claim script, or the issue script. If Redis is full it runs again, and issues nothing and lets nobody join: users who hold a
// coupon or are refused still get their answer.
func (g *Gate) decide(ctx context.Context, id firstcome.CampaignID, s *script, users []firstcome.UserID) ([]firstcome.Decision, error) {
	k, err := g.conn.keysOf(ctx, id)
	if err != nil {
		return nil, err
	}
	a, c, err := g.conn.decide(ctx, s, k, backlogArg(g.conn.options.Backlog), cmp.Or(g.conn.options.MaxLine, defaultMaxLine), users)
	full := isFull(err)
	if full {
		a, c, err = g.conn.decide(ctx, s, k, nothing, 0, users)
	}
	var decisions []firstcome.Decision
	if err == nil {
		v := readVerdict(a, c, s == issueScript, full)
		if err = v.check(a, users); err == nil {
			decisions, err = v.decisions(g.conn.options.Secret, k, users)
		}
	}
	if err != nil {
		return nil, fmt.Errorf("decide %d claims of %s: %w", len(users), id, err)
	}
	return decisions, nil
}

// Decides returns nil if the gate decides claims of a campaign, in this very epoch: see gate.Epochs.
func (g *Gate) Decides(ctx context.Context, id firstcome.CampaignID, epoch int64) error {
	k, err := g.conn.keysOf(ctx, id)
	if err != nil {
		return err
	}
	return g.conn.inspect(ctx, gate.Revision{Campaign: id, CampaignUID: k.campaignUID, Epoch: epoch, Version: unlimited, Drained: unlimited})
}

// errMoving means that the holders could not be read at one version.
var errMoving = errors.New("the campaign changes while its holders are read")

// Holders reads who holds a coupon in force: see gate.Decider. It reads page by page, so that
// Redis answers others in between. The pages are a snapshot if the version is the same before and
// after: a campaign that refuses all claims has the same holders until its version changes. If the
// campaign still issues coupons, users who got one during the reading may be missing.
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
	k, err := g.conn.keysOf(ctx, id)
	if err != nil {
		return nil, 0, err
	}
	before, err := g.conn.fields(ctx, k, "version")
	if err != nil {
		return nil, 0, err
	}
	users = map[firstcome.UserID]struct{}{}
	err = g.conn.eachField(ctx, k.holders, func(user, _ string) error {
		users[firstcome.UserID(user)] = struct{}{}
		return nil
	})
	if err != nil {
		return nil, 0, err
	}
	after, err := g.conn.fields(ctx, k, "version")
	if err == nil && before[0] != after[0] {
		err = errMoving
	}
	return users, before[0], err
}

// CouponOf returns the coupon in force that a user holds: see gate.Coupons. Keys that may be older tell nothing: the coupon may have been voided
// since.
func (g *Gate) CouponOf(ctx context.Context, id firstcome.CampaignID, user firstcome.UserID) (c firstcome.Coupon, err error) {
	s, err := g.conn.lineSnapshot(ctx, id, user)
	if err == nil && s.holder == "" {
		err = firstcome.ErrNoCoupon
	}
	if err == nil {
		c, err = g.journal.held(ctx, id, user, s.holder)
	}
	return c, wrap(err, "look for the coupon of %s", id)
}

// State returns the campaign's counters: see gate.Counters.
func (g *Gate) State(ctx context.Context, id firstcome.CampaignID) (gate.State, error) {
	s, err := g.state(ctx, id)
	return s, wrap(err, "read the state of %s", id)
}

func (g *Gate) state(ctx context.Context, id firstcome.CampaignID) (gate.State, error) {
	s, k, err := g.conn.state(ctx, id)
	if err != nil || s.Gone {
		return s, err
	}
	err = g.conn.inspectKeys(ctx, k, nil)
	switch s.Unverified = errors.Is(err, gate.ErrUnverified); {
	case s.Unverified, errors.Is(err, gate.ErrStaleEpoch):
		return s, nil
	case err != nil:
		return gate.State{}, err
	}
	g.conn.remembers.add(k, gate.Witness{Epoch: s.Epoch, Version: s.Version, Number: s.LastNumber})
	return s, nil
}

// state returns the campaign's counters and its keys. It does not compare the server's run.
func (c *conn) state(ctx context.Context, id firstcome.CampaignID) (s gate.State, k *keys, err error) {
	k, err = c.keysOf(ctx, id)
	if err != nil {
		return s, nil, err
	}
	// First, so that an epoch that had ended before is not taken for one that the gate goes on in.
	values, err := c.client.Do(ctx, c.client.B().Hmget().Key(k.campaign).Field("line", "frozen").Build()).AsStrSlice()
	if err != nil {
		return s, nil, classify(err)
	}
	var l line
	if values[0] != "" {
		if l, err = readLine(values[0]); err != nil {
			return s, nil, err
		}
	}
	n, err := c.fields(ctx, k, "version", "epoch", "in_force", "issued", "last_number", "drained_through", "decided_at", "opened_at", "sold_out_at", "closed_at")
	if err != nil {
		return s, nil, err
	}
	now, err := c.now(ctx)
	if err != nil {
		return s, nil, err
	}
	gone, err := parts{version: n[0], inForce: n[2], lastNumber: n[4], drained: n[5]}.gone(ctx, c, k)
	if err != nil {
		return s, nil, err
	}
	if decidedAt := time.UnixMicro(n[6]).UTC(); now.Before(decidedAt) {
		now = decidedAt
	}
	return gate.State{
		Version: n[0], Epoch: n[1], InForce: n[2], Issued: n[3], LastNumber: n[4], DrainedThrough: n[5], Now: now, Gone: gone, Frozen: values[1] != "", Waiting: l.Waiting,
		Instants: firstcome.Instants{OpenedAt: instant(n[7]), SoldOutAt: instant(n[8]), ClosedAt: instant(n[9])},
	}, k, nil
}

// parts are the fields of the campaign's hash with which the other keys must agree.
type parts struct{ version, inForce, lastNumber, drained int64 }

// gone reports whether a part of a campaign is gone, as part_gone in lua/line.lua does. It reads in several steps, so decisions in between could
// make the parts disagree. But the scripts decide nothing while a part is gone. So a part is gone if the parts disagree and nothing was decided
// since they were read.
func (was parts) gone(ctx context.Context, c *conn, k *keys) (bool, error) {
	if was.lastNumber < was.drained {
		return true, nil
	}
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	holders, err := c.client.Do(ctx, c.client.B().Hlen().Key(k.holders).Build()).AsInt64()
	if err = classify(err); Spoiled(err) {
		return true, nil
	}
	if err != nil || holders == was.inForce {
		return false, err
	}
	values, err := c.client.Do(ctx, c.client.B().Hmget().Key(k.campaign).Field("version", "last_number").Build()).ToArray()
	if err != nil {
		return false, classify(err)
	}
	version, err1 := parseInt(values[0])
	last, err2 := parseInt(values[1])
	still := err1 == nil && err2 == nil && version == was.version && last == was.lastNumber
	return still, nil
}
