package mutants_test

// recoveryBugs are bugs in what becomes of a gate that may have forgotten.
var recoveryBugs = []mutant{
	{
		bug:  "the log of another campaign of the same id has people in line",
		file: "internal/recovery/fold.go", old: "if r.CampaignUID != uid {", new: "if r.CampaignUID == \"\" {",
		pkg: "./internal/recovery", test: "TestTheLogSaysWhoIsInLine",
	},
	{
		bug:  "what a log has from before its beginning counts",
		file: "internal/recovery/fold.go", old: "known && offset < begin {", new: "known && offset < min(0, begin) {",
		pkg: "./internal/recovery", test: "TestTheLogSaysWhoIsInLine",
	},
	{
		bug:  "a place counts that a frozen node appended in an epoch that had ended",
		file: "internal/recovery/fold.go", old: "r.Epoch < now || ", new: "",
		pkg: "./internal/recovery", test: "TestTheLogSaysWhoIsInLine",
	},
	{
		bug:  "a recovery forgets who joined before the last epoch",
		file: "internal/recovery/fold.go", old: "if e.generation != e.began {", new: "if true {",
		pkg: "./internal/recovery", test: "TestTheLogSaysWhoIsInLine",
	},
	{
		bug:  "people are in line again of a generation that ended within an epoch",
		file: "internal/recovery/fold.go", old: "if e.generation != e.began {", new: "if false {",
		pkg: "./internal/recovery", test: "TestTheLogSaysWhoIsInLine",
	},
	{
		bug:  "people are in line again of a generation that the ledger knows as sold out",
		file: "internal/recovery/fold.go", old: "if e.generation <= ended {", new: "if e.generation < 0 {",
		pkg: "./internal/recovery", test: "TestTheLogSaysWhoIsInLine",
	},
	{
		bug:  "who left is in line again",
		file: "internal/recovery/fold.go", old: "case !left[user].Before(p.Ticket):", new: "case false:",
		pkg: "./internal/recovery", test: "TestTheLogSaysWhoIsInLine",
	},
	{
		bug:  "who left and joined again is not in line",
		file: "internal/recovery/fold.go", old: "case !left[user].Before(p.Ticket):", new: "case left[user].Number > 0:",
		pkg: "./internal/recovery", test: "TestTheLogSaysWhoIsInLine",
	},
	{
		bug:  "who was served is in line again once the coupon is void",
		file: "internal/recovery/fold.go", old: "!of.Before(p.Ticket) || ", new: "of.Number < 0 || ",
		pkg: "./internal/recovery", test: "TestTheLogSaysWhoIsInLine",
	},
	{
		bug:  "who got a coupon directly is in line again once it is void",
		file: "internal/recovery/fold.go", old: " || c.IssuedAt.After(p.at)", new: "",
		pkg: "./internal/recovery", test: "TestTheLogSaysWhoIsInLine",
	},
	{
		bug:  "two people have one ticket",
		file: "internal/recovery/fold.go", old: "if len(people) > 0 && people[len(people)-1].Ticket == one.Ticket {", new: "if false {",
		pkg: "./internal/recovery", test: "TestTheLogSaysWhoIsInLine",
	},
	{
		bug:  "of two people with one ticket the earlier epoch's keeps it",
		file: "internal/recovery/fold.go", old: "cmp.Compare(places[b].epoch, places[a].epoch)", new: "cmp.Compare(places[a].epoch, places[b].epoch)",
		pkg: "./internal/recovery", test: "TestTheLogSaysWhoIsInLine",
	},
	{
		bug:  "a gate is frozen before anybody knows whether the log can be read",
		file: "internal/recovery/carry.go", old: "if !withoutLog {", new: "if false {",
		pkg: everything, test: "TestF77WithoutItsLogALineIsLeftAlone",
	},
	{
		bug:  "a rebuild does not read the log of the line",
		file: "internal/recovery/attempt.go", old: "\t\ta.read,\n", new: "",
		pkg: everything, test: "TestF77ALoggedLineOutlivesOneLossAfterTheOther",
	},
	{
		bug:  "a rebuilt line has no log",
		file: "internal/recovery/carry.go", old: "a.loaded.Log, a.loaded.LogEpoch = a.logged, a.folded.Epoch", new: "a.loaded.LogEpoch = a.folded.Epoch",
		pkg: everything, test: "TestF77ALoggedLineOutlivesOneLossAfterTheOther",
	},
	{
		bug:  "the ledger does not know where the new epoch begins in the log",
		file: "internal/recovery/carry.go", old: "history.Log.First = end", new: "_ = end",
		pkg: everything, test: "TestNobodyIsToldAPlaceOfAnEpochThatHasEnded",
	},
	{
		bug:  "a rebuilt line has a generation of which the log says that it ended",
		file: "internal/recovery/carry.go", old: "max(a.frozen.Line.Generation, a.loaded.Mark.Generation, a.folded.Generation) + 1", new: "max(a.frozen.Line.Generation, a.loaded.Mark.Generation) + 1",
		pkg: everything, test: "TestF77AGenerationThatSoldOutIsNotInLineAgain",
	},
	{
		bug:  "a recovery reads the log before it freezes the gate",
		file: "internal/recovery/attempt.go", old: "		a.freeze,\n		a.compare,\n		a.adopt,\n		a.bringBack,\n		a.read,\n", new: "		a.read,\n		a.freeze,\n		a.compare,\n		a.adopt,\n		a.bringBack,\n",
		pkg: "./test/sim", test: "TestTheInterleavingsOfALoggedLineKeepThePromises",
	},
	{
		bug:  "who is logged anew is so in the epoch that ends",
		file: "internal/recovery/carry.go", old: "a.loaded.Carried.Generation, a.Rebuild.Epoch+1", new: "a.loaded.Carried.Generation, a.Rebuild.Epoch",
		pkg: "./test/sim", test: "TestTheInterleavingsOfALoggedLineKeepThePromises",
	},
	{
		bug:  "the gate's time goes back behind that of the log",
		file: "internal/recovery/carry.go", old: "if a.folded.Latest.After(a.frozen.DecidedAt) {", new: "if false {",
		pkg: "./test/sim", test: "TestTheInterleavingsOfALoggedLineKeepThePromises",
	},
	{
		bug:  "a line that is logged anew has nobody in its log",
		file: "internal/recovery/carry.go", old: "if err = a.append(ctx, log); errors.Is(", new: "if errors.Is(",
		pkg: everything, test: "TestTheLogOfALineIsMadeAnew",
	},
	{
		bug:  "a rebuild begins while the log of the line cannot be read",
		file: "internal/recovery/carry.go", old: "	if !withoutLog {\n		history, err", new: "	if false {\n		history, err",
		pkg: "./internal/recovery", test: "TestANodeWithoutTheLogOfALineTellsSoAndBeginsNoAttempt",
	},
	{
		bug:  "nobody hears that a line's log cannot be read",
		file: "internal/recovery/inspect.go", old: "if isOfLog && m.onRebuilt != nil {", new: "if !isOfLog && m.onRebuilt != nil {",
		pkg: "./internal/recovery", test: "TestANodeWithoutTheLogOfALineTellsSoAndBeginsNoAttempt",
	},
	{
		bug:  "a rebuild does not wait until the leases have ended",
		file: "internal/recovery/attempt.go", old: "time.Until(a.since.Add(leasesEnd))", new: "time.Until(a.since)",
		pkg: "./test/sim", test: "TestEveryScheduleKeepsThePromises",
	},
	{
		bug:  "a rebuild asks whether its gate is ahead before it freezes it",
		file: "internal/recovery/attempt.go", old: "		a.freeze,\n		a.compare,\n", new: "		a.compare,\n		a.freeze,\n",
		pkg: everything, test: "TestF54ALedgerThatWasRestoredFromABackupIsNoticed",
	},
	{
		bug:  "a reconcile brings coupons back before it voids those of the same users",
		file: "internal/recovery/attempt.go", old: "		a.adopt,\n		a.bringBack,\n", new: "		a.bringBack,\n		a.adopt,\n",
		pkg: everything, test: "TestF54AnEstimateIsWhatTheReconcileComesTo",
	},
	{
		bug:  "a rebuild empties the journal behind the load",
		file: "internal/recovery/attempt.go", old: "		a.empty,\n		a.load,\n", new: "		a.load,\n		a.empty,\n",
		pkg: everything, test: "TestF54ALedgerThatFailsOverInsideARebuildGetsTheJournalAgain",
	},
	{
		bug:  "a rebuild carries the line over before it loads the holders",
		file: "internal/recovery/attempt.go", old: "		a.load,\n		a.carry,\n", new: "		a.carry,\n		a.load,\n",
		pkg: everything, test: "TestF77ALineWhoseKeysSurviveIsCarriedOver",
	},
	{
		bug:  "a rebuild switches the gate before the ledger has ended the epoch",
		file: "internal/recovery/attempt.go", old: "		a.end,\n		a.put,\n", new: "		a.put,\n		a.end,\n",
		pkg: "./test/sim", test: "TestEveryScheduleKeepsThePromises",
	},
	{
		bug:  "a restart is taken for harmless, though the server did not sync",
		file: "internal/recovery/verify.go", old: "case !durable:", new: "case !durable && false:",
		pkg: "./test/sim", test: "TestEveryScheduleKeepsThePromises",
	},
	{
		bug:  "a rebuild whose owner died before it froze the gate is done by nobody",
		file: "internal/recovery/inspect.go", old: "case a.Rebuilding:", new: "case false:",
		pkg: "./test/sim", test: "TestEveryScheduleKeepsThePromises",
	},
	{
		bug:  "campaigns are rebuilt in the order of their ids",
		file: "internal/recovery/inspect.go", old: "range first(active, m.known())", new: "range active",
		pkg: "./internal/recovery", test: "TestF01OpenCampaignsAreRebuiltFirst",
	},
	{
		bug:  "a gate that another node's rebuild switched behind a look is rebuilt again",
		file: "internal/recovery/inspect.go", old: "		if m.inspect(ctx, a) == nil {\n", new: "		if false {\n",
		pkg: "./internal/recovery", test: "TestF05AGateThatIsSwitchedBehindALookIsNotRebuiltAgain",
	},
	{
		bug:  "behind another node's attempt that was given up a gate is rebuilt whatever it says",
		file: "internal/recovery/inspect.go", old: "	a.Rebuilding = false // the look found another attempt\n", new: "",
		pkg: "./internal/recovery", test: "TestF05AGateThatIsSwitchedBehindALookIsNotRebuiltAgain",
	},
	{
		bug:  "a rebuild that is about to switch its frozen gate is given no time",
		file: "internal/recovery/inspect.go", old: "asks = replaceAsks", new: "asks = 1",
		pkg: "./internal/recovery", test: "TestF05AGateThatIsSwitchedBehindALookIsNotRebuiltAgain",
	},
	{
		bug:  "a rebuild whose owner died before the freeze is taken for needless",
		file: "internal/recovery/inspect.go", old: "	if attempt.Left {\n", new: "	if false {\n",
		pkg: "./internal/recovery", test: "TestF05AGateThatIsSwitchedBehindALookIsNotRebuiltAgain",
	},
	{
		bug:  "no node has the time to say that it was told more",
		file: "internal/recovery/verify.go", old: "2 * runsEvery", new: "0 * runsEvery",
		pkg: "./internal/recovery", test: "TestF04ANodeThatWasToldANumberWhichTheGateForgotHasItRebuilt",
	},
	{
		bug:  "a gate with older keys is never rebuilt",
		file: "internal/recovery/verify.go", old: "case s.forgot():", new: "case false:",
		pkg: "./test/sim", test: "TestTheInterleavingsOfALoggedLineKeepThePromises",
	},
	{
		bug:  "no node has the time to say that it was told a later ticket",
		file: "internal/recovery/verify.go", old: " || s.Line) {", new: ") {",
		pkg: "./internal/recovery", test: "TestF04ANodeThatWasToldANumberWhichTheGateForgotHasItRebuilt",
	},
	{
		bug:  "whoever orders a rebuild rebuilds in whatever epoch the campaign is by then",
		file: "internal/recovery/machine.go", old: "m.begin(ctx, actor, id, before.Epoch,", new: "m.begin(ctx, actor, id, before.Epoch*0,",
		pkg: everything, test: "TestF05WhoWantsALostGateRebuiltTakesWhatAnotherRebuilt",
	},
	{
		bug:  "a ledger is not taken for an older one by its version",
		file: "internal/recovery/age.go", old: "case s.Version > r.Version:", new: "case false:",
		pkg: everything, test: "TestF54AGateThatIsAheadInOneThingAloneIsNotRebuilt",
	},
	{
		bug:  "a reconcile does not bring the holders back",
		file: "internal/recovery/attempt.go", old: "lacking, err := a.lacking(ctx, a.Rebuild)", new: "lacking, err := []firstcome.Coupon(nil), ctx.Err()",
		pkg: everything, test: "TestF54AReconcileBringsBackWhatTheGateHas",
	},
	{
		bug:  "a reconcile that was cut off counts as done",
		file: "internal/recovery/inspect.go", old: "	case a.Reconciling:\n		return &gate.LedgerRolledBackError{Campaign: a.Campaign}\n", new: "",
		pkg: everything, test: "TestF54AReconcileThatWasCutOffIsEndedByNoRebuild",
	},
	{
		bug:  "whoever looks does not see that an epoch has ended",
		file: "internal/recovery/watch.go", old: "known && was.Epoch != a.Epoch", new: "known && was.Epoch > a.Epoch",
		pkg: "./internal/recovery", test: "TestF03AGateIsAskedASecondAfterItsEpochEnded",
	},
	{
		bug:  "a gate that does not answer when its epoch ends is not asked again",
		file: "internal/recovery/watch.go", old: "	for id := range w.doubted {\n		ids[id] = true\n	}\n", new: "	clear(w.doubted)\n",
		pkg: "./internal/recovery", test: "TestF03AGateThatDoesNotAnswerIsAskedOnceItDoes",
	},
	{
		bug:  "a campaign that another gate decides is refused for ever",
		file: "internal/recovery/watch.go", old: "isOver(id) && errors.Is(why, gate.ErrStaleEpoch)", new: "false && errors.Is(why, gate.ErrStaleEpoch)",
		pkg: "./internal/recovery", test: "TestF03AGateThatIsNobodysAnyMoreIsNotRefused",
	},
	{
		bug:  "a recorder that is handed an older gate's coupons tells nobody",
		file: "internal/recovery/age.go", old: "b.Epoch < drained.Epoch && g.", new: "b.Epoch < 0 && g.",
		pkg: "./internal/recovery", test: "TestF03ARecorderOfAnOlderGatesCouponsHasItAskedAtOnce",
	},
	{
		bug:  "a gate that is rebuilt is taken for an older one",
		file: "internal/recovery/age.go", old: "s.Frozen || s.Epoch >= a.Epoch", new: "s.Epoch >= a.Epoch",
		pkg: "./internal/recovery", test: "TestF18AFrozenGateIsNoOlderOne",
	},
	{
		bug:  "whoever orders a rebuild of what is lost finds an older gate well",
		file: "internal/recovery/machine.go", old: "case errors.Is(err, errCreating), errors.Is(err, gate.ErrLedgerRolledBack):", new: "case errors.Is(err, errCreating), refuses(err):",
		pkg: everything, test: "TestF03AnOperatorMakesAnOlderGateTheGate",
	},
	{
		bug:  "a campaign is created in the ledger although Redis has lost its name",
		file: "internal/recovery/reconcile.go", old: "	case !named:", new: "	case !named && false:",
		pkg: everything, test: "TestF05NoCampaignIsCreatedAtARedisThatHasLostItsName",
	},
	{
		bug:  "a node that starts while Redis is away ends at once",
		file: "cmd/firstcome/gates.go", old: "if !errors.Is(err, firstcome.ErrBusy) || time.Now().After(end) {", new: "if true {",
		pkg: everything, test: "TestAStartWaitsForItsGateForAMinute",
	},
	{
		bug:  "a node that starts waits for ever for a Redis that is away",
		file: "cmd/firstcome/gates.go", old: "|| time.Now().After(end) {", new: "{",
		pkg: everything, test: "TestAStartWaitsForItsGateForAMinute",
	},
	{
		bug:  "a rebuild forgets which numbers it skips",
		file: "internal/epoch/end.go", old: "		terms = terms.WithSkip(given, ended)\n", new: "		_ = terms.WithSkip(given, ended)\n",
		pkg: everything, test: "TestF80P10RanksGoOnBehindEachLossOfRedis",
	},
	{
		bug:  "a second rebuild forgets which numbers the first one skipped",
		file: "prize.go", old: "t.Skips = append(slices.Clone(t.Skips), ", new: "t.Skips = append([]Skip(nil), ",
		pkg: everything, test: "TestF80P10RanksGoOnBehindEachLossOfRedis",
	},
	{
		bug:  "a second rebuild without a coupon in between counts only the numbers that it skips",
		file: "prize.go", old: "skipped += t.Skips[n-1].Skipped", new: "skipped += 0 * t.Skips[n-1].Skipped",
		pkg: everything, test: "TestF80P10RanksGoOnBehindEachLossOfRedis",
	},
	{
		bug:  "an edit of the terms forgets which numbers are skipped",
		file: "internal/ledger/campaigns.go", old: "terms.Skips, terms.Burnt = was.Skips, was.Burnt", new: "terms.Skips, terms.Burnt = nil, was.Burnt",
		pkg: everything, test: "TestF80P10RanksGoOnBehindEachLossOfRedis",
	},
	{
		bug:  "a rank follows the number",
		file: "prize.go", old: "return number - skipped\n", new: "return number\n",
		pkg: everything, test: "TestF80P10RanksGoOnBehindEachLossOfRedis",
	},
	{
		bug:  "the end of a prize is off by one",
		file: "prize.go", old: "if rank -= p.Quantity; rank <= 0 ||", new: "if rank -= p.Quantity; rank < 0 ||",
		pkg: ".", test: "TestTheRankSaysThePrize",
	},
	{
		bug:  "a claim is answered by the newest terms instead of the coupon's own",
		file: "internal/api/claim.go", old: "return d.Coupon.TermsVersion", new: "return d.Version",
		pkg: "./internal/api", test: "TestPrizesMoveOnlyUntilANumberWasGiven",
	},
	{
		bug:  "a coupon has the newest terms instead of its own",
		file: "internal/campaign/terms.go", old: "version <= ? AND kind IN ('terms', 'reconcile')", new: "version <= 1000000 + ? AND kind IN ('terms', 'reconcile')",
		pkg: everything, test: "TestF80P10RanksGoOnBehindEachLossOfRedis",
	},
	{
		bug:  "the last number of a frozen gate is left out",
		file: "internal/epoch/end.go", old: "lastGiven(&s, frozen.LastNumber)", new: "lastGiven(&s, 0)",
		pkg: everything, test: "TestF80P10TheLastNumberOfAFrozenGateHasItsRank",
	},
	{
		bug:  "a reconcile forgets which numbers are skipped, and the prizes",
		file: "internal/epoch/reconcile.go", old: "if terms, err = campaign.DecodeTerms(g.Payload); err != nil {", new: "if err != nil {",
		pkg: everything, test: "TestF82ALedgerThatLacksTheLastTermsSaysNoPrize",
	},
	{
		bug:  "a ledger that has forgotten terms tells older ones",
		file: "internal/campaign/terms.go", old: "case version > last:", new: "case false:",
		pkg: everything, test: "TestF82ALedgerThatLacksTheLastTermsSaysNoPrize",
	},
	{
		bug:  "a coupon whose terms are forgotten has older ones after a reconcile",
		file: "internal/campaign/terms.go", old: "reconcile.Behind >= version {", new: "reconcile.Behind < version {",
		pkg: everything, test: "TestF82ALedgerThatLacksTheLastTermsSaysNoPrize",
	},
	{
		bug:  "a rebuild that ends a reconcile skips numbers twice",
		file: "internal/epoch/end.go", old: "given = max(given, terms.Skips[n-1].After)", new: "given = max(given, 0*int64(n))",
		pkg: everything, test: "TestF83AReconcileThatARebuildEndsKeepsTheRanks",
	},
	{
		bug:  "a rebuild takes prizes that move after a number was given",
		file: "internal/epoch/end.go", old: "change.Before > 0 && lastGiven(s, g.lastNumber) >= change.Before", new: "false",
		pkg: everything, test: "TestF84P10PrizesThatAreEditedAsTheCampaignOpensAreRefusedOnceANumberIsGiven",
	},
	{
		bug:  "a rebuild refuses prizes under which coupons were given",
		file: "internal/epoch/end.go", old: "if max(issuedUnder, g.termsVersion) >= change.Version {", new: "if max(issuedUnder, g.termsVersion) < 0 {",
		pkg: everything, test: "TestF84P10PrizesThatTheGateTookBeforeTheFirstNumberStay",
	},
	{
		bug:  "Redis takes prizes that move after a number was given",
		file: "internal/redis/lua/apply.lua", old: "before > 0 and g.last_number >= before", new: "before > 0 and g.last_number > before",
		pkg: "./internal/redis", test: "TestF84P10AGateRefusesAChangeThatMustComeBeforeANumber",
	},
	{
		bug:  "Redis forgets the text of its terms in a rebuild",
		file: "internal/redis/recovery.go", old: ` "terms", fill.Payload,`, new: ``,
		pkg: "./internal/redis", test: "TestF82AGateKeepsTheTextOfItsTerms",
	},
	{
		bug:  "a SQL gate takes prizes that move after a number was given",
		file: "internal/ledger/campaigns.go", old: "max(s.LastNumber, s.DrainedThrough) >= beforeNumber {", new: "max(s.LastNumber, s.DrainedThrough) < 0 {",
		pkg: "./internal/ledger", test: "TestTheSQLiteGateConforms",
	},
	{
		bug:  "a node reads the terms of a new epoch only when a claim needs them",
		file: "internal/recovery/watch.go", old: "changed = append(changed, a)", new: "_ = was",
		pkg: "./internal/recovery", test: "TestANodeReadsNewTermsAsSoonAsItNoticesThem",
	},
}
