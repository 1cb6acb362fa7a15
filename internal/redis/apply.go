package redis

import (
	"context"
	"fmt"
	"strconv"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/flow"
)

// Apply applies a change: see flow.RemoteGate. It may be repeated.
func (g *Gate) Apply(ctx context.Context, change firstcome.Change) (refused bool, err error) {
	args := append([]string{
		g.instance, g.options.Secret.Fingerprint(), g.clock(), strconv.FormatInt(hold.Microseconds(), 10),
		strconv.FormatInt(change.Version, 10), string(change.Kind),
	}, detail(change)...)
	word, parts, err := g.run(ctx, g.apply, change.Campaign, args...)
	if err == nil {
		refused, err = word == "refused", meaning(word)
	}
	if word == "gap" && len(parts) == 1 {
		version, _ := parts[0].ToString()
		err = fmt.Errorf("%w: its last one is %s", err, version)
	}
	if err != nil {
		return false, fmt.Errorf("apply change %d of %s: %w", change.Version, change.Campaign, err)
	}
	return refused, nil
}

// detail returns what the script takes of a change's kind.
func detail(change firstcome.Change) []string {
	switch change.Kind {
	case firstcome.ChangeTerms:
		return []string{
			quantityArg(change.Terms.Quantity), micros(change.Terms.OpensAt), micros(change.Terms.ClosesAt),
			strconv.FormatInt(change.Epoch, 10), group,
		}
	case firstcome.ChangeVoid:
		return []string{strconv.FormatInt(change.Number, 10), string(change.User)}
	}
	return nil
}

// meaning returns the error that a word of the apply script stands for.
func meaning(word string) error {
	switch word {
	case "applied", "refused":
		return nil
	case "gap":
		return flow.ErrGap
	case "lost":
		return flow.ErrLost
	}
	return fmt.Errorf("the apply script answered %q", word)
}
