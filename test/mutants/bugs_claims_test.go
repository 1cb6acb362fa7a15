package mutants_test

// claimsBugs are bugs in issuing, in recording and in lines, and at the ledger.
var claimsBugs = []mutant{
	{
		bug:  "a COMMIT that waits for a standby is cancelled when its caller gives up",
		file: "internal/sqldb/postgres.go", old: "connector = newPostgreSQLConnector(connector)", new: "_ = newPostgreSQLConnector(connector)",
		pkg: "./internal/ledger", test: "TestF58NobodyReadsACouponBeforeTheStandbyHasIt",
	},
	{
		bug:  "each batch of claims of a line writes every index of its campaign's row",
		file: "internal/sqldb/migrations/postgres/00001_ledger.sql", old: "ON campaigns (gate, id) WHERE has_line", new: "ON campaigns (gate, id) WHERE waiting > 0",
		pkg: "./internal/ledger", test: "TestClaimsWriteNoIndexOfTheirCampaignsRow",
	},
	{
		bug:  "any number of commits wait for a standby",
		file: "internal/sqldb/postgres_standby.go", old: "make(chan struct{}, serverWriters)", new: "make(chan struct{}, 100*serverWriters)",
		pkg: "./internal/ledger", test: "TestF58CommitsThatWaitAreBounded",
	},
	{
		bug:  "the rule ignores when a campaign closes",
		file: "outcome.go", old: "c.Closed || !c.ClosesAt.IsZero() && !now.Before(c.ClosesAt)", new: "c.Closed",
		pkg: ".", test: "TestDecideGivesEachOutcome",
	},
	{
		bug:  "a campaign that was closed before its opening says that it will open",
		file: "outcome.go", old: "case c.Closed || ", new: "case c.Closed && (waits || !now.Before(c.OpensAt)) || ",
		pkg: ".", test: "TestTheFirstOutcomeThatAppliesIsTheAnswer",
	},
	{
		bug:  "a campaign may be created whose coupons expired before",
		file: "internal/ledger/campaigns.go", old: "terms.CheckChange(firstcome.Terms{}, now)", new: "terms.Check()",
		pkg: "./internal/api", test: "TestTermsThatMayNotStandAre422AndNameTheField",
	},
	{
		bug:  "the rule issues one more than the quantity",
		file: "outcome.go", old: "inForce >= c.Quantity", new: "inForce > c.Quantity",
		pkg: ".", test: "TestDecideGivesEachOutcome",
	},
	{
		bug:  "a lease counts from the answer",
		file: "internal/issue/drain.go", old: "i.learn(q, decisions, sent, changes)", new: "i.learn(q, decisions, i.now(), changes)",
		pkg: "./internal/issue", test: "TestALeaseCountsFromTheSending",
	},
	{
		bug:  "a voided coupon is repeated from memory",
		file: "internal/issue/known.go", old: "now >= e.until || e.changes != q.changes.Load()", new: "now >= e.until",
		pkg: "./internal/issue", test: "TestAVoidedCouponIsNotRepeated",
	},
	{
		bug:  "what may be repeated is not forgotten when a change begins",
		file: "internal/issue/queue.go", old: "	q.changes.Add(1)\n	q.local.Store(nil)\n", new: "	q.changes.Add(1)\n",
		pkg: "./internal/issue", test: "TestALeaseEndsBeforeAChange",
	},
	{
		bug:  "a place is told before the log has it",
		file: "internal/line/teller.go", old: "if err := t.log.Append(ctx, id, records); err != nil {", new: "if err := error(nil); err != nil {",
		pkg: "./internal/line", test: "TestAPlaceIsToldOnlyOnceTheLogHasItAndTheEpochStillDecides",
	},
	{
		bug:  "a place is told in an epoch that has ended",
		file: "internal/line/teller.go", old: "if err := t.Decides(ctx, id, records[0].Epoch); err != nil {", new: "if err := error(nil); err != nil {",
		pkg: everything, test: "TestNobodyIsToldAPlaceOfAnEpochThatHasEnded",
	},
	{
		bug:  "who left hears so before the log does",
		file: "internal/line/teller.go", old: "if err == nil && !t.kept(id, left, true) {", new: "if err != nil && !t.kept(id, left, true) {",
		pkg: "./internal/line", test: "TestAPlaceIsToldOnlyOnceTheLogHasItAndTheEpochStillDecides",
	},
	{
		bug:  "a user who asks is told that they left before the log says so",
		file: "internal/line/teller.go", old: "case errors.Is(err, firstcome.ErrNoTicket) && !t.kept(id, place, true):", new: "case errors.Is(err, firstcome.ErrNoTicket):\n\tcase place.Log != nil && err != nil:",
		pkg: "./internal/line", test: "TestAPlaceIsToldOnlyOnceTheLogHasItAndTheEpochStillDecides",
	},
	{
		bug:  "a node without the log tells places that have one",
		file: "internal/line/teller.go", old: "return fmt.Errorf(\"%w: start each node with the same --line\", firstcome.ErrLineLogAway)", new: "return nil",
		pkg: "./internal/line", test: "TestANodeWithoutTheLogTellsNoPlaceThatHasOne",
	},
	{
		bug:  "a place counts as told that was told in the epoch before",
		file: "internal/line/teller.go", old: "l.epoch == p.Log.Epoch && ", new: "",
		pkg: "./internal/line", test: "TestAPlaceIsToldOnlyOnceTheLogHasItAndTheEpochStillDecides",
	},
	{
		bug:  "a place counts as told that somebody had in another generation",
		file: "internal/line/teller.go", old: " && l.generation == p.Generation", new: "",
		pkg: "./internal/line", test: "TestAPlaceIsToldOnlyOnceTheLogHasItAndTheEpochStillDecides",
	},
	{
		bug:  "a claim is told its place without the log",
		file: "internal/issue/drain.go", old: "case decisions[n].Outcome == firstcome.Waiting && i.options.Teller != nil", new: "case decisions[n].Outcome == 0 && i.options.Teller != nil",
		pkg: "./internal/line", test: "TestAPlaceIsToldOnlyOnceTheLogHasItAndTheEpochStillDecides",
	},
	{
		bug:  "terms that are set again begin the log of a line anew",
		file: "internal/epoch/line_log.go", old: "case epoch == 0: // terms", new: "case epoch < 0: // terms",
		pkg: "./internal/epoch", test: "TestChangesSayWhereALineIsLogged",
	},
	{
		bug:  "a reconciled ledger looks for a line in the log of before",
		file: "internal/epoch/line_log.go", old: "case !log.Same(*h.Log): // from a reconcile", new: "case false: // from a reconcile",
		pkg: "./internal/epoch", test: "TestChangesSayWhereALineIsLogged",
	},
	{
		bug:  "a place in line is repeated from memory",
		file: "internal/issue/queue.go", old: "!d.Outcome.HasCoupon() && d.Outcome != firstcome.Waiting && d.Lease > 0", new: "!d.Outcome.HasCoupon() && d.Lease > 0",
		pkg: "./internal/line", test: "TestAPlaceInLineIsNeverRepeated",
	},
	{
		bug:  "a node forgets a line that somebody joins while its last one is served",
		file: "internal/line/dispatcher.go", old: "if one.more {", new: "if false {",
		pkg: "./internal/line", test: "TestWhoJoinsWhileTheLastOneIsServedIsServedNext",
	},
	{
		bug:  "a stop cuts off a call that serves a line",
		file: "internal/line/dispatcher.go", old: "context.WithTimeout(context.WithoutCancel(ctx), d.options.Gate)", new: "context.WithTimeout(ctx, d.options.Gate)",
		pkg: "./internal/line", test: "TestADispatcherStopsWhenItsCallsHaveEnded",
	},
	{
		bug:  "a direct issue goes to the gate with the claims around it",
		file: "internal/issue/queue.go", old: "c.direct != claims[0].direct", new: "c.direct != c.direct",
		pkg: "./internal/line", test: "TestADirectIssueIsABatchOfItsOwnAndPassesTheLine",
	},
	{
		bug:  "a holder is told sold out from memory",
		file: "internal/issue/queue.go", old: "now >= l.until || l.holders.mayHave(user)", new: "now >= l.until",
		pkg: "./internal/issue", test: "TestAHolderIsFoundWhileTheRefusalIsRepeated",
	},
	{
		bug:  "a recorder is done with a batch that the ledger did not take",
		file: "internal/record/batch.go", old: "			r.credit(b.Campaign, len(b.Coupons))\n			return Result{}, err", new: "			return result, nil",
		pkg: "./internal/record", test: "TestF53",
	},
	{
		bug:  "a claim is answered whose file was moved before its commit",
		file: "internal/sqldb/sqlite_tx.go", old: "		err = w.db.files.look() //", new: "		_ = w.db.files.look() //",
		pkg: "./internal/ledger", test: "TestF67AFileThatMovesDuringATransactionIsNoAnswer",
	},
	{
		bug:  "SQLite's gate ignores a new closing time",
		file: "internal/campaign/row.go", old: "sqldb.Time(&s.OpensAt), sqldb.Time(&s.ClosesAt), &s.Paused", new: "sqldb.Time(&s.OpensAt), sqldb.Time(new(time.Time)), &s.Paused",
		pkg: "./internal/ledger", test: "TestTheSQLiteGateConforms",
	},
	{
		bug:  "SQLite's gate ignores a new opening time",
		file: "internal/campaign/row.go", old: "sqldb.Time(&s.OpensAt), sqldb.Time(&s.ClosesAt), &s.Paused", new: "sqldb.Time(new(time.Time)), sqldb.Time(&s.ClosesAt), &s.Paused",
		pkg: "./internal/ledger", test: "TestTheSQLiteGateConforms",
	},
	{
		bug:  "a claim's row is raised whatever row it is",
		file: "internal/campaign/statements.go", old: "WHERE campaigns.id = s.column3 AND version = s.column4 AND last_number = s.column5", new: "WHERE campaigns.id = s.column3 AND version >= 0*s.column4 AND last_number >= 0*s.column5",
		pkg: "./internal/ledger", test: "TestNumberFourOfThreeIsNeitherAnsweredNorRecorded",
	},
	{
		bug:  "a claim waits for recording as briefly as the first one that shares its deadline",
		file: "internal/issue/deadlines.go", old: "d.next = now.Add(d.after / sharing)", new: "d.next = now.Add(d.after)",
		pkg: "./internal/issue", test: "TestEachClaimWaitsAsLongAsIfItWereAlone",
	},
	{
		bug:  "a claim waits for recording although its caller has gone away",
		file: "internal/issue/answerer.go", old: "a.Waiter.Wait(ctx, end.Done(), *c)", new: "a.Waiter.Wait(end, end.Done(), *c)",
		pkg: "./internal/issue", test: "TestEachClaimWaitsAsLongAsIfItWereAlone",
	},
	{
		bug:  "who waits for a drained number is not asked about",
		file: "internal/issue/waiter.go", old: "has, err = w.gate.Has(ctx, id, coupons)", new: "has, err = make([]bool, len(due)), ctx.Err(); for n := range has { has[n] = true }",
		pkg: "./internal/issue", test: "TestAClaimWaitsUntilItsNumberIsDrained",
	},
	{
		bug:  "a recorder passes over what its source has lost",
		file: "internal/record/drainer.go", old: "		c.lacks(hole)\n", new: "		_ = hole\n",
		pkg: "./internal/record", test: "TestF43WhatASourceHasLost",
	},
	{
		bug:  "a reconciled ledger stays in its older epoch",
		file: "internal/epoch/reconcile.go", old: "Epoch: max(s.Epoch, g.Epoch)", new: "Epoch: s.Epoch",
		pkg: everything, test: "TestF54AReconcileBringsBackACampaignOfALaterEpoch",
	},
	{
		bug:  "a reconcile keeps the quantity of the backup",
		file: "internal/epoch/reconcile.go", old: "s.Paused, s.Closed, s.ClosedAt = g.Paused,", new: "terms.Quantity = s.Quantity\n\ts.Paused, s.Closed, s.ClosedAt = g.Paused,",
		pkg: everything, test: "TestF54AReconcileBringsBackWhatTheGateHas",
	},
	{
		bug:  "nobody notes whose a lost number was",
		file: "internal/ledger/drained.go", old: "return sqldb.InChunks(lost, r.noteLost)", new: "return nil",
		pkg: everything, test: "TestF03WhatAnOlderGateGaveIsLostAndFoundByItsUser/SQLite",
	},
	{
		bug:  "whose a lost number was is noted each time",
		file: "internal/ledger/drained.go", old: "		noted[one] = true\n", new: "",
		pkg: everything, test: "TestF03WhatAnOlderGateGaveIsLostAndFoundByItsUser/SQLite",
	},
	{
		bug:  "a node calls a paused line many times a second",
		file: "internal/line/dispatcher.go", old: "case served.Again == 0:", new: "case false:",
		pkg: "./internal/line", test: "TestAChangeOfTheCampaignWakesItsLine",
	},
	{
		bug:  "a session takes over the server's autocommit",
		file: "internal/sqldb/session.go", old: `{name: "autocommit", value: "ON"},`, new: "",
		pkg: "./internal/ledger", test: "TestF66ADropUnderEachDefaultOfAServerIsExact/MariaDB/no_autocommit$",
	},
	{
		bug:  "a session takes over the server's end of a commit",
		file: "internal/sqldb/session.go", old: `{name: "completion_type", value: "NO_CHAIN"},`, new: "",
		pkg: "./internal/ledger", test: "TestF66ADropUnderEachDefaultOfAServerIsExact/MariaDB/chained_transactions",
	},
	{
		bug:  "a session takes over the server's limit of rows",
		file: "internal/sqldb/session.go", old: `{name: "sql_select_limit", value: "18446744073709551615"},`, new: "",
		pkg: "./internal/ledger", test: "TestF66ADropUnderEachDefaultOfAServerIsExact/MariaDB/few_rows",
	},
	{
		bug:  "a session reads what is not committed",
		file: "internal/sqldb/session.go", old: "\t\t`SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED, READ WRITE`,", new: "",
		pkg: "./internal/ledger", test: "TestF66ADropUnderEachDefaultOfAServerIsExact/MariaDB/read_uncommitted",
	},
	{
		bug:  "a session takes over the server's limit of a statement's time",
		file: "internal/sqldb/session.go", old: `{name: "statement_timeout", value: "0"},`, new: "",
		pkg: "./internal/ledger", test: "TestF66ADropUnderEachDefaultOfAServerIsExact/PostgreSQL/short_statements",
	},
	{
		bug:  "doctor does not compare a session with what it sets",
		file: "internal/sqldb/session.go", old: `there && !equal(value, s.value)`, new: "there && false",
		pkg: "./internal/ledger", test: "TestASettingThatASessionDoesNotKeepIsFound",
	},
	{
		bug:  "semi-synchronous replication that has lapsed is taken for replication",
		file: "internal/sqldb/semisync.go", old: `s["rpl_semi_sync_master_status"] != "ON" ||`, new: "",
		pkg: "./internal/ops", test: "TestF59ALapsedSemiSynchronousReplicationIsShown",
	},
	{
		bug:  "a round of a code takes the other half",
		file: "code_cipher.go", old: "(a+c.round(i, b))&half", new: "(a+c.round(i, a))&half",
		pkg: ".", test: "TestACodeIsFF1OfTheNumber",
	},
	{
		bug:  "the zeros of a code are not looked at",
		file: "code_cipher.go", old: "if a>>(numberBits-halfBits) != 0 {", new: "if false {",
		pkg: ".", test: "TestRandomCodesHaveNoNumber",
	},
	{
		bug:  "campaigns whose ids have the same length have the same codes",
		file: "code_cipher.go", old: "c.state[at] ^= tweak[n]", new: "c.state[at] ^= 0 * tweak[n]",
		pkg: ".", test: "TestACodeOfEachOfManyCampaignsIsFound",
	},
	{
		bug:  "a code is not compared with the stored one",
		file: "internal/ledger/code.go", old: "case err == nil && coupon.Code != code:", new: "case false:",
		pkg: "./internal/ledger", test: "TestACodeFindsItsCoupon",
	},
	{
		bug:  "a code of the gate's last number is denied",
		file: "internal/ledger/code.go", old: "g.LastNumber >= h.Number", new: "g.LastNumber > h.Number",
		pkg: "./internal/api", test: "TestACodeIsAnsweredAtTheEdgeOfTheGatesLastNumber",
	},
	{
		bug:  "a gate whose epoch has ended denies a code",
		file: "internal/ledger/code.go", old: " || g.Epoch != h.Epoch", new: "",
		pkg: "./internal/ledger", test: "TestACouponIsAwaitedUnlessItsGateSurelyNeverGaveIt",
	},
	{
		bug:  "any number of searches for a code run in many campaigns",
		file: "internal/ledger/code.go", old: "known == nil || len(known) > manyCampaigns", new: "known == nil",
		pkg: "./internal/ledger", test: "TestInManyCampaignsOneCodeIsLookedForAtATime",
	},
}
