// Package recovery decides what happens to a campaign whose remote gate may have lost data, and to a campaign that has ended: its gate is
// verified, rebuilt, reconciled or retired.
//
// # The states of a campaign at its gate
//
// Each row is a transition. "Claims" is the answer to claims during the step, and until the next node takes over if this node dies in it. A node
// that takes over a rebuild starts it again from the row "begin".
//
//	state     event                               guard                               step                        fenced by                            claims                                next
//	fine      the server's run differs, or        the server has the gate's name      note it                     –                                    503                                   suspect
//	          keys are missing
//	suspect   a look at the campaign              both runs durable, all agrees       verify                      run, epoch, version, last number     503                                   fine
//	suspect   a look at the campaign              the gate is not ahead               begin                       attempt in the ledger's row, 10 s    decided if possible; not recorded     begun
//	begun     –                                   memory for a second copy of keys    freeze                      attempt                              503                                   frozen
//	frozen    the gate is ahead                   still so in a later ledger read     refuse                      –                                    503                                   older
//	frozen    –                                   –                                   empty, load, carry          attempt, also in the keys' names     503                                   loaded
//	loaded    the ledger's Mark has changed       fewer than 20 times so far          –                           –                                    503                                   frozen
//	loaded    250 ms have passed since freeze     the Mark is unchanged               end the epoch               row lock, attempt                    503, from here in the next epoch      ended
//	ended     –                                   same run, full count of holders     put                         attempt                              503; a new owner ends another epoch   fine
//	older     an operator's order                 attempt above the gate's            freeze, adopt, bring back   a pending change                     503, repeatable                       frozen
//	stale     an operator's order, or Auto        all nodes reach one server          begin                       attempt                              503                                   begun
//	nameless  an operator's order, or Auto        all campaigns name one gate         name                        SET NX                               503                                   suspect
//	over      seven days have passed              drained, not being rebuilt          mark, later forget          version, epoch, last number          the ledger answers                    retired
//
// # Why the steps have this order
//
// The right column is the fault that would be possible in the other order.
//
//	begin before freeze               an owner without an attempt; recorders add coupons while the ledger is loaded
//	freeze before compare             a ledger that is older than the gate is loaded into the gate
//	freeze before empty               the gate issues a coupon after the last page of the journal was read
//	Redis's journal before the topic  a relay moves an entry from the one to the other in between, and neither reading sees it
//	adopt before bring back           a user has two coupons in force
//	empty before load                 a recorded coupon is missing among the holders
//	load before carry                 a user who has been served is in line again
//	250 ms before end                 a node repeats "sold out" although stock of lost numbers has returned
//	same Mark in end                  a recording, a void or a dead letter happens between load and end
//	end before put                    a gate is in an epoch that the ledger does not have
//	note the id as used before put    after a restored backup, the id is given to another campaign
//	attempt, run and counts in put    a stalled owner resumes; the keys are on another server; half is loaded
//	two seconds before verified       Redis lost its last writes and agrees with the ledger; only another node knows a higher number, and
//	                                  had no time to begin a rebuild
//
// Planted bugs in test/sim and test/mutants break each of these orders, and tests find them. Two orders cannot be broken: a freeze needs the number
// of its attempt, and a gate empties only a journal that this attempt has frozen.
package recovery
