// Package record takes coupons from a journal to the ledger. A remote gate issues coupons into its journal; a Recorder drains each Source.
//
// # The life of a number
//
// If a remote gate decides, a number goes one way, and each arrow has one owner:
//
//	         Decider.Claim             Recorder               operator
//	(not issued) ───▶ in the journal ────▶ recorded ◀────────────┐
//	                     │     │                        replayed │
//	                     │     └─────────▶ dead letter ──────────┤
//	                     │ the gate lost it              voided  │
//	                     └───────────────▶ lost                  ▼
//
// A recorder takes coupons from the journal to the ledger, which records each or keeps it as a dead letter. Then one script of the gate removes the
// entry from the journal, flags the holders of dead letters that it did not know, and raises drained_through: every number up to it has left the
// journal permanently. So a user who holds a drained number without a flag has a recorded coupon. For any other drained number the ledger's answer is
// final: only the ledger knows what an operator did with a dead letter, and a flag is never removed.
//
// # Retries
//
// A Recorder drains every Source, and its retries type owns all waits: how long each is, and how often a campaign failed. The cause of a failure
// decides what waits:
//
//	one campaign: its row is locked, another node must    the campaign rests, and the others continue
//	take it, the gate lost it, or the ledger failed at it
//	the source, such as Redis                             Watch ends, and begins again after a wait
//	the ledger, so often that its breaker is open         each campaign that failed waits for the breaker, and keeps its batch
//
// The breaker is no second back-off. It lets one call a second through to a ledger that is down. The other calls do not make their campaigns rest.
// Otherwise a source would read all entries of these campaigns repeatedly, and other recorders would take them over, while nobody can record them. A
// campaign that has not failed passes an open breaker, because a few campaigns with damaged rows may have opened it. Campaigns that failed have
// workers of their own, so that their waits keep no worker from the others.
package record
