//go:build linux && soak && !race

package e2e_test

import (
	"slices"
	"testing"
	"time"
)

// TestF23WhoIsFrozenInMidIssueAndContinuedBreaksNothing freezes a node and a recorder at any instant, for longer than others wait before
// they take over its entries. The others go on, and then both thaw and write their late entries. The fault points show the same
// at each instant that matters: TestF18F20F21F23F41F71F79F81P10WhoDiesOrIsFrozenAtAFaultPointLosesNothing.
func TestF23WhoIsFrozenInMidIssueAndContinuedBreaksNothing(t *testing.T) {
	for _, s := range trials() {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			frozen := time.Duration(rounds(6, 30)) * time.Second // entries are taken over after 5
			d := s.deploy(t)
			d.create("spring", 10_000_000, s.answer)
			crowd := newCrowd("spring")
			crowd.longest = time.Second // nobody waits for a node that does not answer
			stop := d.claimUntil(crowd, 12)
			defer stop()
			both := slices.Concat(d.nodes[:1], d.recorders[:min(1, len(d.recorders))])
			crowd.awaitAnswers(t, 100)
			for _, p := range both {
				p.freeze()
			}
			<-time.After(frozen)
			crowd.awaitAnswers(t, 50) // where the ledger decides, once it has ended the frozen node's transaction
			for _, p := range both {
				p.thaw()
			}
			crowd.awaitAnswers(t, 50)
			if len(d.recorders) > 0 { // the recorder that was frozen records on, alone
				d.recorders[1].stop()
				crowd.awaitAnswers(t, 50)
			}
			stop()
			t.Logf("drained in %v", d.drained("spring"))
			d.verdict(crowd)
		})
	}
}
