package sim

import (
	"context"
	"maps"
	"slices"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/audit"
)

// source returns the ledger as internal/audit reads one.
func (l *Ledger) source() audit.Source {
	return audit.Source{
		Campaign: l.books,
		Changes: list(l, func(a *account) (all []audit.Change) {
			for _, d := range a.changes {
				all = append(all, audit.Change{Change: d.Change, Refused: d.refused})
			}
			return all
		}),
		Coupons: list(l, func(a *account) []audit.Coupon {
			all := slices.Clone(a.coupons)
			slices.SortStableFunc(all, func(x, y audit.Coupon) int { return int(x.Number - y.Number) })
			return all
		}),
		Letters: list(l, func(*account) []audit.Letter { return slices.Collect(maps.Values(l.letters)) }),
		Lost: list(l, func(a *account) (all []audit.Range) {
			for _, s := range a.lost {
				all = append(all, audit.Range{First: s.first, Count: s.last - s.first + 1, Epoch: s.epoch})
			}
			return all
		}),
		Runs: list(l, func(a *account) []audit.Run { return a.facts }),
	}
}

// books returns a campaign with the counters that a ledger keeps in its row.
func (l *Ledger) books(_ context.Context, id firstcome.CampaignID) (c audit.Campaign, err error) {
	err = l.of(id, func(a *account) error {
		c = audit.Campaign{
			Campaign: a.Campaign, InForce: a.inForce(), Issued: int64(len(a.coupons)), Position: int64(len(a.facts)),
			Remote: true, Drained: a.drained, Applied: a.applied, Epoch: a.epoch, Row: &audit.Row{TermsVersion: a.termsVersion, Line: a.line.Line},
		}
		c.Row.DecidedAt = a.decidedAt
		for _, one := range a.coupons {
			c.LastNumber = max(c.LastNumber, one.Number)
		}
		return nil
	})
	return c, err
}

// list returns what lists the rows of one kind.
func list[V any](l *Ledger, rows func(*account) []V) audit.List[V] {
	return func(_ context.Context, id firstcome.CampaignID, each func(V)) error {
		return l.of(id, func(a *account) error {
			for _, one := range rows(a) {
				each(one)
			}
			return nil
		})
	}
}
