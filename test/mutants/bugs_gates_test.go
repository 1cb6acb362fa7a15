package mutants_test

// gatesBugs are bugs at remote gates, in Redis and Kafka.
var gatesBugs = []mutant{
	{
		bug:  "facts are appended although one before them was refused",
		file: "internal/kafka/append.go", old: "options = append(options, kgo.ManualFlushing())", new: "_ = options",
		pkg: "./internal/kafka", test: "TestF70NothingThatComesAfterARefusedRecordIsAppended",
	},
	{
		bug:  "facts of a campaign pass one that is too large for the topic",
		file: "internal/kafka/append.go", old: "string(r.Key) == string(group[0].Key)", new: "r == group[0]",
		pkg: "./internal/kafka", test: "TestF70FactsAreAllPublished",
	},
	{
		bug:  "a record of a journal is larger than the topic takes",
		file: "internal/kafka/journal_record.go", old: "if coupons > 1 && sizeOf", new: "if coupons < 0 && sizeOf",
		pkg: "./internal/kafka", test: "TestF70CouponsAreAllRecorded",
	},
	{
		bug:  "a record of a line is larger than the topic takes",
		file: "internal/kafka/linelog_record.go", old: "if len(alike) > 1 && sizeOf", new: "if len(alike) < 1 && sizeOf",
		pkg: "./internal/kafka", test: "TestF70PlacesAreAllLogged",
	},
	{
		bug:  "a place is told that was appended where the log does not count",
		file: "internal/kafka/linelog_append.go", old: "if first := log.First; r.Offset < first {", new: "if first := log.First; r.Offset < min(0, first) {",
		pkg: "./internal/kafka", test: "TestAPartitionThatEndsBeforeItsLogIsToldAndRefused",
	},
	{
		bug:  "a place is appended to another topic of the name",
		file: "internal/kafka/linelog_append.go", old: "case log.Topic != l.id:", new: "case false:",
		pkg: "./internal/kafka", test: "TestATopicOfLogsThatWasMadeAgainIsToldAndRefused",
	},
	{
		bug:  "a log that was made again is whole",
		file: "internal/kafka/linelog.go", old: "case log.Topic != is.id:", new: "case false:",
		pkg: "./internal/kafka", test: "TestATopicOfLogsThatWasMadeAgainIsToldAndRefused",
	},
	{
		bug:  "a log whose records were deleted is whole",
		file: "internal/kafka/linelog.go", old: "case is.starts[p] > log.First:", new: "case false:",
		pkg: "./internal/kafka", test: "TestALogWhoseRecordsWereDeletedIsToldAndRefused",
	},
	{
		bug:  "a recovery believes a log whose records were deleted while it read",
		file: "internal/kafka/linelog.go", old: "_, err = l.has(ctx, id, log, end) // the topic may", new: "_, _ = l.has(ctx, id, log, end) // the topic may",
		pkg: "./internal/kafka", test: "TestRecordsThatAreDeletedWhileALogIsReadFailTheReading",
	},
	{
		bug:  "each claim waits for a broker that is away",
		file: "internal/kafka/linelog_append.go", old: "case time.Now().Before(rest.until):", new: "case false:",
		pkg: "./internal/kafka", test: "TestALogThatIsAwayHoldsUpNobodyForLong",
	},
	{
		bug:  "a line at Redis gets another log while people are in it",
		file: "internal/redis/lua/apply.lua", old: "if line and line.log == '' and a.log ~= ''", new: "if line and a.log ~= ''",
		pkg: "./internal/redis", test: "TestALineGetsItsLogOnce",
	},
	{
		bug:  "Redis says of a campaign that was closed before its opening that it will open",
		file: "internal/redis/lua/decide.lua", old: "g.closed and CLOSED or phase(g, g.now)", new: "phase(g, g.now) ~= NOT_OPEN and g.closed and CLOSED or phase(g, g.now)",
		pkg: "./internal/redis", test: "TestF16TheRedisGateConforms",
	},
	{
		bug:  "Redis says not_open of a quarantined window that ends before it opens",
		file: "internal/redis/lua/decide.lua", old: "if g.closes_at and at >= g.closes_at then", new: "if g.closes_at and at >= math.max(g.closes_at, g.opens_at or 0) then",
		pkg: "./internal/redis", test: "TestF16TheRedisGateConforms",
	},
	{
		bug:  "the Redis gate ignores when a campaign closes",
		file: "internal/redis/lua/decide.lua", old: "if g.closes_at and at >= g.closes_at then return CLOSED end", new: "",
		pkg: "./internal/redis", test: "Conforms",
	},
	{
		bug:  "the Redis gate ignores a new closing time",
		file: "internal/redis/lua/apply.lua", old: "'closes_at', a.closes_at, 'terms_version'", new: "'closes_at', text(g.closes_at), 'terms_version'",
		pkg: "./internal/redis", test: "Conforms",
	},
	{
		bug:  "the Redis gate ignores a new opening time",
		file: "internal/redis/lua/apply.lua", old: "'opens_at', a.opens_at, 'closes_at', a.closes_at, 'terms_version'", new: "'opens_at', text(g.opens_at), 'closes_at', a.closes_at, 'terms_version'",
		pkg: "./internal/redis", test: "Conforms",
	},
	{
		bug:  "returned stock is claimable at once where nodes repeat refusals",
		file: "internal/redis/lua/apply.lua", old: "    begin_quarantine(g, quarantine_for, is_sold_out)\n    g.quarantined = g.quarantined + 1\n", new: "    g.quarantined_until = g.clock\n",
		pkg: "./internal/redis", test: "Conforms",
	},
	{
		bug:  "a line at Redis is served from stock that is quarantined",
		file: "internal/redis/lua/serve.lua", old: "g.quantity - g.in_force - g.quarantined\n  local count", new: "g.quantity - g.in_force\n  local count",
		pkg: "./internal/redis", test: "LinesConform",
	},
	{
		bug:  "a dead letter leaves the journal without a flag",
		file: "internal/redis/lua/settle.lua", old: "    redis.call('HSET', holders_key, user, entry .. FLAG)\n", new: "",
		pkg: "./internal/redis", test: "TestADeadLetterHasAFlagAtTheHolderOfItsVeryNumber",
	},
	{
		bug:  "what is in the journal is drained",
		file: "internal/redis/lua/settle.lua", old: "  through = math.min(through, number - 1)\n", new: "",
		pkg: "./internal/redis", test: "TestWhatIsInTheJournalIsNotDrained",
	},
	{
		bug:  "a coupon is issued that the journal does not have",
		file: "internal/redis/lua/decide.lua", old: "  if type(appended) == 'table' and appended.err then return appended end\n", new: "",
		pkg: "./internal/redis", test: "F08",
	},
	{
		bug:  "the Redis gate gives numbers above the ceiling",
		file: "internal/redis/lua/decide.lua", old: "return math.min(wanted, math.max(0, g.ceiling - g.last_number))", new: "return wanted",
		pkg: "./internal/redis", test: "TestNothingIsGivenAboveTheCeiling",
	},
	{
		bug:  "what was recorded in another epoch is settled, and raises the ceiling",
		file: "internal/redis/lua/settle.lua", old: "if c.drained_through and a.epoch ~= '' and c.epoch ~= a.epoch then", new: "if false then",
		pkg: "./internal/redis", test: "TestF03F18AGateTakesCeilingsOfItsOwnEpochOnly",
	},
	{
		bug:  "a server that had a replica is taken for one that had none",
		file: "internal/redis/recovery_runs.go", old: `info["connected_slaves"] == "0" && info["repl_backlog_active"] == "0" &&`, new: `info["connected_slaves"] == "0" &&`,
		pkg: "./internal/redis", test: "TestF01F02OnlyARunThatARestartBringsBackWholeIsDurable",
	},
	{
		bug:  "whoever takes over facts does not read what the topic has",
		file: "internal/kafka/catchup.go", old: "c.Position = e.Position\n", new: "return nil\n",
		pkg: "./internal/kafka", test: "TestWhoeverComesNextGoesOnBehindWhatTheTopicHas",
	},
	{
		bug:  "a recorder of a topic commits what it has read",
		file: "internal/kafka/journal_queue.go", old: "for len(p.pending) > 0 && p.pending[0].over {", new: "for len(p.pending) > 0 {",
		pkg: "./internal/kafka", test: "TestF41What",
	},
	{
		bug:  "a record of a topic is done before the ledger has it",
		file: "internal/kafka/journal.go", old: "	return one.Batch, one, nil\n", new: "	j.done(one.records)\n	return one.Batch, one, nil\n",
		pkg: "./internal/kafka", test: "TestF41What",
	},
	{
		bug:  "a rebuild forgets what waits in a topic",
		file: "internal/kafka/journal_rebuild.go", old: "	return g.Journal.unrecorded(ctx, r.Campaign, r.CampaignUID, func(b record.Batch) error {\n		b.Attempt", new: `	return g.Journal.unrecorded(ctx, r.Campaign, "", func(b record.Batch) error {
		b.Attempt`,
		pkg: "./internal/kafka", test: "TestF02The",
	},
	{
		bug:  "a rebuild reads the end of a topic before the gate's journal",
		file: "internal/kafka/journal_rebuild.go", old: `	if err := g.Gate.Empty(ctx, r, to); err != nil {
		return err
	}
	return g.Journal.unrecorded(ctx, r.Campaign, r.CampaignUID, func(b record.Batch) error {
		b.Attempt = r.Attempt
		_, err := to(ctx, b)
		return err
	})
`, new: `	err := g.Journal.unrecorded(ctx, r.Campaign, r.CampaignUID, func(b record.Batch) error {
		b.Attempt = r.Attempt
		_, err := to(ctx, b)
		return err
	})
	if err != nil {
		return err
	}
	return g.Gate.Empty(ctx, r, to)
`,
		pkg: "./internal/kafka", test: "TestF02The",
	},
	{
		bug:  "a gate behind a topic is not told of dead letters",
		file: "internal/kafka/journal.go", old: "	before, err = j.options.Gate.Settle(ctx, q.id, one.CampaignUID, drained)", new: "	drained.Letters = nil\n	before, err = j.options.Gate.Settle(ctx, q.id, one.CampaignUID, drained)",
		pkg: "./internal/kafka", test: "TestADeadLetterIsTold",
	},
	{
		bug:  "garbage in a topic is passed over",
		file: "internal/kafka/journal_queue.go", old: "	newer := errors.Is(err, errNewer)\n", new: "	newer := errors.Is(err, errNewer)\n	if err != nil && !newer {\n		return b, errForeign\n	}\n",
		pkg: "./internal/kafka", test: "TestF44What",
	},
	{
		bug:  "another ledger's coupons in a topic are recorded",
		file: "internal/kafka/journal_queue.go", old: "	case says && b.CampaignUID != q.campaignUID && !j.options.Owns(b.CampaignUID):\n		return b, errForeign\n	case newer, err == nil && b.CampaignUID == q.campaignUID:", new: "	case newer, err == nil:",
		pkg: "./internal/kafka", test: "TestWhatIsNotOurs",
	},
	{
		bug:  "a freeze that comes again when its rebuild is over is a new one",
		file: "internal/redis/lua/freeze.lua", old: "attempt <= (tonumber(c.attempt) or 0)", new: "attempt < (tonumber(c.attempt) or 0)",
		pkg: everything, test: "TestF18StepsOfARebuildThatComeAgainChangeNothing",
	},
	{
		bug:  "a rebuild is switched at another server than the one that it froze",
		file: "internal/redis/lua/replace.lua", old: "if run ~= this_run() or holders", new: "if holders",
		pkg: "./internal/redis", test: "TestF18NothingIsSwitchedAtAServerThatIsAnotherOne",
	},
	{
		bug:  "a rebuilt campaign is noted as created after its switch",
		file: "internal/redis/recovery.go", old: "	if err := rec.conn.note(ctx, k); err != nil && !errors.Is(err, gate.ErrLedgerForgot) { // Redis may have been emptied\n		return wrap(err, \"switch %s\", r.Campaign)\n	}\n", new: "	defer func() { _ = errors.Is(rec.conn.note(ctx, k), nil) }()\n",
		pkg: "./internal/redis", test: "TestF54ACampaignThatCannotBeNotedAsCreatedIsNotSwitched",
	},
	{
		bug:  "an id whose campaign its ledger has forgotten is used again",
		file: "internal/redis/recovery_runs.go", old: "case noted != k.campaignUID:", new: "case noted != k.campaignUID && false:",
		pkg: "./internal/redis", test: "TestF54ACampaignIsNotMadeUnderAnIDThatItsLedgerHasForgotten",
	},
	{
		bug:  "a journal is filled from the holders of a gate that is unverified",
		file: "internal/redis/journal.go", old: "errors.Is(err, gate.ErrUnverified) {", new: "errors.Is(err, gate.ErrUnverified) && false {",
		pkg: "./internal/redis", test: "TestF43NothingIsMadeAgainFromTheHoldersOfAGateThatIsUnverified",
	},
	{
		bug:  "a server that followed another one and leads again is the run that it was",
		file: "internal/redis/lua/prelude.lua", old: "return string.sub(replication, before + 1, before + 40)", new: "return string.match(redis.call('INFO', 'server'), 'run_id:(%x+)')",
		pkg: everything, test: "TestF35WhatANodeWasToldIsNotGivenAgain/it_follows_a_replica_that_lagged,_and_leads_again",
	},
	{
		bug:  "a gate gives numbers again that it told this node",
		file: "internal/redis/lua/line.lua", old: " or tonumber(c.last_number) < tonumber(number) then", new: " then",
		pkg: everything, test: "TestF35WhatANodeWasToldIsNotGivenAgain/older_keys_are_put_back",
	},
	{
		bug:  "a gate undoes a change that was applied",
		file: "internal/redis/lua/line.lua", old: "if tonumber(c.version) < tonumber(version) or ", new: "if ",
		pkg: everything, test: "TestF36AChangeThatWasAppliedHoldsThoughOlderKeysArePutBack/a_pause",
	},
	{
		bug:  "a node does not know which changes the ledger has noted as applied",
		file: "internal/redis/keys.go", old: "Version: noted.Applied, ", new: "",
		pkg: everything, test: "TestF36AChangeThatWasAppliedHoldsThoughOlderKeysArePutBack/a_pause,_asked_of_another_node",
	},
	{
		bug:  "the node that applied a change forgets it",
		file: "internal/redis/apply.go", old: ", Version: change.Version})", new: "})",
		pkg: everything, test: "TestF36AChangeThatWasAppliedHoldsThoughOlderKeysArePutBack/a_pause,_asked_of_the_node_that_made_it",
	},
	{
		bug:  "older keys tell who holds a coupon",
		file: "internal/redis/lua/place.lua", old: "if forgotten then return forgotten end", new: "",
		pkg: everything, test: "TestF36AChangeThatWasAppliedHoldsThoughOlderKeysArePutBack/a_void",
	},
	{
		bug:  "a change is applied to older keys",
		file: "internal/redis/lua/apply.lua", old: "if forgotten then return forgotten end", new: "",
		pkg: everything, test: "TestF36AChangeThatWasAppliedHoldsThoughOlderKeysArePutBack/a_pause",
	},
	{
		bug:  "a gate gives a ticket again that it told this node",
		file: "internal/redis/lua/line.lua", old: "later == 0 and tonumber(ticket) > (line and line.last or 0)", new: "false",
		pkg: everything, test: "TestF36ATicketThatWasToldIsNobodyElsesThoughOlderKeysArePutBack/the_node_that_told_it",
	},
	{
		bug:  "a node forgets the tickets that it reads",
		file: "internal/redis/place.go", old: "	c.remembers.add(k, s.witness)\n", new: "",
		pkg: everything, test: "TestF36ATicketThatWasToldIsNobodyElsesThoughOlderKeysArePutBack/a_node_that_read",
	},
	{
		bug:  "a gate that has forgotten is taken for verified",
		file: "internal/recovery/verify.go", old: "case s.forgot():", new: "case false:",
		pkg: "./internal/recovery", test: "TestF04ANodeThatWasToldANumberWhichTheGateForgotHasItRebuilt",
	},
	{
		bug:  "a gate in an epoch that has ended stands",
		file: "internal/redis/lua/inspect.lua", old: "tonumber(c.epoch) < epoch then return {'ended'", new: "false then return {'ended'",
		pkg: everything, test: "TestF03AGateInAnEpochThatHasEndedIsNoticed/SQLite",
	},
	{
		bug:  "an older gate that restarts is rebuilt without being asked",
		file: "internal/redis/lua/inspect.lua", old: "if not c.frozen and tonumber(c.epoch)", new: "if not c.frozen and not unverified(c) and tonumber(c.epoch)",
		pkg: everything, test: "TestF03AGateInAnEpochThatHasEndedIsNoticed/SQLite",
	},
	{
		bug:  "what an older gate says of a coupon is told",
		file: "internal/gate/router.go", old: "refusal != nil || m == known && errors", new: "refusal != nil || false && errors",
		pkg: everything, test: "TestF03ANodeThatStartsAtAnOlderGateDecidesNothing",
	},
	{
		bug:  "the claim script does not heed the ledger's epoch",
		file: "internal/redis/lua/line.lua", old: "if tonumber(c.epoch) < tonumber(epoch) then return {'behind'", new: "if false then return {'behind'",
		pkg: everything, test: "TestF03AClaimSaysWhichEpochIsTheLedgers",
	},
	{
		bug:  "entries of an older gate stay in its journal",
		file: "internal/redis/consumer_stream.go", old: "of := one.of, cmp.Or(one.Epoch, one.of.epoch)", new: "of := one.of, cmp.Or(one.of.epoch, one.Epoch)",
		pkg: everything, test: "TestF03WhatAnOlderGateGaveIsLostAndFoundByItsUser/SQLite",
	},
	{
		bug:  "an older gate is told of numbers of a later epoch",
		file: "internal/redis/lua/settle.lua", old: "if c.drained_through and a.epoch ~= '' and c.epoch ~= a.epoch then", new: "if false then",
		pkg: "./internal/redis", test: "TestWhatIsSaidOfAnotherEpochChangesNothing",
	},
	{
		bug:  "an entry of another epoch stays in the journal, and nothing after it is recorded",
		file: "internal/redis/lua/settle.lua", old: "if not theirs or entry and field(entry, 'epoch') == a.of then", new: "if not theirs then",
		pkg: everything, test: "TestF50EntriesOfOtherEpochsAreDeadLettersAndTheRestIsRecorded",
	},
	{
		bug:  "the dead letter of an entry of another epoch takes another user's number",
		file: "internal/ledger/deadletters.go", old: " && b.Epoch == r.Epoch", new: "",
		pkg: "./internal/ledger", test: "TestF41F42F44F45F51TheLedgerConforms",
	},
	{
		bug:  "a batch that comes again and again never rests",
		file: "internal/record/progress.go", old: "if c.again >= tries {", new: "if false {",
		pkg: "./internal/record", test: "TestF50ABatchThatComesAgainAndAgainRestsAndIsAnAlarm",
	},
}
