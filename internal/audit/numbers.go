package audit

import (
	"cmp"
	"context"
	"slices"

	"github.com/firstcome/firstcome"
)

// A Letter is a dead letter that has a number.
type Letter struct {
	Number int64
	User   firstcome.UserID
	Open   bool // no operator has replayed or voided it
}

// A Range is count numbers from First on.
type Range struct{ First, Count int64 }

// last returns the highest number of a range.
func (r Range) last() int64 { return r.First + r.Count - 1 }

// numberAudit checks that every number is exactly one of coupon, dead letter and lost.
type numberAudit struct {
	*Breaches
	rows    rows
	settled int64   // as read before the coupons
	known   []Range // of dead letters and lost numbers
	open    int64
	lost    int64
	missing int64 // above what is settled
}

// read reads the dead letters and the lost numbers, behind the coupons.
func (a *numberAudit) read(ctx context.Context, source Source, id firstcome.CampaignID) error {
	if source.Letters != nil {
		if err := source.Letters(ctx, id, a.letter); err != nil {
			return err
		}
	}
	if source.Lost != nil {
		return source.Lost(ctx, id, a.lose)
	}
	return nil
}

func (a *numberAudit) letter(l Letter) error {
	a.known = append(a.known, Range{l.Number, 1})
	if l.Open {
		a.open++
		if a.rows.find(l.Number) != nil {
			a.add("P4", "number %d is a coupon, and a dead letter for the user %q", l.Number, l.User)
		}
	}
	return nil
}

func (a *numberAudit) lose(r Range) error {
	a.known = append(a.known, r)
	a.lost += r.Count
	from, _ := slices.BinarySearchFunc(a.rows, r.First, func(one row, number int64) int { return cmp.Compare(one.number, number) })
	if from < len(a.rows) && a.rows[from].number <= r.last() {
		a.add("P4", "number %d is a coupon, and it was lost: %d to %d were", a.rows[from].number, r.First, r.last())
	}
	return nil
}

// end reports the numbers that are nothing. With a remote gate those above what was
// settled before they were read may be on their way; settled is what it was after.
func (a *numberAudit) end(remote bool, settled int64) {
	slices.SortFunc(a.known, func(x, y Range) int { return cmp.Compare(x.First, y.First) })
	through := int64(0) // each number up to it is something
	var first int64     // that is nothing
	gap := func(next int64) {
		if next <= through+1 {
			return
		}
		if first == 0 {
			first = through + 1
		}
		a.absent(Range{through + 1, next - through - 1}, remote)
	}
	known := a.known
	for n := 0; n < len(a.rows) || len(known) > 0; {
		next := Range{Count: 1}
		if len(known) == 0 || n < len(a.rows) && a.rows[n].number <= known[0].First {
			next.First = a.rows[n].number
			n++
		} else {
			next, known = known[0], known[1:]
		}
		gap(next.First)
		through = max(through, next.last())
	}
	if !remote {
		return
	}
	gap(a.settled + 1)
	if first == 0 {
		first = max(through, a.settled) + 1
	}
	if first-1 > settled {
		a.add("counters", "every number up to %d is in the ledger, the campaign says so only up to %d", first-1, settled)
	}
}

// absent reports numbers that are nothing.
func (a *numberAudit) absent(r Range, remote bool) {
	above := int64(0)
	if remote {
		above = min(r.Count, max(0, r.last()-a.settled))
	}
	a.missing += above
	if r.Count -= above; r.Count > 0 {
		a.add("P4", "the numbers %d to %d are missing", r.First, r.last())
	}
}
