package redis

import (
	"context"
	"fmt"

	"github.com/firstcome/firstcome/internal/recovery"
)

// How many bytes a rebuild loads for each: as measured (docs/operate.md), with user ids of some 36 bytes, and rounded up.
const (
	holderBytes = 128
	inLineBytes = 64
	ticketsOf   = 128
)

// Room returns a recovery.NoRoomError if the campaign's keys do not fit into Redis twice, as far as can be said before they are loaded. It
// removes what earlier attempts left.
func (g *Gate) Room(ctx context.Context, r recovery.Rebuild) error {
	err := g.removeLoaded(ctx, r)
	if err == nil {
		err = g.room(ctx, r)
	}
	return wrap(err, "look for room to rebuild %s", r.Campaign)
}

func (g *Gate) room(ctx context.Context, r recovery.Rebuild) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	_, parts, err := g.run(ctx, g.memory, keysOf(r.Campaign, r.Marker))
	if err != nil {
		return err
	}
	if len(parts) != 5 {
		return fmt.Errorf("the room script answered %d parts", len(parts)+1)
	}
	var most, used, holders, people, tickets int64
	for n, into := range []*int64{&most, &used, &holders, &people, &tickets} {
		if *into, err = whole(parts[n]); err != nil {
			return err
		}
	}
	needs := max(holders, r.InForce)*holderBytes + people*inLineBytes + tickets*ticketsOf
	if most > 0 && used+needs > most {
		return &recovery.NoRoomError{Missing: used + needs - most}
	}
	return nil
}
