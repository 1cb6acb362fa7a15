package firstcome

import "fmt"

// HasImported reports whether codes of the campaign's coupons were made by another system. Then a coupon's stock does not come back, because its code
// is never given again.
func (t *Terms) HasImported() bool {
	for n := range t.Prizes {
		if t.Prizes[n].Imported {
			return true
		}
	}
	return t.Imported
}

// Entry returns which entry of which list is the code of the coupon with a number: the n-th rank of a prize gets the n-th entry of its list. The list
// has the prize's id, and is empty for a campaign without prizes. entry is 0 if the coupon has a code of our own. t are the coupon's own terms.
func (t *Terms) Entry(number int64) (list PrizeID, entry int64) {
	rank := t.Rank(number)
	n := t.PrizeOf(rank)
	switch {
	case n < 0 && t.Imported:
		return "", rank
	case n < 0 || !t.Prizes[n].Imported:
		return "", 0
	}
	from, _ := t.Ranks(n)
	return t.Prizes[n].ID, rank - from + 1
}

// A CodeList says how many imported codes a prize needs.
type CodeList struct {
	Prize PrizeID // empty for a campaign without prizes
	Needs int64   // as many as the prize has ranks
}

// CodeLists returns what imported codes the campaign needs, in the order of its prizes.
func (t *Terms) CodeLists() (all []CodeList) {
	left := t.Quantity + t.Burnt
	if t.Imported {
		return []CodeList{{Needs: left}}
	}
	for n, p := range t.Prizes {
		needs := p.Quantity
		if n == len(t.Prizes)-1 {
			needs = left
		}
		left -= p.Quantity
		if p.Imported {
			all = append(all, CodeList{p.ID, needs})
		}
	}
	return all
}

// importedMistakes calls refuse for each change of before in which codes are imported: that is set at the creation.
func (t *Terms) importedMistakes(before *Terms, refuse func(field, reason string)) {
	const stays = "is set when the campaign is created, and stays"
	if t.Imported != before.Imported || t.HasImported() != before.HasImported() {
		refuse("coupon.codes", stays)
		return
	}
	was := map[PrizeID]bool{}
	for _, p := range before.Prizes {
		was[p.ID] = p.Imported
	}
	for n, p := range t.Prizes {
		if imported, known := was[p.ID]; known && imported != p.Imported {
			refuse(fmt.Sprintf("prizes[%d].codes", n), stays)
		}
	}
}
