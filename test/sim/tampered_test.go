//go:build !check

package sim

import (
	"context"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/gate"
)

// tampered is the model gate with a bug that acts after each call of Claim, or instead of each call of Apply.
type tampered struct {
	gated
	gate   *Gate
	claims func(c *course, users []firstcome.UserID, decisions []firstcome.Decision)
	apply  func(c *course, change firstcome.Change, apply gate.Applier) (bool, error)
}

// Claim implements gate.Decider.
func (t tampered) Claim(ctx context.Context, id firstcome.CampaignID, users []firstcome.UserID) ([]firstcome.Decision, error) {
	decisions, err := t.gated.Claim(ctx, id, users)
	if c := t.gate.campaigns[id]; t.claims != nil && err == nil && c != nil {
		t.claims(t.gate.campaigns[id], users, decisions)
	}
	return decisions, err
}

// Apply implements gate.Applier.
func (t tampered) Apply(ctx context.Context, change firstcome.Change) (bool, error) {
	if c := t.gate.campaigns[change.Campaign]; t.apply != nil && c != nil && c.Version > 0 {
		return t.apply(t.gate.campaigns[change.Campaign], change, t.gated)
	}
	return t.gated.Apply(ctx, change)
}

// claims has a bug change what the gate does behind a claim.
func claims(change func(*course, []firstcome.UserID, []firstcome.Decision)) func(*town) {
	return func(t *town) { t.front = tampered{gated: t.front, gate: t.gate, claims: change} }
}
