package audit_test

import (
	"testing"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/internal/audit"
)

// ranked returns a history of a campaign in which the first two ranks get a drink. The numbers 3 to 5 were lost when an epoch ended: number 3 had been
// given, so it has a rank, and 4 and 5 have none.
func ranked() *history {
	h := &history{History: audit.History{Quantity: 5, Lost: []firstcome.Range{{First: 3, Count: 3}}}}
	h.Prizes = []audit.Prize{{ID: "drink", From: 1, To: 2}, {ID: "shipping", From: 3, To: firstcome.Unlimited}}
	for _, is := range []struct {
		user   string
		number int64
	}{{"a", 1}, {"b", 2}, {"f", 6}, {"g", 7}} {
		h.claim(is.user, firstcome.Issued, is.number)
		h.claim(is.user, firstcome.AlreadyIssued, is.number)
	}
	lost := h.claim("c", firstcome.Issued, 3)
	lost.Recorded = false
	for n := range h.Claims {
		h.Claims[n].Ranked = rankOf(h.Claims[n].Number)
		h.Claims[n].Sent, h.Claims[n].Received = 0, 1 // in any order
	}
	for n, user := range []string{"a", "b", "f", "g"} {
		number := int64(n + 1)
		if number > 2 {
			number += 3
		}
		h.keep(user, number)
		h.Ranks = append(h.Ranks, rankOf(number))
	}
	return h
}

// rankOf returns what number has in a history of ranked.
func rankOf(number int64) audit.Ranked {
	switch {
	case number <= 2:
		return audit.Ranked{Rank: number, Prize: "drink"}
	case number == 3:
		return audit.Ranked{Rank: 3, Prize: "shipping"}
	}
	return audit.Ranked{Rank: number - 2, Prize: "shipping"}
}

// told changes what a number's claims were answered.
func (h *history) told(number int64, is audit.Ranked) {
	for n := range h.Claims {
		if h.Claims[n].Number == number {
			h.Claims[n].Ranked = is
		}
	}
}

func TestP10RanksThatSkipLostNumbersAreNoBreach(t *testing.T) {
	for name, change := range map[string]func(h *history){
		"a lost number has a rank": func(*history) {},
		// Only the last of them is skipped, so one rank more has no coupon.
		"fewer numbers are skipped": func(h *history) {
			for n := range int64(2) {
				h.Ranks[2+n].Rank++
				h.told(6+n, audit.Ranked{Rank: 5 + n, Prize: "shipping"})
			}
		},
	} {
		h := ranked()
		change(h)
		if found := audit.Answers(h.History); found.Count["P10"] != 0 || found.Total != 1 { // number 3 was answered, and is gone
			t.Errorf("%s: %v", name, found.Shown)
		}
	}
}

func TestP10EveryWrongRankOrPrizeIsFound(t *testing.T) {
	for name, test := range map[string]struct {
		spoil func(h *history)
		text  string
	}{
		"a rank twice": {func(h *history) {
			h.Ranks[3] = h.Ranks[2]
			h.told(7, h.Ranks[2])
		}, "number 7 has rank 4 on the server, and a lower number has rank 4"},
		"a later coupon has a lower rank": {func(h *history) {
			h.Ranks[0].Rank, h.Ranks[1].Rank = 2, 1
			h.told(1, h.Ranks[0])
			h.told(2, h.Ranks[1])
		}, "number 2 has rank 1 on the server, and a lower number has rank 2"},
		"no rank": {func(h *history) {
			h.Ranks[0] = audit.Ranked{}
			h.told(1, audit.Ranked{})
		}, "number 1 has rank 0 on the server"},
		"a rank above the number": {func(h *history) {
			h.Ranks[3].Rank = 8
			h.told(7, h.Ranks[3])
		}, "number 7 has rank 8 on the server, and 3 lower numbers were lost"},
		"more skipped numbers than lost ones": {func(h *history) {
			h.Ranks[3].Rank, h.Lost = 5, nil
		}, "number 7 has rank 5 on the server, and 0 lower numbers were lost"},
		"another prize on the server": {func(h *history) {
			h.Ranks[2].Prize = "drink"
			h.told(6, h.Ranks[2])
		}, `number 6 of rank 4 has the prize "drink", but by the campaign's prizes "shipping"`},
		"a prize of a campaign without prizes": {func(h *history) {
			h.Prizes = nil
		}, `number 1 of rank 1 has the prize "drink", but by the campaign's prizes ""`},
		"another rank in one answer": {func(h *history) {
			h.Claims[0].Rank++
		}, "was answered to the user"},
		"another prize in one answer": {func(h *history) {
			h.Claims[0].Prize = "tea"
		}, `and the prize "tea", on the server it has rank`},
		"another prize in the answer of a lost coupon": {func(h *history) {
			h.told(3, audit.Ranked{Rank: 3, Prize: "drink"})
		}, `number 3 of rank 3 has the prize "drink"`},
	} {
		t.Run(name, func(t *testing.T) {
			h := ranked()
			test.spoil(h)
			if found := audit.Answers(h.History); found.Count["P10"] == 0 || !mentions(found, test.text) {
				t.Errorf("no breach of P10 says %q: %v", test.text, found.Shown)
			}
		})
	}
}
