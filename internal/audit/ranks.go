package audit

import (
	"context"
	"fmt"
	"slices"
	"strconv"

	"github.com/firstcome/firstcome"
)

// A rankAudit checks P10 where SQL cannot: by the payloads of changes. It counts skipped numbers from the rebuilds and the lost numbers, and compares
// the terms with them. The terms give the product's ranks.
type rankAudit struct {
	*ledgerAudit
	*Breaches
	groups  []termsGroup
	changes []Change // of terms, and rebuilds
	lost    []firstcome.Range
}

// A termsGroup is the coupons that name one version of the terms.
type termsGroup struct{ version, first, last int64 }

// groupsOf is the query of the groups, in number order.
const groupsOf = `SELECT terms_version, MIN(number), MAX(number) FROM coupons WHERE campaign_id = ? GROUP BY terms_version ORDER BY MIN(number)`

// ranks checks that each change of terms has the pairs of all rebuilds before it, that no coupon or dead letter has a skipped number, that each coupon's
// terms give it the next rank, and that no prize moved after the first coupon. It reads first what changes first: a coupon's terms are older than it.
func (a *ledgerAudit) ranks(ctx context.Context, b *Breaches) error {
	r := rankAudit{ledgerAudit: a, Breaches: b}
	err := a.source.Each(ctx, groupsOf, []any{string(a.id)}, func(_, values []string) {
		r.groups = append(r.groups, termsGroup{integer(values[0]), integer(values[1]), integer(values[2])})
	})
	if err == nil {
		err = a.source.Changes(ctx, a.id, func(c Change) {
			if c.Wrong == nil && (c.setsTerms() || c.Kind == firstcome.ChangeRebuild) {
				r.changes = append(r.changes, c)
			}
		})
	}
	if err == nil {
		err = a.source.Lost(ctx, a.id, func(l firstcome.Range) { r.lost = append(r.lost, l) })
	}
	if err != nil {
		return err
	}
	skipped := skippedBy(r.pairs())
	r.coupons(skipped)
	r.prizes()
	return r.known(ctx, skipped)
}

// integer converts the text of an integer column.
func integer(text string) int64 {
	n, _ := strconv.ParseInt(text, 10, 64)
	return n
}

// pairs compares the pairs of each change of terms with the rebuilds before it, and returns the last ones.
func (r *rankAudit) pairs() []firstcome.Skip {
	var want, last []firstcome.Skip
	total := int64(0)
	for _, c := range r.changes {
		has := c.Terms.Skips
		switch c.Kind {
		case firstcome.ChangeRebuild:
			if total += c.Rebuilt.Skipped; c.Rebuilt.Skipped != 0 {
				want = append(slices.Clip(want), firstcome.Skip{After: c.Rebuilt.Through, Skipped: total})
			}
			if c.Skipped != c.Rebuilt.Skipped {
				r.add("P10", "version %d skipped %d numbers, by its payload %d", c.Version, c.Skipped, c.Rebuilt.Skipped)
			}
			continue
		case firstcome.ChangeReconcile:
			if len(has) < len(last) || !slices.Equal(has[:len(last)], last) {
				r.add("P10", "version %d, a reconcile, has the pairs %s, which do not begin with those of the terms before it: %s", c.Version, pairsText(has), pairsText(last))
			}
			want, total = has, skippedIn(has)
		default:
			if !slices.Equal(has, want) {
				r.add("P10", "the terms of version %d have the pairs %s, but the rebuilds before them make %s", c.Version, pairsText(has), pairsText(want))
			}
		}
		if c.Skipped != skippedIn(has) {
			r.add("P10", "the terms of version %d skip %d numbers, by their payload %d", c.Version, c.Skipped, skippedIn(has))
		}
		last = has
	}
	return last
}

// skippedIn returns how many numbers pairs skip in all.
func skippedIn(pairs []firstcome.Skip) int64 {
	if len(pairs) == 0 {
		return 0
	}
	return pairs[len(pairs)-1].Skipped
}

