package firstcome_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/test/seed"
)

// threePrizes are the first 100, the next 900, and everybody else.
func threePrizes() firstcome.Terms {
	return firstcome.Terms{Name: "summer", Quantity: 5000, Answer: firstcome.Recorded, Prizes: []firstcome.Prize{
		{ID: "drink", Name: "A drink", Quantity: 100}, {ID: "discount", Name: "20 %", Quantity: 900}, {ID: "shipping", Name: "Free shipping"},
	}}
}

func TestTheRankSaysThePrize(t *testing.T) {
	terms := threePrizes()
	for rank, want := range map[int64]int{1: 0, 100: 0, 101: 1, 1000: 1, 1001: 2, firstcome.MaxQuantity: 2} {
		if got := terms.PrizeOf(rank); got != want {
			t.Errorf("rank %d has prize %d", rank, got)
		}
	}
	for n, want := range [][2]int64{{1, 100}, {101, 1000}, {1001, firstcome.Unlimited}} {
		if from, to := terms.Ranks(n); from != want[0] || to != want[1] {
			t.Errorf("prize %d has the ranks %d to %d", n, from, to)
		}
	}
	if none := (&firstcome.Terms{}); none.PrizeOf(1) != -1 {
		t.Error("terms without prizes have one")
	}
}

// TestRanksFollowTheNumbersOfManyEpochs ends epochs at random: some had given their last number, some none at all. It gives each number a rank by
// counting.
func TestRanksFollowTheNumbersOfManyEpochs(t *testing.T) {
	random := seed.Rand(t)
	for range 200 {
		var terms firstcome.Terms
		var numbers []int64 // by rank, from 1
		last := int64(0)
		for range 1 + random.IntN(5) {
			for range random.IntN(4) {
				last++
				numbers = append(numbers, last)
			}
			if through := last + random.Int64N(5); through > last {
				terms = terms.WithSkip(last, through)
				for number := last + 1; number <= through; number++ {
					if got := terms.Rank(number); got != int64(len(numbers)) {
						t.Fatalf("%+v: the skipped number %d has the rank %d after %v", terms.Skips, number, got, numbers)
					}
				}
				last = through
			}
		}
		for range 3 { // of the last epoch
			last++
			numbers = append(numbers, last)
		}
		for n, number := range numbers {
			if rank := terms.Rank(number); rank != int64(n)+1 {
				t.Fatalf("%+v: number %d has the rank %d instead of %d", terms.Skips, number, rank, n+1)
			}
			if got := terms.NumberOf(int64(n) + 1); got != number {
				t.Fatalf("%+v: rank %d has the number %d instead of %d", terms.Skips, n+1, got, number)
			}
		}
	}
}

func TestAnEarlierTermsSkipsStayWhenALaterEpochEnds(t *testing.T) {
	first := threePrizes().WithSkip(3, 10)
	second := first.WithSkip(10, 20)
	third := first.WithSkip(12, 20)
	if len(first.Skips) != 1 || second.Rank(21) != 4 || third.Rank(21) != 6 || first.Rank(11) != 4 {
		t.Errorf("%+v, %+v, %+v", first.Skips, second.Skips, third.Skips)
	}
}

