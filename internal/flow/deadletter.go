package flow

import "github.com/firstcome/firstcome"

// A DeadLetter is what the ledger will never take, and why: a coupon that it
// refuses, or garbage.
type DeadLetter struct {
	Coupon  firstcome.Coupon // of a coupon; its number is 0 for garbage
	Garbage Garbage          // of garbage
	Cause   string
}
