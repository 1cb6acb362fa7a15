package redis

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/gate"
)

// makeWithin is how long after the gate told its time a campaign may be made: in between
// the ledger says whether it may, which takes some milliseconds.
const makeWithin = time.Second

// Apply applies a change: see gate.Applier. It may be repeated. firstcome.ErrBusy means that it was not done, and may be soon.
func (g *Gate) Apply(ctx context.Context, change firstcome.Change) (refused bool, err error) {
	var k *keys
	var a *answer
	if change.CampaignUID != "" {
		k = g.conn.keyring.renew(change.Campaign, change.CampaignUID)
	} else {
		k, err = g.conn.keysOf(ctx, change.Campaign)
	}
	if err == nil {
		a, err = g.apply(ctx, k, change)
	}
	if err == nil && a.word == "new" {
		a, err = g.make(ctx, k, change)
	}
	if err == nil {
		err = meaning(a)
	}
	if err == nil {
		g.conn.remembers.add(k, gate.Witness{Epoch: a.integer("epoch"), Version: change.Version})
		refused, err = a.word == "refused", a.err
	}
	return refused, wrap(err, "apply change %d of %s", change.Version, change.Campaign)
}

// apply runs the apply script.
func (g *Gate) apply(ctx context.Context, k *keys, change firstcome.Change) (*answer, error) {
	return g.conn.run(ctx, applyScript, k, g.changeArgs(change, g.conn.remembers.witness(k))...)
}

// make applies the change that makes a campaign, if no gate ever had the campaign. It makes none if Redis was emptied or replaced since this gate
// was opened, or if the ledger made another campaign under the id and has forgotten it. It reads the gate's time first, so that a node that
// stalls in between comes too late.
func (g *Gate) make(ctx context.Context, k *keys, change firstcome.Change) (*answer, error) {
	now, err := g.conn.now(ctx)
	if err != nil {
		return nil, err
	}
	instance, err := g.conn.text(ctx, instanceKey)
	if err != nil {
		return nil, err
	}
	if instance == "" || instance != g.conn.instance {
		return nil, fmt.Errorf("%w: Redis was emptied, or is another one", gate.ErrGone)
	}
	if err := g.conn.checkLayout(ctx); err != nil {
		return nil, err
	}
	if g.conn.options.OnUnknown != nil {
		if missing := g.conn.options.OnUnknown(ctx, change.Campaign); missing != nil && !errors.Is(missing, firstcome.ErrBusy) {
			// Another node may have made the campaign in the meantime. If so, the script does not return new again.
			a, err := g.apply(ctx, k, change)
			if err == nil && a.word == "new" {
				err = missing
			}
			return a, err
		}
	}
	if err := g.conn.note(ctx, k); err != nil {
		return nil, err
	}
	args := append(g.changeArgs(change, gate.Witness{}), "epoch", formatInt(change.Epoch), "group", group, "until", micros(now.Add(makeWithin)))
	a, err := g.conn.run(ctx, createScript, k, args...)
	if err == nil && a.word == "there" {
		return g.apply(ctx, k, change)
	}
	return a, err
}

// changeArgs returns the arguments of the apply script.
func (g *Gate) changeArgs(change firstcome.Change, least gate.Witness) []string {
	args := []string{
		"clock", g.conn.clock(), "witness", witnessArg(least), "quarantine_for", quarantineArg, "version", formatInt(change.Version), "kind", string(change.Kind),
		"ceiling", ceilingArg(change.Ceiling),
	}
	switch change.Kind {
	case firstcome.ChangeTerms:
		t := change.Terms
		return append(args, "quantity", quantityArg(t.Quantity), "opens_at", micros(t.OpensAt), "closes_at", micros(t.ClosesAt),
			"pace", paceArg(t.Pace), "waitlist", flag(t.Waitlist), "log", logArg(t.Log), "terms", change.Payload, "paused", flag(change.Paused), "before", formatInt(change.Before))
	case firstcome.ChangeVoid:
		return append(args, "number", formatInt(change.Number), "user", string(change.User), "burns", flag(change.Burns))
	case firstcome.ChangeResume:
		return append(args, "codes", change.Payload)
	}
	return args
}

// paceArg returns a pace as the scripts take it: nothing for none.
func paceArg(p *firstcome.Pace) string {
	if p == nil {
		return ""
	}
	return strconv.FormatInt(p.PerSecond, 10)
}

func flag(on bool) string {
	if on {
		return "1"
	}
	return "0"
}

// meaning returns the error that an answer of the scripts apply and create stands for.
func meaning(a *answer) error {
	switch a.word {
	case "applied", "refused":
		return nil
	case "gap":
		return fmt.Errorf("%w: its last one is %s", gate.ErrGap, a.text("version"))
	case "part_gone":
		return errPart
	case "late":
		return fmt.Errorf("%w: the ledger's word that no gate had the campaign came too late", firstcome.ErrGateUnavailable)
	}
	return a.unexpected()
}

// ceilingArg returns a ceiling as the scripts take it.
func ceilingArg(ceiling int64) string {
	if ceiling == 0 {
		return ""
	}
	return formatInt(min(ceiling, unlimited))
}
