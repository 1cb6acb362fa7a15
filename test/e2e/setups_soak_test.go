//go:build linux && soak && !race

package e2e_test

import "testing"

// TestWhatMakeTestShowsOnSomeSetupsHoldsOnAll runs the stories of these tests on every set-up.
func TestWhatMakeTestShowsOnSomeSetupsHoldsOnAll(t *testing.T) {
	for name, story := range map[string]func(*testing.T, setup){
		"F09F12AGateThatHangs":         aGateThatHangs,
		"F12LateReplies":               lateReplies,
		"F17UsedUpConnections":         usedUpConnections,
		"F22ARestartInTurn":            aRestartInTurn,
		"F24ACrowdBeforeTheOpening":    aCrowdBeforeTheOpening,
		"F25AHundredClaimsAtOnce":      aHundredClaimsAtOnce,
		"F26RetriesWithoutPause":       retriesWithoutPause,
		"F32F64Strangers":              strangersDecideNothing,
		"F62StockThatComesBack":        stockThatComesBack,
		"F65UsersWithDocumentedRights": documentedRights,
	} {
		t.Run(name, func(t *testing.T) { on(t, story, setups...) })
	}
	t.Run("F20F61F62OperatorsAnswers", func(t *testing.T) {
		on(t, func(t *testing.T, s setup) { operatorsAnswers(t, s, 100) }, setups...)
	})
	t.Run("F20ChangesOfANodeThatIsKilled", func(t *testing.T) {
		on(t, func(t *testing.T, s setup) { changesOfANodeThatIsKilled(t, s, 100) }, setups...)
	})
}
