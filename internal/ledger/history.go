package ledger

import (
	"context"
	"database/sql"
	"fmt"

	"github.com/firstcome/firstcome"
)

// Changes calls each with at most limit changes of a campaign with versions above
// after, in their order, and tells which of them the gate refused, until each
// returns an error.
func (l *Ledger) Changes(ctx context.Context, id firstcome.CampaignID, after int64, limit int, each func(c firstcome.Change, refused bool) error) error {
	rows, err := l.read.QueryContext(ctx, `SELECT version, kind, payload, changed_at, refused FROM changes
		WHERE campaign_id = ? AND version > ? ORDER BY version LIMIT ?`, id, after, limit)
	if err != nil {
		return fmt.Errorf("read the changes of %s: %w", id, err)
	}
	defer rows.Close()
	if err := scanChanges(rows, id, each); err != nil {
		return fmt.Errorf("read the changes of %s: %w", id, err)
	}
	return nil
}

func scanChanges(rows *sql.Rows, id firstcome.CampaignID, each func(c firstcome.Change, refused bool) error) error {
	for rows.Next() {
		c := firstcome.Change{Campaign: id}
		var payload string
		var changedAt sql.NullInt64
		var refused bool
		if err := rows.Scan(&c.Version, &c.Kind, &payload, &changedAt, &refused); err != nil {
			return err
		}
		c.At = instant(changedAt)
		if err := decodeChange(&c, payload, 0); err != nil {
			return fmt.Errorf("version %d: %w", c.Version, err)
		}
		if err := each(c, refused); err != nil {
			return err
		}
	}
	return rows.Err()
}

// tell calls each with every fact of the run, until ctx ends. rows are the coupons of its
// numbers; of one that is not among them the fact has the number only.
func (r run) tell(ctx context.Context, id firstcome.CampaignID, rows *sql.Rows, each func(firstcome.Fact) error) error {
	told := int64(0)
	until := func(number int64) error { // the numbers before it have no coupon
		for ; r.number+told < number; told++ {
			if err := ctx.Err(); err != nil { // which no row says
				return err
			}
			gone := firstcome.Coupon{Campaign: id, Number: r.number + told}
			if err := each(firstcome.Fact{Position: r.position + told, Kind: r.kind, Coupon: gone}); err != nil {
				return err
			}
		}
		return nil
	}
	err := scanCoupons(rows, func(c firstcome.Coupon) error {
		if err := until(c.Number); err != nil {
			return err
		}
		told++
		return each(firstcome.Fact{Position: r.position + told - 1, Kind: r.kind, Coupon: c})
	})
	if err != nil {
		return err
	}
	return until(r.number + r.count)
}
