package redis

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/flow"
)

// A reach is how far a campaign is in the ledger: see flow.Settled.
type reach struct{ through, order int64 }

type reaches map[firstcome.CampaignID]reach

var (
	// errOlder says that the ledger is an older copy of what it was.
	errOlder = errors.New("the gate knows more as recorded than the ledger has, so the ledger is older than it was: see what operate.md says of an older backup")
	// errTwice says that the gate lost its latest decisions and went on.
	errTwice = errors.New("the gate gave numbers again that are other coupons in the ledger, so it has lost its latest decisions: its dead letters say which; close the campaign")
)

// differs notes that a campaign's gate and ledger are to be made agree: the gate lacks what changed of its
// dead letters, as after an operator's replay of which nobody told it; or at the last sweep, before the
// ledger was asked, it knew more than that said.
func (j *Journal) differs(r flow.Revision, s survey, seen reaches) bool {
	if r.Marker == "" { // nor is said what follows
		return false
	}
	var now reach
	now.through, _ = strconv.ParseInt(s.fields[1], 10, 64)
	now.order, _ = strconv.ParseInt(s.fields[6], 10, 64)
	before, ok := j.seen[r.Campaign]
	if !ok {
		before = now // it may be ahead of r because it was read later; to ask once costs little
	}
	seen[r.Campaign] = now
	if now.order >= r.Letters && before.order <= r.Letters && before.through <= r.Settled {
		return false
	}
	of := j.stream(r.Campaign)
	j.mu.Lock()
	of.differs = true
	j.mu.Unlock()
	return true
}

// agree brings to the gate what it lacks of what is settled, if that is in doubt. It says so if it
// is the ledger that lacks something.
func (j *Journal) agree(ctx context.Context, s *stream, to flow.Sink) error {
	j.mu.Lock()
	differs := s.differs
	j.mu.Unlock()
	if !differs {
		return nil
	}
	fields, err := j.gate.fields(ctx, s.keys, "settled", "letters_order") // before the ledger, which only goes on
	if err != nil {
		return err
	}
	known := reach{fields[0], fields[1]}
	settled, err := to(ctx, flow.Batch{Campaign: s.id}) // what a copy of the ledger says may be late
	if err != nil {
		return err
	}
	if settled.Order < known.order || settled.Through < known.through {
		j.troubles.tell(s.id, errOlder)
	}
	if settled.Order < known.order {
		_, err = j.gate.catchUp(ctx, s.keys, known.order)
	} else {
		err = j.gate.settleEntries(ctx, s.keys, settled, nil)
	}
	if err != nil {
		return fmt.Errorf("settle %s through %d: %w", s.id, settled.Through, err)
	}
	j.mu.Lock()
	s.differs = false
	j.mu.Unlock()
	return nil
}
