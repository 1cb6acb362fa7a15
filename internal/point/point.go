// Package point names the points at which a process hands over work: a claim to its caller, a batch to the ledger, a change to the gate. A process
// that dies or hangs at one of them leaves work half done, for others to finish.
//
// A program that is built with the tag faultpoints ends or stops itself at a point, according to the variable FAULTPOINT (see Reach there). Without
// the tag, Reach does nothing, and the compiler removes it.
package point

// A Point is a place for a fault.
type Point string

// The points, in the order in which a claim, a change, a rebuild, a line and a fact pass them. docs/faults.md says what each fault there must not break.
const (
	Decided Point = "decided" // a claim is decided, its caller is not answered yet

	Taken     Point = "taken"     // a recorder has entries of a journal, the ledger does not
	Committed Point = "committed" // the ledger has a batch, its recorder has not reported that
	Given     Point = "given"     // the ledger and the journal both have the entries
	Settled   Point = "settled"   // the gate has been told

	Relayed Point = "relayed" // the topic and the journal both have the entries

	Numbered Point = "numbered" // a change is in the ledger, not at the gate
	Applied  Point = "applied"  // the gate has a change, the ledger does not know that

	Begun    Point = "rebuild-begun"    // an attempt has the campaign's row, the gate still decides
	Frozen   Point = "rebuild-frozen"   // the gate decides nothing, its journal has entries
	Folded   Point = "rebuild-read"     // the line's log is read
	Emptied  Point = "rebuild-emptied"  // the ledger has what the journal had
	Loaded   Point = "rebuild-loaded"   // new keys are beside the old ones
	Waited   Point = "rebuild-waited"   // the leases of refusals have ended
	Ended    Point = "rebuild-ended"    // the ledger is in the next epoch, the gate is not
	Switched Point = "rebuild-switched" // the gate is too, and the operator does not know

	Adopted Point = "reconcile-adopted" // a restored ledger has the gate's terms, and not its coupons
	Brought Point = "reconcile-brought" // it has the holders' coupons, the journal has entries

	Joined   Point = "line-joined"   // the gate issued a ticket or took one back, and the line's log does not have that
	Appended Point = "line-appended" // the log has it, and the user was not told
	Served   Point = "served"        // people in line have coupons, the dispatcher does not know

	Published Point = "published" // a topic has facts, the ledger has not noted that
)
