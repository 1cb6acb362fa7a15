// Package redis is the gate on Redis or Valkey, and its journal.
//
// A Gate decides a batch of claims in one Lua script, which also appends what it
// issued to the campaign's journal, a stream. A Journal drains the streams into
// the ledger. Changes come from the ledger, numbered, and are applied once each.
//
// Each script in lua/ has its contract on top; lua/prelude.lua, sent before each, has what they share; keys.go has
// every key.
//
// # When a call fails
//
// No call is repeated automatically: a script whose answer was lost may have run, and a
// second run would tell the winner that they already hold a coupon. So the outcome is
// unknown, and a user who asks again finds the coupon. See Error.
package redis
