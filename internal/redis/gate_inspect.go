package redis

import (
	"context"
	"fmt"

	"github.com/redis/rueidis"

	"github.com/firstcome/firstcome"
)

// Coupons calls each with the coupon in force of every holder, in no order, until it
// returns an error. It reads page by page while claims go on: what is issued or voided
// meanwhile may be there or not, and a coupon may come twice. None has a Code.
func (g *Gate) Coupons(ctx context.Context, id firstcome.CampaignID, each func(firstcome.Coupon) error) error {
	k, err := g.keysOf(ctx, id)
	if err == nil {
		err = g.eachHolder(ctx, k, each)
	}
	return wrap(err, "read the holders of %s", id)
}

// eachHolder is Coupons.
func (g *Gate) eachHolder(ctx context.Context, k *keys, each func(firstcome.Coupon) error) error {
	for cursor := uint64(0); ; {
		page, err := g.page(ctx, k, cursor)
		if err != nil {
			return err
		}
		for n := 0; n+1 < len(page.Elements); n += 2 {
			c, err := readEntry(k.id, firstcome.UserID(page.Elements[n]), page.Elements[n+1])
			if err != nil {
				return err
			}
			if err := each(c); err != nil {
				return err
			}
		}
		if cursor = page.Cursor; cursor == 0 {
			return nil
		}
	}
}

// inspectEntries is how many entries one command returns: some 10,000 coupons of a
// busy campaign.
const inspectEntries = 100

// Unrecorded calls each with every coupon of the journal, which is on its way to the
// ledger or has just arrived, in the order of issue, until it returns an error. It
// takes nothing away from recorders. An entry that cannot be read is passed over: a
// recorder makes a dead letter of it, or leaves it to a newer one.
func (g *Gate) Unrecorded(ctx context.Context, id firstcome.CampaignID, each func(firstcome.Coupon) error) error {
	k, err := g.keysOf(ctx, id)
	var entries []rueidis.XRangeEntry
	for from := "-"; ; from = "(" + entries[len(entries)-1].ID {
		if err == nil {
			entries, err = g.entries(ctx, k, from)
		}
		if err != nil {
			return fmt.Errorf("read the journal of %s: %w", id, err)
		}
		for _, e := range entries {
			says, err := item{id: e.ID, fields: e.FieldValues}.read(id, g.options.Secret)
			if err != nil {
				continue
			}
			for _, c := range says.coupons {
				if err := each(c); err != nil {
					return err
				}
			}
		}
		if len(entries) < inspectEntries {
			return nil
		}
	}
}

func (g *Gate) entries(ctx context.Context, k *keys, from string) ([]rueidis.XRangeEntry, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	entries, err := g.client.Do(ctx, g.client.B().Xrange().Key(k.journal).Start(from).End("+").Count(inspectEntries).Build()).AsXRange()
	return entries, classify(err)
}
