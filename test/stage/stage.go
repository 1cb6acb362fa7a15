// Package stage has what the tests of several rooms stand on: a fake gate, journal and ledger, which do what
// test/conform wants of the real ones.
package stage

import (
	"fmt"
	"testing"
	"time"

	"github.com/firstcome/firstcome"
)

// Epoch is when the gate of these coupons issued number 0.
var Epoch = time.Date(2026, 12, 24, 1, 0, 0, 0, time.UTC)

// Coupon returns the coupon that a gate gave a number, to the user named after it.
func Coupon(id firstcome.CampaignID, number int64) firstcome.Coupon {
	return firstcome.Coupon{
		Campaign: id, Number: number, User: firstcome.UserID(fmt.Sprint("user-", number)), Code: fmt.Sprintf("%016d", number),
		IssuedAt: Epoch.Add(time.Duration(number) * time.Millisecond), TermsVersion: 1, Epoch: 1,
	}
}

// Coupons returns the coupons with the numbers from first to last.
func Coupons(id firstcome.CampaignID, first, last int64) (coupons []firstcome.Coupon) {
	for n := first; n <= last; n++ {
		coupons = append(coupons, Coupon(id, n))
	}
	return coupons
}

// Numbers returns the numbers from first to last.
func Numbers(first, last int64) (numbers []int64) {
	for n := first; n <= last; n++ {
		numbers = append(numbers, n)
	}
	return numbers
}

// Must ends a test at an error that is none of what it looks at.
func Must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
