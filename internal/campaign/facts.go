package campaign

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/sqldb"
)

// A run is a sequence of count facts of one kind. Their positions are consecutive and begin with position. The numbers of their coupons
// are consecutive and begin with number.
type run struct {
	position, count, number int64
	kind                    firstcome.FactKind
}

// possible reports whether the run's positions and numbers are in range.
func (r run) possible() bool {
	return min(r.position, r.count, r.number) >= 1 && max(r.position, r.number) <= math.MaxInt64-r.count
}

// openRun returns the run of the facts without a row: those after the last position of the runs in the ledger, up to the campaign's
// position. They are the latest issues, up to the last number. So issuing a coupon writes no run.
func openRun(last, position, lastNumber int64) run {
	count := position - last
	return run{last + 1, count, lastNumber - count + 1, firstcome.CouponIssued}
}

// Facts calls each for the facts of a campaign with positions above after: see ledger.Reads.Facts.
func Facts(ctx context.Context, snapshot *sqldb.Snapshot, id firstcome.CampaignID, after int64, limit int, each func(firstcome.Fact) error) error {
	after = max(after, 0)
	for limit > 0 && after < math.MaxInt64 { // no position follows the largest one
		r, err := runAt(ctx, snapshot, id, after+1)
		if errors.Is(err, sql.ErrNoRows) {
			return nil
		}
		if err != nil {
			return err
		}
		skip := after + 1 - r.position
		want := run{after + 1, min(r.count-skip, int64(limit)), r.number + skip, r.kind}
		rows, err := snapshot.QueryContext(ctx, `SELECT `+CouponColumns+` FROM coupons
			WHERE campaign_id = ? AND number >= ? AND number < ? ORDER BY number`, id, want.number, want.number+want.count)
		if err = want.tell(ctx, id, rows, err, each); err != nil {
			return err
		}
		after, limit = after+want.count, limit-int(want.count)
	}
	return nil
}

// runAt returns the run that holds a position, or sql.ErrNoRows.
func runAt(ctx context.Context, snapshot *sqldb.Snapshot, id firstcome.CampaignID, position int64) (run, error) {
	var r run
	err := snapshot.QueryRowContext(ctx, `SELECT position, count, kind, number FROM facts
		WHERE campaign_id = ? AND position <= ? ORDER BY position DESC LIMIT 1`, id, position).Scan(&r.position, &r.count, &r.kind, &r.number)
	if err != nil && !errors.Is(err, sql.ErrNoRows) {
		return run{}, err
	}
	if err == nil && !r.possible() {
		return run{}, fmt.Errorf("the run of facts at position %d is out of range", r.position)
	}
	if err == nil && position < r.position+r.count {
		return r, nil
	}
	last := int64(0)
	if err == nil {
		last = r.position + r.count - 1
	}
	var top, lastNumber int64
	err = snapshot.QueryRowContext(ctx, `SELECT position, last_number FROM campaigns WHERE id = ?`, id).Scan(&top, &lastNumber)
	if err == nil && position > top {
		err = sql.ErrNoRows
	}
	return openRun(last, top, lastNumber), err
}

// tell calls each for every fact of the run, until ctx ends. rows has the coupons of the run's numbers. If a coupon is missing there,
// its fact only has the number.
func (r run) tell(ctx context.Context, id firstcome.CampaignID, rows *sql.Rows, failed error, each func(firstcome.Fact) error) error {
	told := int64(0)
	until := func(number int64) error { // the numbers from here to the one before number have no coupon
		for ; r.number+told < number; told++ {
			if err := ctx.Err(); err != nil { // this loop reads no row, which would report it
				return err
			}
			gone := firstcome.Coupon{Campaign: id, Number: r.number + told}
			if err := each(firstcome.Fact{Position: r.position + told, Kind: r.kind, Coupon: gone}); err != nil {
				return err
			}
		}
		return nil
	}
	err := ScanCoupons(rows, failed, func(c firstcome.Coupon) error {
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

// AddIssued writes the facts that count coupons were issued. Their positions begin with position, and their numbers with number.
func AddIssued(t *sqldb.Tx, id firstcome.CampaignID, position, count, number int64) error {
	HasFacts(t, id)
	return addFacts(t, id, run{position, count, number, firstcome.CouponIssued})
}

func addFacts(t *sqldb.Tx, id firstcome.CampaignID, r run) error {
	_, err := t.Change(`INSERT INTO facts (campaign_id, position, count, kind, number) VALUES (?, ?, ?, ?, ?)`,
		string(id), r.position, r.count, string(r.kind), r.number)
	return err
}

// AddVoidFact writes the fact that a number was voided. Before it, AddVoidFact writes the run of coupons issued
// since the last void, if that run is not written yet.
func AddVoidFact(t *sqldb.Tx, s Row, number int64) error {
	HasFacts(t, s.ID)
	var last int64 // the last position of any run
	err := t.Row(`SELECT position + count - 1 FROM facts WHERE campaign_id = ? ORDER BY position DESC LIMIT 1`, s.ID).Scan(&last)
	if err != nil && !errors.Is(err, sql.ErrNoRows) {
		return err
	}
	runs := []run{openRun(last, s.Position, s.LastNumber), {s.Position + 1, 1, number, firstcome.CouponVoided}}
	for _, r := range runs {
		if r.count == 0 {
			continue
		}
		if err := addFacts(t, s.ID, r); err != nil {
			return err
		}
	}
	return nil
}
