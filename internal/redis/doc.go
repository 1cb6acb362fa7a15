// Package redis is the gate on Redis or Valkey, and its journal.
//
// A Gate decides a batch of claims in one Lua script, which also appends what it
// issued to the campaign's journal, a stream. A Journal drains the streams into
// the ledger. Changes come from the ledger, numbered, and are applied once each.
//
// The scripts in lua/ have their contracts on top, and begin with lua/prelude.lua, which says what they have in common; keys.go has every key.
//
// # When a call fails
//
// Nothing is sent twice by itself: a script whose answer was lost may have run, and
// running it again would tell the winner that somebody (they themselves) already holds a
// coupon. So the call is unknown, and a user who asks again finds the coupon. See Error.
package redis
