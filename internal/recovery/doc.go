// Package recovery decides what becomes of a remote gate that may have forgotten, and of a campaign that is over: the gate is verified, rebuilt,
// reconciled or retired.
//
// # The states of a campaign at its gate
//
// Each row is a step from one state to the next. While a step waits, or if its node dies there, claims get what the column "meanwhile" says.
// The next owner begins a rebuild from its first step again.
//
//	state     event                          guard                           step                        fence                               meanwhile                          next
//	fine      another run, or torn keys      the server has our name         note it                     –                                   503                                suspect
//	suspect   a look                         both runs durable, all agrees   verify                      run, epoch, version, last number    503                                fine
//	suspect   a look                         the gate is not ahead           begin                       the row's attempt, for 10 s         the gate decides, nobody records   begun
//	begun     –                              the keys fit twice              freeze                      attempt                             503                                frozen
//	frozen    the gate is ahead              the ledger read again           refuse                      –                                   503                                older
//	frozen    –                              –                               empty, load, carry          attempt, also in the keys' names    503                                loaded
//	loaded    the ledger's mark moved        20 times at most                –                           –                                   503                                frozen
//	loaded    250 ms since the freeze        the same mark                   end the epoch               row lock, attempt                   503, in the next epoch             ended
//	ended     –                              the run and the counts          put                         attempt                             503; the next owner ends one more  fine
//	older     an operator's order            attempt above the gate's        freeze, adopt, bring back   a pending change                    503, repeatable                    frozen
//	stale     an operator's order, or Auto   all nodes reach one server      begin                       attempt                             503                                begun
//	nameless  an operator's order, or Auto   campaigns name one gate         name                        SET NX                              503                                suspect
//	over      seven days                     drained, not being rebuilt      mark, later forget          version, epoch, last number         the ledger answers                 retired
//
// # Why the order is what it is
//
//	begin before freeze               an owner without an attempt; recorders that add while the ledger is loaded
//	freeze before compare             a ledger that is older than the gate is loaded into it
//	freeze before empty               a coupon is decided after the last page of the journal
//	Redis's journal before the topic  a relay moves an entry in between
//	adopt before bring back           a user has two coupons in force
//	empty before load                 a recorded coupon is no holder
//	load before carry                 a user who was served is in line again
//	250 ms before end                 a node repeats "sold out" while lost stock is back
//	the same mark in end              a recording, a void or a dead letter comes between load and end
//	end before put                    a gate is in an epoch that the ledger does not have
//	note as created before put        an id is used twice after a restored backup
//	attempt, run and counts in put    an owner wakes up; the keys are another server's; half is loaded
//	two seconds before verified       a node was told more by a gate whose file was cut cleanly
//
// Planted bugs in test/sim and test/mutants break each of these orders, and are found. Two orders cannot be broken: a freeze needs the number of
// its attempt, and a gate empties no journal that this attempt has not frozen.
package recovery
