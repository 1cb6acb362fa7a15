// Package sim lives through schedules: what the Issuer, Answerer, Waiter, Recorder, Changer, Machine and Operator of some nodes do
// together, as they are, against models of gate, journal and ledger, while connections, nodes, clocks and the gate's server fail. Then it
// holds everything that anybody was told, and the ledger, against the promises.
//
// # A schedule
//
// A seed makes a town: one campaign of a few coupons, a few users, up to two operators, up to three nodes, and its weather, which is how
// much fails. It all lives in a bubble of testing/synctest, where time stands still while anybody has something to do. That
// package fakes time and not the order in which goroutines run. So each question that a node asks is an event that waits, and so is
// each answer. When everybody waits for something, the seed says what happens next: an event, a fault, or time that passes. So what races
// in a real fleet is here an order of events, a seed has always the same order, and the trace says it in plain words.
//
// These fail, as the weather has it:
//
//	a question is lost, and the node hears that nobody knows what became of it
//	a question arrives late, after the node heard that, or arrives twice
//	it is answered, and the answer is lost; also what a user or an operator is told
//	a node crashes: its memory is gone, and of what it had asked some may arrive yet
//	a node stands still: time goes on, what it had asked arrives, and it hears nothing; now and then for so long that another node
//	takes over what it had begun
//	the gate's clock jumps, by up to two seconds either way
//	a user waits no longer
//	the gate's server restarts, loses the campaign's keys, is emptied, or goes back to an older state, as a replica that lagged or a file
//	that was cut: in every other town it syncs before it answers and has no replica, and does not go back
//	a replica takes its place, and some nodes still reach the old server, which goes on until it follows the new one; or the
//	address of the gate leads back to it for all of them
//
// Nodes rebuild the gate then, by themselves or because its owner orders it: each node the one of two servers that it reaches.
//
// In towns of a kind of their own the ledger is put back to an earlier state, as one does who restores a backup: all nodes stop before, and look
// back when they start. Where the gate has more than that ledger its owner orders a reconcile. Now and then the gate is gone too. In such a town
// no question is lost, and nothing else fails between the two: whatever comes late would come to another ledger.
//
// In every other town there is a waiting line: operators set its pace, change it and take it away, users join, ask for their place and leave,
// and each node serves whoever is next.
//
// In towns of another kind the line is logged in a topic, which does not answer for a while, is made again, or lacks its oldest records; one of the
// nodes may know none. The gate's server loses more then, and people are in line for long. Some interleavings are scripts instead (script.go): each
// says what happens in which order, what is kept back meanwhile, and leaves the rest to some seeds.
//
// In the end nothing fails any more, and a schedule has to come to rest: everybody claims once more, the journal is empty, and the gate has
// every change.
//
// # The models
//
// gate.go decides, line.go keeps who waits, changes.go applies what operators changed, journal.go hands out what was issued; ledger.go keeps it and orders.go
// numbers what operators want; rebuild.go and ledger_rebuild.go are the steps of a rebuild on either side, and outage.go is what the gate's
// server may lose. Each is about a page, and passes test/conform, as the real ones do, but for the rebuild, which has no suite: what a step
// does is what the scripts and the SQL of that step say. topic.go keeps the log of lines. old.go has the server whose place a replica took, and reconcile.go the steps in which a ledger that was
// put back takes over what the gate has.
//
// # The promises
//
// P1 to P9 are checked by what the gate did and what people were told (history.go, history_line.go, promises.go), and by what the ledger has
// in the end (oracle.go). What a rebuild loses has to be what nobody was told to be recorded, was in no journal that could be read, and was
// not at a server that keeps all. Of two servers the one in the ledger's epoch is held against them all. Of the other only this is: nobody
// else is given its numbers, what is not recorded when its epoch ends is lost, and a node that knows that it has ended tells nobody a number
// of it. Behind a reconcile everybody has what they were told, and no number is given twice. Where ledger and gate both went back, what
// neither of them has is forgotten, and the rest is held against them. A test plants bugs, one after the other, and wants each to be found.
//
// A place in a line that is logged is held against more, whatever the gate's server and the ledger lose (history_log.go): whoever was told it is in
// line behind each recovery, with that ticket and in that order, unless their ticket ended; nobody is who was told that they left, whose
// generation was sent away as the ledger knows, who was served as the ledger knows, or whom an earlier recovery did not find; nobody is twice,
// and no ticket is two users'. A rebuild that goes without the log, as a reconcile does, has who was in line at the frozen gate instead. What a
// deposed server tells a node that is cut off is a limit, so no such town has two servers.
//
// The bugs of such lines have the numbers of these invariants:
//
//	1  a place is told behind the append and the check that its epoch decides
//	2  the records of an epoch count from where it begins to where the next one does; of one that the ledger forgot, from the first
//	3  of an epoch the highest generation counts; if it began with that, so does the epoch before; none that has ended by the ledger
//	4  of a user the highest ticket counts, unless it was given back, or a coupon ended it
//	5  of two users with one ticket the one of the later epoch keeps it
//	6  new epochs, generations and tickets are above all that ledger and log have
//	7  where an epoch begins is noted with it
//	8  a node without a log tells nobody a place
//
// A schedule that breaks a promise says its seed, the command that lives through it again, and its trace.
package sim
