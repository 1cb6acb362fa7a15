//go:build soak

package sim

import (
	"context"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/gate"
	"github.com/firstcome/firstcome/internal/recovery"
)

// A modest gate is a gate with a bug that hides data from a recovery.
type modest struct {
	*Gate
	hides, holds bool // that it is ahead; its holders
}

// Inspect implements recovery.Gate.
func (m modest) Inspect(ctx context.Context, r gate.Revision) error {
	if m.hides && m.ahead(r) != nil {
		return m.inspect(r.Campaign)
	}
	return m.Gate.Inspect(ctx, r)
}

// GateState implements recovery.Gate.
func (m modest) GateState(ctx context.Context, r gate.Revision) (recovery.GateState, error) {
	s, err := m.Gate.GateState(ctx, r)
	if m.hides && m.ahead(r) != nil {
		s.Version, s.Epoch, s.DrainedThrough = r.Version, r.Epoch, r.Drained
	}
	return s, err
}

// Freeze implements recovery.Gate.
func (m modest) Freeze(ctx context.Context, r recovery.Rebuild) (recovery.Frozen, error) {
	f, err := m.Gate.Freeze(ctx, r)
	if m.hides {
		f.Version, f.Epoch, f.Drained = r.Version, r.Epoch, r.Drained
	}
	return f, err
}

// Held implements recovery.Gate.
func (m modest) Held(ctx context.Context, r recovery.Rebuild, each func(firstcome.Coupon) error) error {
	if m.holds {
		return nil
	}
	return m.Gate.Held(ctx, r, each)
}

// A careless ledger is a ledger with a bug in adopting a gate's state.
type careless struct {
	*Ledger
	adopt func(a *account, gate *recovery.GateState, absent *[]firstcome.Coupon)
}

// Adopt implements recovery.Ledger.
func (c careless) Adopt(ctx context.Context, r recovery.Rebuild, gate recovery.GateState, absent []firstcome.Coupon, complete bool) (recovery.Adopted, error) {
	c.adopt(c.campaigns[r.Campaign], &gate, &absent)
	return c.Ledger.Adopt(ctx, r, gate, absent, complete)
}

func adopts(change func(a *account, gate *recovery.GateState, absent *[]firstcome.Coupon)) func(*Ledger) rebuilds {
	return func(l *Ledger) rebuilds { return careless{l, change} }
}

// putBackBugs are mistakes of what becomes of a ledger that was put back.
var putBackBugs = []bug{
	{name: "nobody sees that a gate is ahead", remade: func(g *Gate) recovery.Gate { return modest{Gate: g, hides: true} }},
	{name: "a reconcile brings nothing back", remade: func(g *Gate) recovery.Gate { return modest{Gate: g, holds: true} }},
	{name: "a reconcile keeps the ledger's terms", seed: 4864, refills: adopts(func(a *account, gate *recovery.GateState, _ *[]firstcome.Coupon) {
		gate.Payload, gate.Paused, gate.Closed = payloadOf(a.Terms), a.Paused, a.Closed
	})},
	{name: "a reconcile forgets which numbers are skipped", seed: 801, refills: adopts(func(_ *account, gate *recovery.GateState, _ *[]firstcome.Coupon) {
		terms := termsIn(gate.Payload)
		terms.Skips = nil
		gate.Payload = payloadOf(terms)
	})},
	{name: "a reconcile voids nothing", seed: 2196, refills: adopts(func(_ *account, _ *recovery.GateState, absent *[]firstcome.Coupon) { *absent = nil })},
}
