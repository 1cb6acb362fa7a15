package redis

import (
	"context"
	"fmt"
	"strconv"

	"github.com/firstcome/firstcome/internal/flow"
	"github.com/firstcome/firstcome/internal/gate"
)

// Behind returns those of the active campaigns that are not drained through their last number here, or of which the ledger says another
// number than the gate. A quiet campaign is looked at slowly. One that Redis does not have, or that cannot be read, is passed over.
func (g *Gate) Behind(ctx context.Context, active []gate.Revision) (all []flow.Undrained, err error) {
	err = g.survey(ctx, &g.behind, active, func(r gate.Revision, s survey) error {
		if s.err != nil && !ofOne(s.err) {
			return fmt.Errorf("look at the journal of %s: %w", r.Campaign, s.err)
		}
		if s.err != nil || s.absent() {
			return nil
		}
		u := flow.Undrained{Campaign: r.Campaign, Entries: s.entries}
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
