package sim

import (
	"context"
	"encoding/json"
	"reflect"

	"github.com/firstcome/firstcome"
)

// payloadOf returns the text of terms, which the ledger numbers and the gate keeps.
func payloadOf(terms firstcome.Terms) string {
	text, err := json.Marshal(terms)
	must(err)
	return string(text)
}

// twoPrizes are the prizes of every other town.
func twoPrizes() []firstcome.Prize {
	return []firstcome.Prize{{ID: "drink", Name: "drink", Quantity: 1}, {ID: "rest", Name: "rest"}}
}

// prized gives the campaign prizes, or takes them away.
func prized(terms *firstcome.Terms, prizes []firstcome.Prize) {
	if terms.Prizes, terms.Benefit = prizes, []byte(`{}`); prizes != nil {
		terms.Benefit = nil
	}
}

// termsIn returns the terms of a payload.
func termsIn(payload string) (terms firstcome.Terms) {
	must(json.Unmarshal([]byte(payload), &terms))
	return terms
}

// reprizes orders other prizes, or the same prizes by other names.
func (t *town) reprizes(terms func(what string, edit func(*firstcome.Terms))) {
	other := t.IntN(3)
	if other == 0 {
		terms("other names of the prizes", func(terms *firstcome.Terms) {
			prizes := append([]firstcome.Prize(nil), terms.Prizes...)
			for n := range prizes {
				prizes[n].Name += "'"
			}
			terms.Prizes = prizes
		})
		return
	}
	terms("other prizes", func(terms *firstcome.Terms) {
		prizes := twoPrizes()
		switch {
		case other == 1 && terms.Prizes != nil:
			prizes = nil
		case other == 2:
			prizes[0].ID, prizes[1].ID = "rest", "drink"
		}
		prized(terms, prizes)
	})
}

// A toldCoupon is one that somebody was told, with its rank and prize by the terms that it names.
type toldCoupon struct {
	firstcome.Coupon
	rank  int64
	prize firstcome.Prize
}

// rankOf returns a coupon with its rank and prize by its own terms.
func rankOf(c firstcome.Coupon, terms firstcome.Terms) toldCoupon {
	t := toldCoupon{Coupon: c, rank: terms.Rank(c.Number)}
	if n := terms.PrizeOf(t.rank); n >= 0 {
		t.prize = terms.Prizes[n]
	}
	return t
}

// ranks is what a history knows of the ranks, without what the ledger's terms say of skipped numbers.
type ranks struct {
	skips firstcome.Terms // has the numbers that the ends of the epochs skipped
	told  []toldCoupon
}

// ended notes that an epoch has ended at the number through, while given was the last number that ledger or gate knew of.
func (r *ranks) ended(given, through int64) {
	if n := len(r.skips.Skips); n > 0 {
		given = max(given, r.skips.Skips[n-1].After)
	}
	if given < through {
		r.skips = r.skips.WithSkip(given, through)
	}
}

// ranked checks P10: no two coupons of the ledger have one rank, a greater number has a greater rank, the prizes of all are the same but for their names, and
// what users were told of a coupon is what its terms say. Where no ledger was put back, the ranks of an epoch go on after the last number known to be given.
func (h *history) ranked() {
	a := h.town.ledger.campaigns[campaign]
	of := func(c firstcome.Coupon) (firstcome.Terms, toldCoupon) {
		terms, err := h.town.ledger.Terms(context.Background(), campaign, c.TermsVersion)
		must(err)
		return terms, rankOf(c, terms)
	}
	var before toldCoupon
	var termsBefore firstcome.Terms
	for _, c := range a.sorted() {
		terms, now := of(c.Coupon)
		switch {
		case now.rank <= before.rank:
			h.breach("P10", "number %d has rank %d, and number %d rank %d", now.Number, now.rank, before.Number, before.rank)
		case before.rank > 0 && terms.MovesPrizes(termsBefore):
			h.breach("P10", "number %d has other prizes than number %d: %v and %v", now.Number, before.Number, terms.Prizes, termsBefore.Prizes)
		case h.town.puts == 0 && now.rank != h.ranks.skips.Rank(now.Number):
			h.breach("P10", "number %d has rank %d, and %d coupons up to it can have been given", now.Number, now.rank, h.ranks.skips.Rank(now.Number))
		}
		before, termsBefore = now, terms
	}
	for _, one := range h.ranks.told {
		kept := a.coupon(one.Number)
		if kept == nil || !same(kept.Coupon, one.Coupon) {
			continue
		}
		if _, now := of(kept.Coupon); now.rank != one.rank || !reflect.DeepEqual(now.prize, one.prize) && h.town.puts == 0 || now.prize.ID != one.prize.ID {
			h.breach("P10", "%s was told rank %d and %+v of number %d, which has rank %d and %+v", one.User, one.rank, one.prize, one.Number, now.rank, now.prize)
		}
	}
}