func TestPrizesThatMayNotStandNameTheField(t *testing.T) {
	many := func(n int) (all []firstcome.Prize) {
		for i := range n {
			all = append(all, firstcome.Prize{ID: firstcome.PrizeID(strings.Repeat("p", i+1)), Name: "a prize", Quantity: 1})
		}
		all[n-1].Quantity = 0
		return all
	}
	for name, test := range map[string]struct {
		edit func(*firstcome.Terms)
		want string // the field; empty for none
	}{
		"three":                    {func(*firstcome.Terms) {}, ""},
		"none":                     {func(t *firstcome.Terms) { t.Prizes = []firstcome.Prize{} }, "prizes"},
		"16":                       {func(t *firstcome.Terms) { t.Prizes = many(16) }, ""},
		"17":                       {func(t *firstcome.Terms) { t.Prizes = many(17) }, "prizes"},
		"one":                      {func(t *firstcome.Terms) { t.Prizes = t.Prizes[2:] }, ""},
		"an id twice":              {func(t *firstcome.Terms) { t.Prizes[2].ID = "drink" }, "prizes[2].id"},
		"an id of another form":    {func(t *firstcome.Terms) { t.Prizes[1].ID = "Drink" }, "prizes[1].id"},
		"no name":                  {func(t *firstcome.Terms) { t.Prizes[1].Name = "" }, "prizes[1].name"},
		"a long name":              {func(t *firstcome.Terms) { t.Prizes[1].Name = strings.Repeat("n", 201) }, "prizes[1].name"},
		"no quantity":              {func(t *firstcome.Terms) { t.Prizes[1].Quantity = 0 }, "prizes[1].quantity"},
		"a negative quantity":      {func(t *firstcome.Terms) { t.Prizes[1].Quantity = -1 }, "prizes[1].quantity"},
		"the last with a quantity": {func(t *firstcome.Terms) { t.Prizes[2].Quantity = 4000 }, "prizes[2].quantity"},
		"the sum":                  {func(t *firstcome.Terms) { t.Quantity = 1000 }, ""},
		"below the sum":            {func(t *firstcome.Terms) { t.Quantity = 999 }, "quantity"},
		"no bound":                 {func(t *firstcome.Terms) { t.Quantity = firstcome.Unlimited }, ""},
		"a benefit beside":         {func(t *firstcome.Terms) { t.Benefit = []byte(`"a drink"`) }, "coupon.benefit"},
		"the benefit null beside":  {func(t *firstcome.Terms) { t.Benefit = []byte(`null`) }, ""},
		"16 KiB of benefits": {func(t *firstcome.Terms) {
			t.Prizes[0].Benefit, t.Prizes[2].Benefit = make([]byte, 8<<10), make([]byte, 8<<10)
		}, ""},
		"more of them, by one byte": {func(t *firstcome.Terms) {
			t.Prizes[0].Benefit, t.Prizes[2].Benefit = make([]byte, 8<<10), make([]byte, 8<<10+1)
		}, "prizes"},
		"an unlimited prize quantity": {func(t *firstcome.Terms) { t.Prizes[0].Quantity = firstcome.Unlimited }, "prizes[0].quantity"},
	} {
		terms := threePrizes()
		test.edit(&terms)
		err := terms.Check()
		var wrong *firstcome.FieldError
		if test.want == "" && err != nil || test.want != "" && (!errors.As(err, &wrong) || wrong.Field != test.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestOnlyIDsOrderAndQuantitiesMovePrizes(t *testing.T) {
	for name, test := range map[string]struct {
		edit  func(*firstcome.Terms)
		moves bool
	}{
		"nothing":    {func(*firstcome.Terms) {}, false},
		"a name":     {func(t *firstcome.Terms) { t.Prizes[0].Name = "Tea" }, false},
		"a benefit":  {func(t *firstcome.Terms) { t.Prizes[0].Benefit = []byte(`1`) }, false},
		"an id":      {func(t *firstcome.Terms) { t.Prizes[0].ID = "tea" }, true},
		"a quantity": {func(t *firstcome.Terms) { t.Prizes[0].Quantity++ }, true},
		"the order":  {func(t *firstcome.Terms) { t.Prizes[0], t.Prizes[1] = t.Prizes[1], t.Prizes[0] }, true},
		"one less":   {func(t *firstcome.Terms) { t.Prizes = t.Prizes[1:] }, true},
		"none":       {func(t *firstcome.Terms) { t.Prizes = nil }, true},
	} {
		terms := threePrizes()
		test.edit(&terms)
		if got := terms.MovesPrizes(threePrizes()); got != test.moves {
			t.Errorf("%s: %t", name, got)
		}
	}
}
