package codes

import (
	"context"

	"github.com/firstcome/firstcome"
)

// A Frozen is an import that stops after it has begun, until Continue.
type Frozen struct {
	*importing
	list []string
}

// Freeze begins an import.
func (cs *Lists) Freeze(ctx context.Context, id firstcome.CampaignID, prize firstcome.PrizeID, list []string) (*Frozen, error) {
	i := cs.importing(id, prize, list)
	return &Frozen{i, list}, i.begin(ctx)
}

// Again repeats the transaction that began the import, as after a commit whose outcome is unknown.
func (f *Frozen) Again(ctx context.Context) error { return f.begin(ctx) }

// Continue appends the codes, and then counts them.
func (f *Frozen) Continue(ctx context.Context) (appended, ended error) {
	appended = f.append(ctx, f.list)
	return appended, f.end(ctx, "test", int64(len(f.list)))
}
