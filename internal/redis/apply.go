package redis

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/redis/rueidis"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/gate"
)

// makeWithin is how long after the gate told its time a campaign may be made: in between
// the ledger says whether it may, which takes some milliseconds.
const makeWithin = time.Second

// Apply applies a change: see gate.Applier. It may be repeated. firstcome.ErrBusy says
// that it was not done, and may be soon.
func (g *Gate) Apply(ctx context.Context, change firstcome.Change) (refused bool, err error) {
	word, parts, err := g.applyUntil(ctx, change, time.Time{})
	if err == nil && word == "new" {
		word, parts, err = g.make(ctx, change)
	}
	if err == nil {
		refused, err = word == "refused", meaning(word)
	}
	if word == "gap" && len(parts) == 1 {
		version, _ := parts[0].ToString()
		err = fmt.Errorf("%w: its last one is %s", err, version)
	}
	return refused, wrap(err, "apply change %d of %s", change.Version, change.Campaign)
}

// applyUntil runs the script, which makes a missing campaign only until the given instant.
func (g *Gate) applyUntil(ctx context.Context, change firstcome.Change, until time.Time) (word string, parts []rueidis.RedisMessage, err error) {
	k, err := g.keysFor(ctx, change)
	if err != nil {
		return "", nil, err
	}
	args := append([]string{
		g.conn.clock(), strconv.FormatInt(quarantineFor.Microseconds(), 10), strconv.FormatInt(change.Version, 10), string(change.Kind),
	}, append(detail(change, until), ceilingArg(change.Ceiling))...)
	return g.conn.run(ctx, applyScript, k, args...)
}

// keysFor returns the keys of a change's campaign.
func (g *Gate) keysFor(ctx context.Context, change firstcome.Change) (*keys, error) {
	if change.Marker != "" {
		return g.conn.keyring.renew(change.Campaign, change.Marker), nil
	}
	return g.conn.keysOf(ctx, change.Campaign)
}

// make applies the change that makes a campaign, if no gate ever had it: not if Redis
// was emptied or replaced since, and not under an id of which the ledger has forgotten another one. It reads the gate's time first, so that a node that
// pauses in between comes too late.
func (g *Gate) make(ctx context.Context, change firstcome.Change) (word string, parts []rueidis.RedisMessage, err error) {
	now, err := g.conn.now(ctx)
	if err != nil {
		return "", nil, err
	}
	instance, err := g.conn.text(ctx, instanceKey)
	if err != nil {
		return "", nil, err
	}
	if instance == "" || instance != g.conn.instance {
		return "", nil, fmt.Errorf("%w: Redis was emptied, or is another one", gate.ErrLost)
	}
	if err := g.conn.checkLayout(ctx); err != nil {
		return "", nil, err
	}
	if g.conn.options.Missing != nil {
		if missing := g.conn.options.Missing(ctx, change.Campaign); missing != nil && !errors.Is(missing, firstcome.ErrBusy) {
			// Another node may have made it since the script said that it is new. Else the script says so again.
			if word, parts, err = g.applyUntil(ctx, change, time.Time{}); err == nil && word == "new" {
				err = missing
			}
			return word, parts, err
		}
	}
	k, err := g.keysFor(ctx, change)
	if err == nil {
		err = g.conn.note(ctx, k)
	}
	if err != nil {
		return "", nil, err
	}
	return g.applyUntil(ctx, change, now.Add(makeWithin))
}

// detail returns what the script takes of a change's kind.
func detail(change firstcome.Change, until time.Time) []string {
	switch change.Kind {
	case firstcome.ChangeTerms:
		return []string{
			quantityArg(change.Terms.Quantity), micros(change.Terms.OpensAt), micros(change.Terms.ClosesAt),
			strconv.FormatInt(change.Epoch, 10), group, micros(until), paceArg(change.Terms.Pace), flag(change.Terms.Waitlist),
			logArg(change.Terms.Log),
		}
	case firstcome.ChangeVoid:
		return []string{strconv.FormatInt(change.Number, 10), string(change.User)}
	}
	return nil
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

// meaning returns the error that a word of the apply script stands for.
func meaning(word string) error {
	switch word {
	case "applied", "refused":
		return nil
	case "gap":
		return gate.ErrGap
	case "lost":
		return errPart
	case "late":
		return fmt.Errorf("%w: the ledger's word that no gate had the campaign came too late", firstcome.ErrGateUnavailable)
	}
	return fmt.Errorf("the apply script answered %q", word)
}

// ceilingArg returns a ceiling as the scripts take it.
func ceilingArg(ceiling int64) string {
	if ceiling == 0 {
		return ""
	}
	return whole10(min(ceiling, unlimited))
}
