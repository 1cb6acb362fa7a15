package firstcome_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/firstcome/firstcome"
	"github.com/firstcome/firstcome/test/stage"
)

// TestP11TheNthRankOfAPrizeGetsTheNthEntry reads which entry each number gets, also after a rebuild skipped numbers.
func TestP11TheNthRankOfAPrizeGetsTheNthEntry(t *testing.T) {
	prizes := firstcome.Terms{Quantity: 9, Prizes: []firstcome.Prize{{ID: "drink", Quantity: 2, Imported: true}, {ID: "percent", Quantity: 2}, {ID: "ship", Imported: true}}}
	skipped := prizes.WithSkip(1, 11) // the numbers 2 to 11 have no rank
	for _, c := range []struct {
		terms firstcome.Terms
		want  string
	}{
		{firstcome.Terms{Quantity: 9}, "1:/0 12:/0 13:/0 14:/0 15:/0"},
		{firstcome.Terms{Quantity: 9, Imported: true}, "1:/1 12:/12 13:/13 14:/14 15:/15"},
		{prizes, "1:drink/1 12:ship/8 13:ship/9 14:ship/10 15:ship/11"},
		{skipped, "1:drink/1 12:drink/2 13:/0 14:/0 15:ship/1"},
	} {
		got := ""
		for _, number := range []int64{1, 12, 13, 14, 15} {
			list, entry := c.terms.Entry(number)
			got += fmt.Sprintf(" %d:%s/%d", number, list, entry)
		}
		stage.Same(t, "the entries", " "+c.want, got)
	}
}

// TestCodeListsNeedWhatRanksCanBeReached: the last list needs what the quantity leaves, and all that lowered it.
func TestCodeListsNeedWhatRanksCanBeReached(t *testing.T) {
	drink, ship := firstcome.Prize{ID: "drink", Quantity: 2, Imported: true}, firstcome.Prize{ID: "ship", Imported: true}
	own := firstcome.Prize{ID: "own", Quantity: 3}
	for _, c := range []struct {
		terms firstcome.Terms
		want  []firstcome.CodeList
	}{
		{firstcome.Terms{Quantity: 9}, nil},
		{firstcome.Terms{Quantity: 9, Imported: true}, []firstcome.CodeList{{Needs: 9}}},
		{firstcome.Terms{Quantity: 7, Burnt: 2, Imported: true}, []firstcome.CodeList{{Needs: 9}}},
		{firstcome.Terms{Quantity: 9, Prizes: []firstcome.Prize{drink, own, ship}}, []firstcome.CodeList{{"drink", 2}, {"ship", 4}}},
		{firstcome.Terms{Quantity: 8, Burnt: 1, Prizes: []firstcome.Prize{drink, own, ship}}, []firstcome.CodeList{{"drink", 2}, {"ship", 4}}},
		{firstcome.Terms{Quantity: 9, Prizes: []firstcome.Prize{own, {ID: "rest"}}}, nil},
	} {
		stage.Same(t, "the lists", c.want, c.terms.CodeLists())
		if c.terms.HasImported() != (c.want != nil) {
			t.Errorf("HasImported is %v", c.terms.HasImported())
		}
	}
}

// TestWhetherCodesAreImportedStays: it is set when the campaign is created, and goes with a quantity.
func TestWhetherCodesAreImportedStays(t *testing.T) {
	base := firstcome.Terms{Name: "n", Answer: firstcome.Recorded, Quantity: 9}
	with := func(imported bool, prizes ...firstcome.Prize) firstcome.Terms {
		c := base
		c.Imported, c.Prizes = imported, prizes
		return c
	}
	drink, ship := firstcome.Prize{ID: "drink", Name: "n", Quantity: 2, Imported: true}, firstcome.Prize{ID: "ship", Name: "n"}
	own := drink
	own.Imported = false
	shipped := ship
	shipped.Imported = true
	for what, c := range map[string]struct {
		before, after firstcome.Terms
		ok            bool
	}{
		"the same":                      {with(true), with(true), true},
		"imported from now on":          {with(false), with(true), false},
		"no longer imported":            {with(true), with(false), false},
		"the same prizes":               {with(false, drink, ship), with(false, drink, ship), true},
		"a prize no longer":             {with(false, drink, shipped), with(false, own, shipped), false},
		"no prize any longer":           {with(false, drink, ship), with(false, own, ship), false},
		"a prize from now on":           {with(false, drink, ship), with(false, drink, shipped), false},
		"beside prizes":                 {firstcome.Terms{}, with(true, drink, ship), false},
		"without a quantity":            {firstcome.Terms{}, firstcome.Terms{Name: "n", Answer: firstcome.Recorded, Quantity: firstcome.Unlimited, Imported: true}, false},
		"a new campaign":                {firstcome.Terms{}, with(true), true},
		"a quantity that voids lowered": {with(false, drink, ship), firstcome.Terms{Name: "n", Answer: firstcome.Recorded, Quantity: 1, Burnt: 1, Prizes: []firstcome.Prize{drink, ship}}, true},
	} {
		if err := c.after.CheckChange(c.before, time.Now()); (err == nil) != c.ok {
			t.Errorf("%s: %v", what, err)
		}
	}
}