// skippedBy returns the ranges of numbers that pairs skip.
func skippedBy(pairs []firstcome.Skip) (all []firstcome.Range) {
	before := int64(0)
	for _, p := range pairs {
		count := p.Skipped - before
		all = append(all, firstcome.Range{First: p.After - count + 1, Count: count})
		before = p.Skipped
	}
	return all
}

func pairsText(pairs []firstcome.Skip) string {
	text := ""
	for _, p := range pairs {
		text += fmt.Sprintf("%d/%d ", p.After, p.Skipped)
	}
	if text == "" {
		return "none"
	}
	return text[:len(text)-1]
}

// coupons compares the rank that each coupon has by its own terms with the count of its number and the skipped numbers below it. By that count a
// greater number has a greater rank. All coupons that name one version are between two skipped ranges, so their first and last ones stand for them.
func (r *rankAudit) coupons(skipped []firstcome.Range) {
	for _, g := range r.groups {
		terms, found := r.termsOf(g.version)
		if !found {
			continue // the query in_window finds it
		}
		for _, number := range slices.Compact([]int64{g.first, g.last}) {
			rank := number
			for _, s := range skipped {
				if s.First <= number {
					rank -= s.Count
				}
			}
			if got := terms.Terms.Rank(number); got != rank {
				r.add("P10", "number %d has rank %d by its terms, of version %d, but rank %d by the skipped numbers below it", number, got, terms.Version, rank)
			}
		}
	}
}

// termsOf returns the change with the terms of a version: the last change of terms up to it or, if the ledger has forgotten the version, the
// reconcile after it.
func (r *rankAudit) termsOf(version int64) (terms Change, found bool) {
	for _, c := range r.changes {
		switch {
		case c.Version > version && c.Kind == firstcome.ChangeReconcile:
			if c.Behind < version {
				return c, true
			}
			return terms, found
		case c.Version <= version && c.setsTerms() && !c.Refused:
			terms, found = c, true
		}
	}
	return terms, found
}

// setsTerms reports whether a change has terms.
func (c *Change) setsTerms() bool {
	return c.Kind == firstcome.ChangeTerms || c.Kind == firstcome.ChangeReconcile
}

// prizes checks that the prizes are the same for all coupons and in all terms after those of the first one.
func (r *rankAudit) prizes() {
	if len(r.groups) == 0 {
		return
	}
	first, found := r.termsOf(r.groups[0].version)
	for _, c := range r.changes {
		if found && c.Version > first.Version && c.setsTerms() && !c.Refused && c.Version <= r.campaign.Applied && c.Terms.MovesPrizes(first.Terms) {
			r.add("P10", "the terms of version %d move prizes, but number %d was issued by those of version %d", c.Version, r.groups[0].first, first.Version)
		}
	}
}

// known checks that all skipped numbers are lost, and that none is a coupon or a dead letter. A reconcile that is under way may have pairs of numbers
// that the ledger has not drained yet: these are not checked.
func (r *rankAudit) known(ctx context.Context, skipped []firstcome.Range) error {
	skipped = slices.DeleteFunc(skipped, func(s firstcome.Range) bool { return s.Last() > r.campaign.Drained })
	for _, s := range skipped {
		count := int64(0)
		for _, l := range r.lost {
			count += max(0, min(l.Last(), s.Last())-max(l.First, s.First)+1)
		}
		if count != s.Count {
			r.add("P10", "the numbers %d to %d have no rank, but %d of these %d are lost", s.First, s.Last(), count, s.Count)
		}
		err := r.source.Each(ctx, `SELECT number FROM coupons WHERE campaign_id = ? AND number >= ? AND number <= ? ORDER BY number LIMIT 1`,
			[]any{string(r.id), s.First, s.Last()}, func(_, values []string) {
				r.add("P10", "the numbers %d to %d have no rank, but number %s is a coupon", s.First, s.Last(), values[0])
			})
		if err != nil {
			return err
		}
	}
	return r.source.Letters(ctx, r.id, func(l Letter) {
		for _, s := range skipped {
			if l.Number >= s.First && l.Number <= s.Last() {
				r.add("P10", "the numbers %d to %d have no rank, but number %d is a dead letter", s.First, s.Last(), l.Number)
			}
		}
	})
}
