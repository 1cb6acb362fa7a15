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

// TestAnExpiryIsAfterTheOpeningAndNotPast has each order of opening, expiry and now, at the first time that is allowed and just before it.
func TestAnExpiryIsAfterTheOpeningAndNotPast(t *testing.T) {
	terms := func(opensAt, until time.Time) firstcome.Terms {
		return firstcome.Terms{Name: "summer", Quantity: 1, Answer: firstcome.Recorded, OpensAt: opensAt, ValidUntil: until}
	}
	never, after := time.Time{}, opens.Add(time.Microsecond)
	for name, test := range map[string]struct {
		before, terms firstcome.Terms
		now           time.Time
		good          bool
	}{
		"at the opening":                   {terms(never, never), terms(opens, opens), opens.Add(-time.Hour), false},
		"just after the opening":           {terms(never, never), terms(opens, after), opens.Add(-time.Hour), true},
		"now":                              {terms(never, never), terms(never, opens), opens, false},
		"just after now":                   {terms(never, never), terms(never, after), opens, true},
		"never":                            {terms(never, never), terms(opens, never), closes, true},
		"past, as before":                  {terms(never, after), terms(never, after), closes, true},
		"past, and another than before":    {terms(never, after), terms(never, after.Add(time.Second)), closes, false},
		"an opening that passes an expiry": {terms(never, after), terms(closes, after), opens, false},
	} {
		err := test.terms.CheckChange(test.before, test.now)
		var wrong *firstcome.FieldError
		if test.good != (err == nil) || !test.good && (!errors.As(err, &wrong) || wrong.Field != "coupon.valid_until") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestInstantsHaveBounds has times at the limits of the wire, the columns and the gates.
func TestInstantsHaveBounds(t *testing.T) {
	for at, good := range map[string]bool{
		"0001-01-01T00:00:00.000001Z": false, "1582-10-14T00:00:00Z": false, "1969-12-31T23:59:59.999999Z": false,
		"1970-01-01T00:00:00Z": true, "1970-01-01T00:00:00+09:00": false, "2255-06-05T23:47:34.740993Z": true, "2318-01-01T00:00:00Z": true,
		"9999-12-31T23:59:59.999999Z": true, "9999-12-31T23:59:59.999999-00:01": false,
	} {
		instant, err := time.Parse(time.RFC3339Nano, at)
		if err != nil {
			t.Fatal(err)
		}
		for field, set := range map[string]func(*firstcome.Terms){
			"opens_at":           func(t *firstcome.Terms) { t.OpensAt = instant },
			"closes_at":          func(t *firstcome.Terms) { t.ClosesAt = instant },
			"coupon.valid_until": func(t *firstcome.Terms) { t.ValidUntil = instant },
		} {
			terms := firstcome.Terms{Name: "summer", Quantity: 1, Answer: firstcome.Recorded}
			set(&terms)
			err := terms.Check()
			var wrong *firstcome.FieldError
			if good != (err == nil) || !good && (!errors.As(err, &wrong) || wrong.Field != field) {
				t.Errorf("%s %s: %v", field, at, err)
			}
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
