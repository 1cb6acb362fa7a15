// Package redis is the gate on Redis or Valkey, and its journal.
//
// Open returns a Redis, which has a type for each job over one connection. Its Gate decides a batch of claims in one Lua script, which also
// appends the issued coupons to the campaign's journal, a stream; it applies the numbered changes of the ledger, once each. A Line serves the
// waiting lines. Consumers of the Journal hand the coupons to recorders. A Recovery does what package recovery orders. An Inspector only reads.
//
// In lua/ is a script for each act, with its contract on top. Go sends each after the parts that it shares with others: prelude.lua (keys,
// arguments, and when a script must do nothing), line.lua (the waiting line), state.lua (a campaign, and what the time means for it) and
// decide.lua (from the first look to the answer of a script that issues coupons). keys.go has every key.
//
// # When a call fails
//
// No call is repeated automatically: a script whose answer was lost may have run, and a
// second run would tell the winner that they already hold a coupon. So the outcome is
// unknown, and a user who asks again finds the coupon. See Error.
package redis
