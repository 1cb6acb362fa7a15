// Package firstcome has the types of first-come-first-served coupons, and the one rule that decides every claim.
//
// A campaign has terms: a quantity, a window and a benefit. A claim asks for a
// coupon of a campaign for a user. A gate decides it: [Decide] is the rule, and
// the SQL and Lua gates are translations of it. A coupon is the fact that a user
// was issued a number; the ledger keeps it. Its rank and its prize follow from
// its number and its terms: see [Terms.Rank] and [Terms.PrizeOf].
//
// The package imports the standard library only and does no input or output.
package firstcome
