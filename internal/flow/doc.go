// Package flow moves claims one way: from the callers through the Issuer, which
// gathers them into batches, to a gate, which decides them.
//
// # The queue of a campaign
//
// A queue is idle until a claim arrives; then it drains: it takes what waits, in
// arrival order, as one batch to the gate, and while that batch is there the
// next claims gather. It is idle again when nothing waits. So there is one batch
// in flight per campaign, no timer, and no goroutine for an idle campaign.
//
// # What a node may answer by itself
//
// A gate's decision carries a lease: how long a node may repeat it. A node
// repeats a refusal only to users who, by the holders filter, surely hold no
// coupon, and a coupon only to its user. Every lease ends before a change of the
// campaign begins (Issuer.Change), so nobody is refused stock that came back.
//
// # The life of a number
//
// Where a remote gate decides, a number goes one way, and each arrow has one owner:
//
//	        Decider.Claim             Recorder                operator
//	(not given) ────▶ in the journal ────▶ recorded ◀────────────┐
//	                     │     │                        replayed │
//	                     │     └─────────▶ dead letter ──────────┤
//	                     │ the gate lost it              voided  │
//	                     └───────────────▶ lost                  ▼
//
// A recorder brings what is in the journal to the ledger, which records it or buries it as a dead
// letter. Then one script of the gate takes the entry out of the journal, flags every dead letter of which it has not heard at
// its holder, and raises drained_through: every number up to it has left the journal
// for good. So a user who holds a drained number without a flag has a recorded coupon. For any other
// drained number the ledger's answer is final: it alone knows what became of a dead letter, and a flag
// is never removed.
//
// # Who tries again
//
// A Recorder drains every Source, and its retries own all waits of what is drained: how long each is, and how often something failed. What
// fails decides who waits:
//
//	one campaign: its row is locked, another node must    the campaign rests, and the others go on
//	take it, the gate lost it, or the ledger failed at it
//	the source, such as Redis                             Watch ends, and begins again after a wait
//	the ledger, so often that its breaker is open         each campaign that failed waits its turn, with its batch in hand
//
// The breaker is no second back-off: it lets one call a second through to a ledger that is down. The calls after it do not
// become campaigns that rest, because a source would then read all their entries again and again, and other recorders would
// take them over, while nobody can record anything. A campaign that has not failed is let through an open breaker: a few with
// damaged rows may have opened it. Those that failed have workers of their own, so that their waits keep no worker from others.
package flow
