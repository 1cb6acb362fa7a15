package gate

import (
	"context"
	"errors"
	"sync"

	"golang.org/x/sync/errgroup"

	"github.com/firstcome/firstcome"
)

// A StateOf is a gate's answer about one campaign.
type StateOf struct {
	State
	Err error
}

// statesAtOnce is how many campaigns States asks about at once.
const statesAtOnce = 64

// States asks a gate for the counters of many campaigns: first for one, and then for all others at once, which Redis's client sends in one pipeline.
// If the gate does not answer the first call, States does not ask about the others, and returns the first error for each.
func States(ctx context.Context, gate Counters, ids []firstcome.CampaignID) map[firstcome.CampaignID]StateOf {
	all := make(map[firstcome.CampaignID]StateOf, len(ids))
	if len(ids) == 0 {
		return all
	}
	first, err := gate.State(ctx, ids[0])
	all[ids[0]] = StateOf{first, err}
	away := err != nil && !errors.Is(err, ErrGone) && !errors.Is(err, firstcome.ErrGateMismatch) && !errors.Is(err, firstcome.ErrNoCampaign) && !IsFatal(err)
	var mu sync.Mutex // guards all
	var asking errgroup.Group
	asking.SetLimit(statesAtOnce)
	for _, id := range ids[1:] {
		if away {
			all[id] = StateOf{Err: err}
			continue
		}
		asking.Go(func() error {
			state, err := gate.State(ctx, id)
			mu.Lock()
			defer mu.Unlock()
			all[id] = StateOf{state, err}
			return nil
		})
	}
	_ = asking.Wait() // no goroutine has an error of its own
	return all
}
