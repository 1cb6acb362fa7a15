package mutants_test

// pagesBugs are bugs in what operators do, and in what they and callers are shown.
var pagesBugs = []mutant{
	{
		bug:  "the drop page asks a firstcome in development mode as a proxy does",
		file: "examples/storefront/storefront.go", old: "	if s.open {\n", new: "	if false {\n",
		pkg: "./examples/storefront", test: "TestInDevelopmentModeRequestsGoOnAsTheyCame",
	},
	{
		bug:  "a drop page that wakes goes on with its old countdown",
		file: "examples/storefront/page/page.js", old: "if (mine !== wakes || document.hidden) return;", new: "return;",
		pkg: "./examples/storefront", test: "TestInTheBrowserAPageThatSleptOverTheOpeningOffersTheCoupon",
	},
	{
		bug:  "the live page shows an unknown figure as a number",
		file: "internal/console/assets/live.js", old: "n == null ? dash : whole.format(n)", new: "whole.format(n)",
		pkg: "./internal/console", test: "TestInTheBrowserAnOperatorsDay",
	},
	{
		bug:  "the live page goes back to a sample from before the change that it shows",
		file: "internal/console/assets/live.js", old: "s.version < Number(live.dataset.version)", new: "false",
		pkg: "./internal/console", test: "TestInTheBrowserLiveDoesNotFallBackAfterAChange",
	},
	{
		bug:  "the live page tells a screen reader its pulse every second",
		file: "internal/console/pages/live.html", old: `<p class="pulse">`, new: `<p class="pulse" role="status">`,
		pkg: "./internal/console", test: "TestInTheBrowserLiveSaysOnceWhatHappened",
	},
	{
		bug:  "the live page never shows how many coupons are left",
		file: "internal/console/live.go", old: "if now.Quantity == nil || now.InForce == nil {", new: "if true {",
		pkg: "./internal/console", test: "TestTheLivePageShowsHowManyAreLeft",
	},
	{
		bug:  "claims of a paused campaign are not counted as refused",
		file: "internal/console/outcomes.go", old: `words: sentence{"일시중지", "paused"}, refused: true}`, new: `words: sentence{"일시중지", "paused"}}`,
		pkg: "./internal/console", test: "TestTheLivePageCountsClaimsInVain",
	},
	{
		bug:  "the forms show no pace",
		file: "internal/console/act.go", old: "Closed: s.Closed, Pace: s.Pace, ", new: "Closed: s.Closed, ",
		pkg: "./internal/console", test: "TestTheFormsShowTheLine",
	},
	{
		bug:  "the forms ignore how many users wait at the gate",
		file: "internal/console/campaigns.go", old: "Waiting: now.Waiting, ", new: "",
		pkg: "./internal/console", test: "TestTheFormsShowTheLine",
	},
	{
		bug:  "a proof does not count breaches at the gate",
		file: "internal/console/proof.go", old: "		n += p.Gate.Breaches.Total\n", new: "",
		pkg: "./internal/console", test: "TestABreachIsNeverShownAsKept",
	},
	{
		bug:  "the user of a voided coupon is told that they never got one",
		file: "internal/console/customer.go", old: "Page: ledger.Page{Voided: true}", new: "Page: ledger.Page{}",
		pkg: "./internal/console", test: "TestACustomerIsToldWhyTheyGotOneOrNone",
	},
	{
		bug:  "a user who was in line and got none is told that there is no record of it",
		file: "internal/console/customer_words.go", old: "case len(page.Stays) > 0:", new: "case false:",
		pkg: "./internal/console", test: "TestWhoWasInLineIsToldHowItEnded",
	},
	{
		bug:  "a coupon that the ledger refused is told as held",
		file: "internal/console/customer_words.go", old: "case c.Buried && !c.Recorded:", new: "case false:",
		pkg: "./internal/console", test: "TestABuriedCouponIsNotTold",
	},
	{
		bug:  "the health page shows a rate at the first look",
		file: "internal/console/health.go", old: "!again || passed > time.Minute", new: "passed > time.Hour",
		pkg: "./internal/console", test: "TestHealthShowsClaimsPerSecondBetweenTwoLooks",
	},
	{
		bug:  "the health page does not report an open breaker",
		file: "internal/console/health.go", old: `v.Journal.Recorder != nil && v.Journal.Recorder().Breaker != "closed"`, new: "false",
		pkg: "./internal/console", test: "TestHealthShowsThatTheRecordersBreakerIsOpen",
	},
	{
		bug:  "a campaign that gets a pace has no log of its line",
		file: "internal/operate/operate.go", old: "if edit(t); t.Pace != nil && t.Log == nil {", new: "if edit(t); false {",
		pkg: "./internal/operate", test: "TestTheLineOfACampaignThatGetsAPaceIsLogged",
	},
	{
		bug:  "a line that has a log gets another one",
		file: "internal/operate/operate.go", old: "if edit(t); t.Pace != nil && t.Log == nil {", new: "if edit(t); t.Pace != nil && log != nil {",
		pkg: "./internal/operate", test: "TestALineKeepsTheLogThatItGotBetweenReadAndChange",
	},
	{
		bug:  "a line that had no log gets one in the middle",
		file: "internal/operate/operate.go", old: "before.Pace != nil || before.Log", new: "before.Log",
		pkg: "./internal/operate", test: "TestTheLineOfACampaignThatGetsAPaceIsLogged",
	},
	{
		bug:  "a change begins while leases are granted",
		file: "internal/operate/operate.go", old: "return o.issuer.Change(id, func() error {", new: "return func(do func() error) error { return do() }(func() error {",
		pkg: "./internal/operate", test: "TestEveryChangeEndsTheLeasesBeforeItBegins",
	},
	{
		bug:  "a session never ends by itself",
		file: "internal/console/session.go", old: "if now.Sub(got.Seen) > idle || now.Sub(got.Issued) > longest {", new: "if now.Sub(got.Issued) > longest {",
		pkg: "./internal/console", test: "TestASessionEnds",
	},
	{
		bug:  "a session outlives its key",
		file: "internal/console/session.go", old: "	if !ok || !s.Issued", new: "	if !ok {\n		key.Role = firstcome.Admin\n	}\n	if !s.Issued",
		pkg: "./internal/console", test: "TestARevokedKeyEndsItsSessions",
	},
	{
		bug:  "a service key logs in",
		file: "internal/console/login.go", old: "case !see.HasRole(key.Role):", new: "case false:",
		pkg: "./internal/console", test: "TestWhoMayNotLogIn",
	},
	{
		bug:  "the console takes forms of other sites",
		file: "internal/console/console.go", old: "guarded := cross.Handler(next)", new: "guarded := next",
		pkg: "./internal/console", test: "TestAnotherSitesFormChangesNothing",
	},
	{
		bug:  "support sees whose coupons are listed",
		file: "internal/console/coupons.go", old: "named := v.may(run) || ask.Chosen()", new: "named := v.may(look) || ask.Chosen()",
		pkg: "./internal/console", test: "TestSupportSeesCouponsMasked",
	},
	{
		bug:  "a stale page lowers the quantity",
		file: "internal/console/act.go", old: "v.who.Actor, s.ID, version, func(t *firstcome.Terms) { t.Quantity = quantity })", new: "v.who.Actor, s.ID, version-version, func(t *firstcome.Terms) { t.Quantity = quantity })",
		pkg: "./internal/console", test: "TestAStalePageIsToldWhatChangedMeanwhile",
	},
	{
		bug:  "a bulk void does not ask for the name",
		file: "internal/console/coupons.go", old: "if !v.typed(&s) {", new: "if false {",
		pkg: "./internal/console", test: "TestABulkVoidShowsFirstAndNeedsTheNameTyped",
	},
	{
		bug:  "the list shows the ledger's count while the gate is away",
		file: "internal/console/campaigns.go", old: "Unknown: now.InForce == nil", new: "InForce: s.InForce",
		pkg: "./internal/console", test: "TestWhatIsUnknownIsNoNumber",
	},
	{
		bug:  "a dead letter is on its way to the ledger",
		file: "internal/figures/reading.go", old: "max(0, g.LastNumber-g.DrainedThrough)", new: "max(0, g.Issued-c.Recorded)",
		pkg: "./internal/console", test: "TestADeadLetterIsNotOnItsWay",
	},
	{
		bug:  "the node that shows the page is counted twice",
		file: "internal/figures/board.go", old: "if n.Key() == b.Key() {", new: "if false {",
		pkg: "./internal/figures", test: "TestWhileNodesCannotBeReadThisOneIsHeard",
	},
	{
		bug:  "a node that is gone goes on claiming",
		file: "internal/figures/watcher.go", old: "			s.Gone = append(s.Gone, node.Key())\n			continue\n", new: "			s.Gone = append(s.Gone, node.Key())\n",
		pkg: "./internal/figures", test: "TestRatesAreWhatTheNodesCountedSinceTheyWereHeard",
	},
	{
		bug:  "a node that began again counts from where it was",
		file: "internal/figures/watcher.go", old: "!before.started.Equal(now.started) || !from.Since.Equal(now.counts.Since)", new: "false",
		pkg: "./internal/figures", test: "TestRatesAreWhatTheNodesCountedSinceTheyWereHeard",
	},
	{
		bug:  "a silent stream is not kept alive",
		file: "internal/api/streams.go", old: "case now.Sub(f.told) >= heartbeat:", new: "case false:",
		pkg: "./internal/api", test: "TestASilentStreamIsKeptAliveAndEndsInTime",
	},
	{
		bug:  "a stream reads a claim that fails again at each look",
		file: "internal/api/streams.go", old: "case f.asking || now.Before(f.again):", new: "case f.asking:",
		pkg: "./internal/api", test: "TestAClaimThatFailsIsReadLessAndLessOften",
	},
	{
		bug:  "a stream sends a place that has not changed",
		file: "internal/api/streams.go", old: "if f.place = to; was == to {", new: "if f.place = to; false {",
		pkg: "./internal/api", test: "TestASilentStreamIsKeptAliveAndEndsInTime",
	},
	{
		bug:  "a stream lives for hours",
		file: "internal/api/events.go", old: "time.Now().Add(longestStream/2 + rand.N(longestStream/2))", new: "time.Now().Add(10*longestStream/2 + rand.N(10*longestStream/2))",
		pkg: "./internal/api", test: "TestASilentStreamIsKeptAliveAndEndsInTime",
	},
	{
		bug:  "a proxy buffers the events of a stream",
		file: "internal/api/events.go", old: `h["Content-Type"], h["X-Accel-Buffering"] = typeEvents, unbuffered`, new: `h["Content-Type"] = typeEvents`,
		pkg: "./internal/api", test: "TestAStreamTellsEveryPlaceAndThenTheOutcome",
	},
	{
		bug:  "the clients of streams that end all come back at once",
		file: "internal/api/events.go", old: "(firstRetry + jitter(firstRetry)).Milliseconds()", new: "firstRetry.Milliseconds()",
		pkg: "./internal/api", test: "TestASilentStreamIsKeptAliveAndEndsInTime",
	},
	{
		bug:  "the figures of a paused campaign predict when it sells out",
		file: "internal/figures/watcher.go", old: ` || s.State != firstcome.StateOpen || *s.InForce`, new: " || *s.InForce",
		pkg: "./internal/figures", test: "TestAPacedCampaignIsSoldOutByItsPaceWhileItIsOpen",
	},
	{
		bug:  "the figures of the last tenth predict when it sells out",
		file: "internal/figures/watcher.go", old: "len(c.ring) < window || left < float64(*s.Quantity)/10", new: "len(c.ring) < window",
		pkg: "./internal/figures", test: "TestACampaignWithoutAPaceIsSoldOutByItsLastTenSeconds",
	},
	{
		bug:  "the percentiles count the claims of one node only",
		file: "internal/figures/watcher.go", old: "took.Add(heard.took)", new: "took = heard.took",
		pkg: "./internal/figures", test: "TestPercentilesAreOverTheClaimsOfAllNodes",
	},
	{
		bug:  "a campaign whose creation has not reached the gate reads as open",
		file: "internal/api/counted.go", old: "		return gateUnknown\n", new: "		return gateOK\n",
		pkg: "./internal/api", test: "TestF20ACampaignThatHasNotReachedItsGateIsUnknown",
	},
	{
		bug:  "the console shows a campaign as open whose creation has not reached the gate",
		file: "internal/figures/reading.go", old: `return "creating"`, new: `return ""`,
		pkg: "./internal/console", test: "TestACampaignThatHasNotReachedItsGateIsUnknown",
	},
	{
		bug:  "Health's arrow into the gate is fine while campaigns are lost",
		file: "internal/console/health.go", old: "	if stopped > 0 {", new: "	if false {",
		pkg: "./internal/console", test: "TestTheArrowIntoTheGateIsBadWhileItDecidesNothingOfACampaign",
	},
	{
		bug:  "a verbose readiness says nothing of lost campaigns",
		file: "internal/ops/health.go", old: "	if len(ids) == 0 {", new: "	if len(ids) >= 0 {",
		pkg: "./internal/ops", test: "TestVerboseReadinessNamesTheCampaignsThatTheGateDoesNotDecide",
	},
	{
		bug:  "a user finds another user's coupon by its code",
		file: "internal/api/coupons.go", old: "	if c.User != \"\" {\n		return s.findOwn(", new: "	if false {\n		return s.findOwn(",
		pkg: "./internal/api", test: "TestAUserFindsOnlyTheirOwnCoupons",
	},
	{
		bug:  "support is told that there is no coupon while it is on its way",
		file: "internal/console/customer_find.go", old: "found.Why == ledger.NotThere && !found.Awaited(v.r.Context(), c.Gate)", new: "found.Why == ledger.NotThere",
		pkg: "./internal/console", test: "TestACodeThatTheLedgerDoesNotHaveMayBeOnItsWay",
	},
}
