package firstcome_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/firstcome/firstcome"
)

func TestTermsThatMayNotStandNameTheField(t *testing.T) {
	tests := map[string]func(*firstcome.Terms){
		"":                 func(*firstcome.Terms) {},
		"name":             func(t *firstcome.Terms) { t.Name = "" },
		"quantity":         func(t *firstcome.Terms) { t.Quantity = -1 },
		"closes_at":        func(t *firstcome.Terms) { t.ClosesAt = t.OpensAt },
		"answer":           func(t *firstcome.Terms) { t.Answer = "later" },
		"coupon.benefit":   func(t *firstcome.Terms) { t.Benefit = []byte(strings.Repeat("1", firstcome.MaxBenefit+1)) },
		"coupon.valid_for": func(t *firstcome.Terms) { t.ValidFor, t.ValidUntil = time.Hour, closes },
	}
	for field, edit := range tests {
		terms := firstcome.Terms{Name: "summer", OpensAt: opens, ClosesAt: closes, Answer: firstcome.Recorded, Benefit: []byte(`{}`)}
		edit(&terms)
		err := terms.Check()
		var wrong *firstcome.FieldError
		if field == "" && err != nil || field != "" && (!errors.As(err, &wrong) || wrong.Field != field) {
			t.Errorf("%q: %v", field, err)
		}
	}
}

func TestQuantitiesHaveBounds(t *testing.T) {
	for quantity, good := range map[int64]bool{
		0: true, 1: true, firstcome.MaxQuantity: true, firstcome.Unlimited: true,
		-1: false, firstcome.MaxQuantity + 1: false, firstcome.Unlimited - 1: false,
	} {
		terms := firstcome.Terms{Name: "summer", Quantity: quantity, Answer: firstcome.Recorded}
		if err := terms.Check(); (err == nil) != good {
			t.Errorf("%d: %v", quantity, err)
		}
	}
}

func TestACouponExpiresByItsTerms(t *testing.T) {
	for name, test := range map[string]struct {
		terms firstcome.Terms
		want  time.Time
	}{
		"never":     {firstcome.Terms{}, time.Time{}},
		"at a time": {firstcome.Terms{ValidUntil: closes}, closes},
		"after":     {firstcome.Terms{ValidFor: time.Hour}, opens.Add(time.Hour)},
	} {
		if got := test.terms.ExpiresAt(opens); !got.Equal(test.want) {
			t.Errorf("%s: got %v, want %v", name, got, test.want)
		}
	}
}
