package firstcome

import (
	"encoding/json"
	"fmt"
	"slices"
)

// A PrizeID names a prize in its campaign. It is formed like a CampaignID.
type PrizeID string

// A Prize is what the coupons of some ranks of a campaign are good for.
type Prize struct {
	ID   PrizeID
	Name string
	// Quantity is how many ranks the prize covers. It is 0 for the last prize, which covers all ranks after the others.
	Quantity int64
	Benefit  json.RawMessage
	// Imported means that the codes of its coupons were made by another system: see Terms.Entry.
	Imported bool
}

// Limits of prizes.
const (
	MaxPrizes    = 16
	MaxPrizeName = 200 // bytes
)

// A Skip says that an epoch has ended, and that its last numbers were never given: they have no rank.
type Skip struct {
	After   int64 // the last number of the epoch
	Skipped int64 // how many numbers up to After have no rank, of this epoch and the ones before it
}

// Rank returns how many ranks the campaign has up to a number. For a coupon with this number and these terms, that is its rank: its place in the
// order of the campaign's coupons, 1, 2, 3 and so on. A coupon with a greater number has a greater rank.
func (t *Terms) Rank(number int64) int64 {
	skipped := int64(0)
	for _, s := range t.Skips {
		if number <= s.After {
			return min(number-skipped, s.After-s.Skipped) // a skipped number has no rank of its own
		}
		skipped = s.Skipped
	}
	return number - skipped
}

// NumberOf returns the number of the coupon with this rank. It is the inverse of Rank. A number that was lost has no coupon.
func (t *Terms) NumberOf(rank int64) int64 {
	for _, s := range slices.Backward(t.Skips) {
		if number := rank + s.Skipped; number > s.After {
			return number
		}
	}
	return rank
}

// WithSkip returns the terms with one more Skip: an epoch has ended at the number through, and no coupon has the numbers above last.
func (t Terms) WithSkip(last, through int64) Terms {
	skipped := through - last
	if n := len(t.Skips); n > 0 {
		skipped += t.Skips[n-1].Skipped
	}
	t.Skips = append(slices.Clone(t.Skips), Skip{through, skipped})
	return t
}

// PrizeOf returns the index in Prizes of the prize for a rank, or -1 if the terms have no prizes.
func (t *Terms) PrizeOf(rank int64) int {
	for n, p := range t.Prizes {
		if rank -= p.Quantity; rank <= 0 || n == len(t.Prizes)-1 {
			return n
		}
	}
	return -1
}

// Ranks returns the first and the last rank of the prize with this index in Prizes. The last prize has no last rank: to is Unlimited.
func (t *Terms) Ranks(prize int) (from, to int64) {
	for _, p := range t.Prizes[:prize] {
		from += p.Quantity
	}
	if prize == len(t.Prizes)-1 {
		return from + 1, Unlimited
	}
	return from + 1, from + t.Prizes[prize].Quantity
}

// BenefitOf returns what a coupon with this number is good for. t are the coupon's own terms.
func (t *Terms) BenefitOf(number int64) json.RawMessage {
	if prize := t.PrizeOf(t.Rank(number)); prize >= 0 {
		return t.Prizes[prize].Benefit
	}
	return t.Benefit
}

// MovesPrizes reports whether the prizes of t and before differ in more than names and benefits. Such a change is refused once the gate has given a
// number.
func (t *Terms) MovesPrizes(before Terms) bool {
	return !slices.EqualFunc(t.Prizes, before.Prizes, func(is, was Prize) bool { return is.ID == was.ID && is.Quantity == was.Quantity })
}

// prizeMistakes calls refuse for each mistake in the prizes.
func (t *Terms) prizeMistakes(refuse func(field, reason string, args ...any)) {
	if t.HasImported() && t.Quantity == Unlimited {
		refuse("quantity", "must be a number: there is a code for each coupon of an imported list")
	}
	if t.Prizes == nil {
		return
	}
	if t.Imported {
		refuse("coupon.codes", "cannot stand beside prizes: each prize says itself whether its codes are imported")
	}
	if len(t.Prizes) == 0 || len(t.Prizes) > MaxPrizes {
		refuse("prizes", "must have 1 to %d prizes, or be null for none", MaxPrizes)
	}
	if len(t.Benefit) > 0 && string(t.Benefit) != "null" {
		refuse("coupon.benefit", "must be null beside prizes: each prize has its own benefit")
	}
	var quantities int64
	benefits, seen := 0, map[PrizeID]bool{}
	for n, p := range t.Prizes {
		field := func(name string) string { return fmt.Sprintf("prizes[%d].%s", n, name) }
		switch {
		case !isID(string(p.ID)):
			refuse(field("id"), "%s", idForm)
		case seen[p.ID]:
			refuse(field("id"), "is the id of an earlier prize: choose another one")
		}
		seen[p.ID] = true
		if p.Name == "" || len(p.Name) > MaxPrizeName {
			refuse(field("name"), "must have 1 to %d bytes", MaxPrizeName)
		}
		last := n == len(t.Prizes)-1
		switch {
		case last && p.Quantity != 0:
			refuse(field("quantity"), "must be left out: the last prize has what the others leave of the campaign's quantity")
		case !last && (p.Quantity < 1 || p.Quantity > MaxQuantity):
			refuse(field("quantity"), "must be 1 to %d: only the last prize has none", MaxQuantity)
		default:
			quantities += p.Quantity
		}
		benefits += len(p.Benefit)
	}
	if benefits > MaxBenefit {
		refuse("prizes", "must have benefits of at most %d bytes in all", MaxBenefit)
	}
	if quantities > t.Quantity && quantities > t.Quantity+t.Burnt {
		refuse("quantity", "must be at least %d, the sum of the prizes' quantities", quantities)
	}
}
