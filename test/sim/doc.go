// Package sim runs simulated schedules. The Issuer, Answerer, Waiter, Recorder, Changer, Machine and Operator of some nodes run as they are in the
// product, on models of gate, journal and ledger, while connections, nodes, clocks and the gate's server fail. Then all answers to users and operators, and the
// ledger, are checked against the promises.
//
// # A schedule
//
// A seed makes a town: one campaign of a few coupons, a few users, up to two operators, up to three nodes, and its weather, which is how often things
// fail. A town runs in a bubble of testing/synctest, where time passes only while all goroutines wait. That package controls time, but not the order in
// which goroutines run. So each call of a node is an event that waits, and so is each answer. When all goroutines wait, the seed decides what happens next:
// an event, a fault, or the passing of time. A race in a real fleet is here an order of events. A seed always has the same order, and the trace describes it
// in plain words.
//
// The weather has these faults:
//
//	a call is lost, and the node gets an error with an unknown result
//	a call arrives late, after the node got that error, or arrives twice
//	a call is answered, and the answer is lost; so is an answer to a user or an operator
//	a node crashes: its memory is gone, and some of its calls may still arrive
//	a node stalls: time passes, its calls arrive, and it gets no answers; sometimes for so long that another node takes over its work
//	the gate's clock jumps, by up to two seconds either way
//	a user stops waiting
//	the gate's server restarts, loses the campaign's keys, is emptied, or goes back to an earlier state, like a replica that lagged or a truncated
//	file; in every other town it syncs before it answers, has no replica, and does not go back
//	a replica is promoted, and some nodes still reach the old server, which continues until it follows the new one; or the address of
//	the gate leads back to the old server for all nodes
//
// Nodes then rebuild the gate, by themselves or because its owner orders it: each node the one of two servers that it reaches.
//
// There are four kinds of towns:
//
//   - In every other town there is a waiting line. Operators set its pace, change it and remove it, users join, ask for their place and leave, and each node
//     serves the next users.
//   - In some towns the line is logged in a topic, which does not answer for a while, is recreated, or loses its oldest records. One of the nodes may have no
//     log. The gate's server loses data more often, and users are in line for long.
//   - In some towns the ledger is restored to an earlier state, as from a backup: all nodes stop before, and compare ledger and gate when they start. If the gate
//     is ahead, its owner orders a reconcile. Sometimes the gate is gone too. In such a town no call is lost, and nothing fails between stop and start, because a
//     late call would reach another ledger.
//   - Some interleavings are scripts (script.go). Each fixes the order of some events and leaves the rest to some seeds.
//
// At the end nothing fails, and a schedule must come to rest: each user claims again, the journal is empty, and the gate has every change.
//
// # The models
//
//	gate.go, line.go                      a gate, whose campaigns are decided by stage.Course
//	journal.go                            the gate's journal
//	ledger.go, orders.go                  a ledger that records coupons, and numbers operators' changes
//	rebuild.go, ledger_rebuild.go         the steps of a rebuild at the gate and in the ledger
//	reconcile.go                          the steps with which a restored ledger adopts the gate's state
//	outage.go, old.go                     what the gate's server may lose, and a server that a promoted replica has replaced
//	topic.go                              the topic with the log of the line
//
// Each is about a page, and passes test/conform as the real ones do. The rebuild has no suite: its steps do what the scripts and the SQL do.
//
// # The promises
//
// P1 to P10 are checked by what the gate did and by the answers (history.go, history_line.go, prizes.go, promises.go), and by the ledger at the end (oracle.go). A
// number may be lost in a rebuild only if no user was told that it is recorded, it was in no journal that could be read, and it was not at a server that
// keeps all its data.
//
// If there are two servers, the one in the ledger's epoch must keep all promises. For the other, three things must hold: its numbers are issued to no
// other user, its unrecorded numbers are lost when its epoch ends, and a node that knows that the epoch has ended answers with no number of it.
//
// After a reconcile every user has what they were told, and no number is issued twice. If ledger and gate both went back, what neither has is
// forgotten, and the rest must keep the promises. Tests plant bugs, one at a time, and each must be found.
//
// A place in a line with a log must keep more promises, whatever the gate's server and the ledger lose (history_log.go). A user who was told a place is in
// line after each recovery, with the same ticket and in the same order, unless the ticket ended. These users are not in line: those who were told that they left,
// those whose generation was sent away or who were served, as the ledger knows, and those whom an earlier recovery did not find. No user is in line twice,
// and no ticket belongs to two users. After a rebuild without the log, as in a reconcile, the users of the frozen gate's line are in line instead. The
// answers of a replaced server to a node that is cut off are a known limit, so no such town has two servers.
//
// The bugs of such lines are numbered by these invariants:
//
//	1  a user is told a place only after the append and the check that its epoch decides
//	2  the records of an epoch count from its beginning to that of the next epoch; if the ledger forgot the beginning, from the first record
//	3  the highest generation of an epoch counts; if the epoch began with it, so does the epoch before; but not if the ledger knows it as ended
//	4  the highest ticket of a user counts, unless the user gave it back or a coupon ended it
//	5  if two users have one ticket, the user of the later epoch keeps it
//	6  new epochs, generations and tickets are above all those of ledger and log
//	7  the offset at which an epoch begins is noted together with the epoch
//	8  a node without a log tells no user a place
//
// A schedule that breaks a promise prints its seed, the command that repeats it, and its trace.
package sim
